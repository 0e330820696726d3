// A full-duplex cable between two devices: delay, no queue, no contention.
#pragma once

#include <array>
#include <cstdint>

#include "ns3/channel.h"
#include "ns3/nstime.h"
#include "ns3/packet.h"

namespace hpcmoe::rdma {

class Device;

class Link : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();

  void Attach(ns3::Ptr<Device> device);  // twice
  // The peer receives the packet `serialization` plus the link's delay from now.
  void Carry(const Device& from, ns3::Ptr<ns3::Packet> packet, ns3::Time serialization);

  std::size_t GetNDevices() const override { return m_attached; }
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t index) const override;
  ns3::Ptr<Device> PeerOf(const Device& device) const;
  ns3::Time GetDelay() const { return m_delay; }
  std::uint32_t InFlight() const { return m_inFlight; }  // both directions

 protected:
  void DoDispose() override;

 private:
  void Arrive(Device* to, ns3::Ptr<ns3::Packet> packet);

  ns3::Time m_delay;
  std::array<ns3::Ptr<Device>, 2> m_devices;
  std::size_t m_attached = 0;
  std::uint32_t m_inFlight = 0;
};

}  // namespace hpcmoe::rdma
