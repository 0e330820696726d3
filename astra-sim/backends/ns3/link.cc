#include "backends/ns3/link.hh"

#include "backends/ns3/device.hh"
#include "ns3/node.h"
#include "ns3/simulator.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(Link);

ns3::TypeId Link::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Link")
          .SetParent<Channel>()
          .AddConstructor<Link>()
          .AddAttribute("Delay", "Propagation delay of either direction.",
                        ns3::TimeValue(ns3::NanoSeconds(500)), ns3::MakeTimeAccessor(&Link::m_delay),
                        ns3::MakeTimeChecker());
  return tid;
}

void Link::Attach(ns3::Ptr<Device> device) {
  NS_ABORT_MSG_IF(m_attached == m_devices.size(), "a link has two ends");
  m_devices[m_attached++] = device;
  device->SetLink(this);
}

ns3::Ptr<Device> Link::PeerOf(const Device& device) const {
  return m_devices[ns3::PeekPointer(m_devices[0]) == &device ? 1 : 0];
}

ns3::Ptr<ns3::NetDevice> Link::GetDevice(std::size_t index) const { return m_devices.at(index); }

void Link::Carry(const Device& from, ns3::Ptr<ns3::Packet> packet, ns3::Time serialization) {
  Device* const to = ns3::PeekPointer(PeerOf(from));
  ++m_inFlight;
  ns3::Simulator::ScheduleWithContext(to->GetNode()->GetId(), serialization + m_delay, &Link::Arrive, this,
                                      to, packet);
}

void Link::Arrive(Device* to, ns3::Ptr<ns3::Packet> packet) {
  --m_inFlight;
  to->Receive(packet);
}

void Link::DoDispose() {
  m_devices = {};
  Channel::DoDispose();
}

}  // namespace hpcmoe::rdma
