#include "backends/ns3/device.hh"

#include <algorithm>

#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(Device);

ns3::TypeId Device::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Device")
          .SetParent<NetDevice>()
          .AddAttribute("DataRate", "Rate at which bits leave, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(400'000'000'000ULL)),
                        ns3::MakeDataRateAccessor(&Device::m_rate), ns3::MakeDataRateChecker())
          .AddAttribute("ReceiveErrorModel", "Decides which arriving packets, pause frames too, are lost.",
                        ns3::PointerValue(), ns3::MakePointerAccessor(&Device::m_errors),
                        ns3::MakePointerChecker<ns3::ErrorModel>())
          .AddTraceSource("Enqueue", "A packet joins the queue of this device.",
                          ns3::MakeTraceSourceAccessor(&Device::m_enqueueTrace),
                          "hpcmoe::rdma::Label::TracedCallback")
          .AddTraceSource("Dequeue", "The first bit of a packet leaves.",
                          ns3::MakeTraceSourceAccessor(&Device::m_dequeueTrace),
                          "hpcmoe::rdma::Label::TracedCallback")
          .AddTraceSource("Drop", "A packet finds no room in the buffer of the switch, or no route.",
                          ns3::MakeTraceSourceAccessor(&Device::m_dropTrace),
                          "hpcmoe::rdma::Label::TracedCallback")
          .AddTraceSource("Receive", "The last bit of a packet, lost or not, has arrived.",
                          ns3::MakeTraceSourceAccessor(&Device::m_receiveTrace),
                          "hpcmoe::rdma::Device::TracedCallback")
          .AddTraceSource("Pause", "A pause or resume frame takes effect on this device.",
                          ns3::MakeTraceSourceAccessor(&Device::m_pauseTrace),
                          "hpcmoe::rdma::Device::PauseTracedCallback");
  return tid;
}

void Device::Transmit(ns3::Ptr<ns3::Packet> packet, const Label& label) {
  const ns3::Time serialization = m_rate.CalculateBytesTxTime(label.bytes);
  m_dequeueTrace(packet, label);
  m_busy = true;
  m_counters.bytes += label.bytes;
  m_counters.busy += serialization;
  m_counters.data_packets += label.kind == FrameKind::data ? 1 : 0;
  m_counters.pause_frames += label.kind == FrameKind::pause ? 1 : 0;
  m_counters.ack_packets += label.kind == FrameKind::ack || label.kind == FrameKind::nack ? 1 : 0;
  // Where both fall on one nanosecond the device is free before the peer receives.
  ns3::Simulator::Schedule(serialization, &Device::TransmitDone, this);
  m_link->Carry(*this, packet, serialization);
}

void Device::TransmitDone() {
  m_busy = false;
  TrySend();
}

void Device::Receive(ns3::Ptr<ns3::Packet> packet) {
  m_receiveTrace(this);
  if (m_errors && m_errors->IsCorrupt(packet)) {
    ++m_counters.losses;
    return;
  }
  const Label label = ReadLabel(*packet);
  if (label.kind == FrameKind::pause) {
    ObeyPause(TakeApart(packet).pause);
  } else {
    Deliver(packet, label);
  }
}

void Device::ObeyPause(const PauseHeader& pause) {
  const bool was_paused = m_paused[kDataClass];
  m_paused[pause.traffic_class] = pause.time_us != 0;
  if (m_paused[kDataClass] && !was_paused) m_pausedSince = ns3::Simulator::Now();
  if (!m_paused[kDataClass] && was_paused) m_counters.paused += ns3::Simulator::Now() - m_pausedSince;
  m_pauseTrace(this, pause);
  if (pause.time_us == 0) TrySend();
}

DeviceCounters Device::GetCounters(ns3::Time end) const {
  DeviceCounters counters = m_counters;
  if (m_paused[kDataClass]) counters.paused += end - m_pausedSince;
  return counters;
}

void Device::NoteQueue(std::uint64_t bytes) {
  m_counters.peak_queue_bytes = std::max(m_counters.peak_queue_bytes, bytes);
}

bool Device::SetMtu(std::uint16_t mtu) {
  m_mtu = mtu;
  return true;
}

// Links are up from the start to the end.
void Device::AddLinkChangeCallback(ns3::Callback<void>) {}

void Device::DoDispose() {
  m_link = nullptr;
  m_node = nullptr;
  m_errors = nullptr;
  m_receive = ReceiveCallback();
  m_promiscuous = PromiscReceiveCallback();
  NetDevice::DoDispose();
}

}  // namespace hpcmoe::rdma
