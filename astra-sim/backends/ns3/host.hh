// A host: sends messages over queue pairs, acknowledges what it receives. It never forwards.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "backends/ns3/draws.hh"
#include "backends/ns3/host_port.hh"
#include "ns3/object-factory.h"

namespace hpcmoe::rdma {

class Host : public ns3::Node {
 public:
  static ns3::TypeId GetTypeId();

  // Devices first, then routes: equal-cost devices toward a host, in the order that hash values mean.
  void AddPort(ns3::Ptr<HostPort> port);
  void AddRoute(ns3::Ipv4Address destination, std::uint32_t port);
  void SetCongestionControl(const ns3::ObjectFactory& factory);

  // Starts sending now. False when no route leads there.
  bool Send(const QueuePairRequest& request);
  // The receiving side of a finished message ends with it.
  void ForgetSender(ns3::Ipv4Address source, std::uint16_t source_port);

  ns3::Ptr<HostPort> GetPort(std::uint32_t index) const { return m_ports[index]; }
  std::uint32_t GetNPorts() const { return static_cast<std::uint32_t>(m_ports.size()); }
  // Queue pairs that are not finished, by destination and source port.
  std::vector<ns3::Ptr<QueuePair>> LiveQueuePairs() const;
  std::uint64_t GetReceivedBytes() const { return m_receivedBytes; }  // no byte of a message twice
  std::uint64_t GetPausesSent() const { return m_pausesMade; }

  // For the host's devices.
  void ReceiveData(const Frame& data);
  void ReceiveReply(const Frame& reply);
  Frame NextPacket(QueuePair& qp) const;
  std::uint8_t ReplyClass() const { return m_replyHighPriority ? kControlClass : kDataClass; }
  bool WindowFollowsRate() const { return m_varWindow; }
  bool PacesAtRate() const { return m_paceAtRate; }
  void SkipStream() { m_draws->SkipStream(); }

 protected:
  void NotifyConstructionCompleted() override;
  void DoDispose() override;

 private:
  // What has arrived of one message.
  struct Receiver {
    std::uint32_t expected = 0;
    std::uint32_t furthest = 0;  // expected may go back
    ns3::Time quiet_until;       // no second request to go back to the same byte before this
    std::uint32_t last_request = 0;
  };
  enum class Answer { nothing, ack, nack };

  ns3::Ptr<HostPort> Route(const FlowTuple& tuple) const;
  Answer Accept(Receiver& receiver, std::uint32_t sequence, std::uint32_t payload_bytes);
  std::uint32_t RoundDown(std::uint32_t sequence) const;
  void Finish(QueuePair& qp);
  void PauseSometimes(HostPort& port);
  void EndOwnPause(ns3::Ptr<HostPort> port);
  void ArmPause() { m_pauseArmed = true; }

  std::uint32_t m_payloadBytes = 1000;
  std::uint32_t m_ackInterval = 1, m_chunkBytes = 4000;
  bool m_backToZero = false;
  bool m_varWindow = false, m_paceAtRate = true, m_replyHighPriority = false;
  bool m_stampBuildTime = false;
  std::uint32_t m_pauseTimeUs = 5;
  std::uint32_t m_ownPauses = 0;
  ns3::Ptr<Draws> m_draws;

  std::vector<ns3::Ptr<HostPort>> m_ports;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> m_routes;
  ns3::ObjectFactory m_control;
  IntKind m_telemetry = IntKind::none;
  std::uint8_t m_telemetrySlots = kIntSlots;
  std::map<std::tuple<std::uint32_t, std::uint16_t>, ns3::Ptr<QueuePair>> m_live;
  std::map<std::tuple<std::uint32_t, std::uint16_t>, Receiver> m_receivers;
  std::uint64_t m_receivedBytes = 0;
  bool m_pauseArmed = true;
  std::uint32_t m_pausesMade = 0;
  ns3::TracedCallback<ns3::Ptr<QueuePair>> m_finishedTrace;
};

}  // namespace hpcmoe::rdma
