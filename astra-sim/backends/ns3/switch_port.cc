#include "backends/ns3/switch.hh"
#include "ns3/simulator.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(SwitchPort);

ns3::TypeId SwitchPort::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::SwitchPort").SetParent<Device>().AddConstructor<SwitchPort>();
  return tid;
}

void SwitchPort::Deliver(ns3::Ptr<ns3::Packet> packet, const Label& label) {
  m_switch->Forward({packet, label, GetIfIndex()});
}

void SwitchPort::Enqueue(Waiting waiting) {
  m_enqueueTrace(waiting.packet, waiting.label);
  m_queued += waiting.label.bytes;
  if (waiting.label.kind != FrameKind::pause) NoteQueue(m_queued);
  m_queues[waiting.label.traffic_class].push_back(std::move(waiting));
  TrySend();
}

void SwitchPort::SendPause(std::uint8_t traffic_class, std::uint32_t time_us) {
  m_switch->SkipStream();
  Frame frame = MakePause(traffic_class, time_us, 0);
  const ns3::Ptr<ns3::Packet> packet = PutTogether(frame);
  Enqueue({packet, ReadLabel(*packet), GetIfIndex()});
}

int SwitchPort::ChooseClass() const {
  if (!m_queues[kControlClass].empty()) return kControlClass;
  for (std::uint32_t k = 1; k <= kClasses; ++k) {
    const std::uint32_t c = (k + m_lastClass) % kClasses;
    if (!IsPaused(static_cast<std::uint8_t>(c)) && !m_queues[c].empty()) return static_cast<int>(c);
  }
  return -1;
}

void SwitchPort::TrySend() {
  if (IsBusy() || m_queued == 0) return;
  const int chosen = ChooseClass();
  if (chosen < 0) return;
  auto& queue = m_queues[static_cast<std::size_t>(chosen)];
  Waiting waiting = std::move(queue.front());
  queue.pop_front();
  m_queued -= waiting.label.bytes;
  if (chosen != kControlClass) m_lastClass = static_cast<std::uint32_t>(chosen);
  m_switch->OnDequeue(*this, waiting);
  m_sent += waiting.label.bytes;
  Transmit(waiting.packet, waiting.label);
}

void SwitchPort::RestartCounters() {
  m_sent = 0;
  m_packets = 0;
}

void SwitchPort::DoDispose() {
  m_switch = nullptr;
  for (auto& queue : m_queues) queue.clear();
  Device::DoDispose();
}

}  // namespace hpcmoe::rdma
