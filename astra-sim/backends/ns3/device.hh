// One end of a link: sends one packet at a time, obeys priority flow control. What it sends next is
// decided by what it belongs to: HostPort or SwitchPort.
#pragma once

#include <array>
#include <cstdint>

#include "backends/ns3/frame.hh"
#include "backends/ns3/link.hh"
#include "ns3/data-rate.h"
#include "ns3/error-model.h"
#include "ns3/net-device.h"
#include "ns3/node.h"
#include "ns3/traced-callback.h"

namespace hpcmoe::rdma {

struct DeviceCounters {
  std::uint64_t bytes = 0, data_packets = 0, ack_packets = 0, pause_frames = 0;  // sent
  std::uint64_t marks = 0;
  std::uint64_t losses = 0;  // at reception
  std::uint64_t peak_queue_bytes = 0;
  ns3::Time busy, paused;
};

class Device : public ns3::NetDevice {
 public:
  static ns3::TypeId GetTypeId();

  void SetLink(Link* link) { m_link = link; }
  // The last bit of a packet has arrived.
  void Receive(ns3::Ptr<ns3::Packet> packet);
  // Starts the next packet if the device is free and has one that may go.
  virtual void TrySend() = 0;
  // Puts a pause frame (time 0: resume) in front of the data.
  virtual void SendPause(std::uint8_t traffic_class, std::uint32_t time_us) = 0;
  virtual std::uint64_t QueuedBytes() const = 0;

  const ns3::DataRate& GetDataRate() const { return m_rate; }
  Link& GetLink() const { return *m_link; }
  bool IsPaused(std::uint8_t traffic_class) const { return m_paused[traffic_class]; }
  // A pause that has not ended counts until `end`.
  DeviceCounters GetCounters(ns3::Time end) const;

  // ns3::NetDevice. Only RDMA packets travel here: Send refuses every other.
  void SetIfIndex(std::uint32_t index) override { m_index = index; }
  std::uint32_t GetIfIndex() const override { return m_index; }
  ns3::Ptr<ns3::Channel> GetChannel() const override { return ns3::Ptr<ns3::Channel>(m_link); }
  void SetAddress(ns3::Address address) override { m_address = address; }
  ns3::Address GetAddress() const override { return m_address; }
  bool SetMtu(std::uint16_t mtu) override;
  std::uint16_t GetMtu() const override { return m_mtu; }
  bool IsLinkUp() const override { return m_link != nullptr; }
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return false; }
  ns3::Address GetBroadcast() const override { return m_address; }
  bool IsMulticast() const override { return false; }
  ns3::Address GetMulticast(ns3::Ipv4Address) const override { return m_address; }
  ns3::Address GetMulticast(ns3::Ipv6Address) const override { return m_address; }
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return true; }
  bool Send(ns3::Ptr<ns3::Packet>, const ns3::Address&, std::uint16_t) override { return false; }
  bool SendFrom(ns3::Ptr<ns3::Packet>, const ns3::Address&, const ns3::Address&, std::uint16_t) override {
    return false;
  }
  ns3::Ptr<ns3::Node> GetNode() const override { return ns3::Ptr<ns3::Node>(m_node); }
  void SetNode(ns3::Ptr<ns3::Node> node) override { m_node = ns3::PeekPointer(node); }
  bool NeedsArp() const override { return false; }
  void SetReceiveCallback(ReceiveCallback callback) override { m_receive = callback; }
  void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override { m_promiscuous = callback; }
  bool SupportsSendFrom() const override { return false; }

 protected:
  virtual void Deliver(ns3::Ptr<ns3::Packet> packet, const Label& label) = 0;  // data and acknowledgements
  void Transmit(ns3::Ptr<ns3::Packet> packet, const Label& label);
  bool IsBusy() const { return m_busy; }
  void NoteQueue(std::uint64_t bytes);
  void DoDispose() override;

  ns3::Node* m_node = nullptr;
  DeviceCounters m_counters;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>, const Label&> m_enqueueTrace, m_dequeueTrace, m_dropTrace;

 private:
  void TransmitDone();
  void ObeyPause(const PauseHeader& pause);

  ns3::DataRate m_rate;
  ns3::Ptr<ns3::ErrorModel> m_errors;
  Link* m_link = nullptr;
  bool m_busy = false;
  std::array<bool, kClasses> m_paused{};
  ns3::Time m_pausedSince;
  ns3::TracedCallback<ns3::Ptr<const Device>> m_receiveTrace;
  ns3::TracedCallback<ns3::Ptr<const Device>, const PauseHeader&> m_pauseTrace;

  std::uint32_t m_index = 0;
  std::uint16_t m_mtu = 65535;
  ns3::Address m_address;
  ReceiveCallback m_receive;
  PromiscReceiveCallback m_promiscuous;
};

}  // namespace hpcmoe::rdma
