// A shared-buffer switch: routes by hash, pauses ports that fill its memory, marks, writes telemetry.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "backends/ns3/device.hh"
#include "backends/ns3/draws.hh"
#include "backends/ns3/int_rates.hh"
#include "backends/ns3/shared_buffer.hh"

namespace hpcmoe::rdma {

class Switch;

// Egress side of a switch: one queue per class, the control class first, the others in turn.
class SwitchPort : public Device {
 public:
  static ns3::TypeId GetTypeId();

  struct Waiting {
    ns3::Ptr<ns3::Packet> packet;
    Label label;
    std::uint32_t in = 0;  // port it came through
  };

  void SetSwitch(Switch* owner) { m_switch = owner; }
  void Enqueue(Waiting waiting);
  void TrySend() override;
  void SendPause(std::uint8_t traffic_class, std::uint32_t time_us) override;
  std::uint64_t QueuedBytes() const override { return m_queued; }

  void RestartCounters();
  // Telemetry and marking keep count of what has left, pause frames aside.
  std::uint64_t SentBytes() const { return m_sent; }
  std::uint64_t CountPacket() { return ++m_packets; }
  void NoteMark() { ++m_counters.marks; }
  void NoteDrop(const Waiting& waiting) { m_dropTrace(waiting.packet, waiting.label); }

 protected:
  void Deliver(ns3::Ptr<ns3::Packet> packet, const Label& label) override;
  void DoDispose() override;

 private:
  int ChooseClass() const;  // -1: nothing may go

  Switch* m_switch = nullptr;
  std::array<std::deque<Waiting>, kClasses> m_queues;
  std::uint64_t m_queued = 0;
  std::uint32_t m_lastClass = 0;
  std::uint64_t m_sent = 0;
  std::uint64_t m_packets = 0;
};

struct MarkingThreshold {
  std::uint64_t kmin_bytes = 0, kmax_bytes = 0;
  double pmax = 0;
};

class Switch : public ns3::Node {
 public:
  static ns3::TypeId GetTypeId();

  // In order of port numbers. `nic_bps`: the rate of the hosts' cards, which faster ports are compared to.
  void AddPort(ns3::Ptr<SwitchPort> port, std::uint64_t nic_bps);
  // Equal-cost output ports toward a host; the order is what hash values mean.
  void AddRoute(ns3::Ipv4Address destination, std::uint32_t port);
  void SetMarkingThreshold(std::uint64_t rate_bps, MarkingThreshold threshold);

  void Forward(SwitchPort::Waiting waiting);
  // A packet is about to leave through `out`; its bytes are out of the queue already.
  void OnDequeue(SwitchPort& out, SwitchPort::Waiting& waiting);
  ns3::Ptr<SwitchPort> GetPort(std::uint32_t index) const { return m_ports[index]; }
  std::uint32_t GetNPorts() const { return static_cast<std::uint32_t>(m_ports.size()); }
  void SkipStream() { m_draws->SkipStream(); }

  // Telemetry counters and times count from now on, as if the switch had just been built.
  void RestartCounters();
  bool BufferIsEmpty() const { return m_buffer.IsEmpty(); }
  std::uint32_t EgressBytes(std::uint32_t port) const { return m_buffer.EgressBytes(port, kDataClass); }
  std::uint64_t GetDrops() const { return m_drops; }
  std::uint64_t GetPausesSent() const { return m_pausesSent; }

 protected:
  void NotifyConstructionCompleted() override;
  void DoDispose() override;

 private:
  bool Route(const FlowTuple& tuple, std::uint32_t& out) const;
  bool Marks(const SwitchPort& out, std::uint32_t queued, std::uint64_t packet);
  IntHop Telemetry(const SwitchPort& out) const;

  std::uint32_t m_bufferBytes = 0;
  double m_headroomFactor = 0;
  std::uint32_t m_pauseTimeUs = 0;
  bool m_marking = false;
  std::uint32_t m_intMultiplier = 1;
  ns3::Ptr<IntRates> m_intRates;
  ns3::Ptr<Draws> m_draws;

  SharedBuffer m_buffer{0};
  std::vector<ns3::Ptr<SwitchPort>> m_ports;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> m_routes;
  std::map<std::uint64_t, MarkingThreshold> m_thresholds;
  ns3::Time m_epoch;
  std::uint64_t m_drops = 0;
  std::uint64_t m_pausesSent = 0;
  ns3::TracedCallback<ns3::Ptr<const Device>, const Label&> m_markTrace;
};

}  // namespace hpcmoe::rdma
