#include "backends/ns3/host_port.hh"

#include <algorithm>

#include "backends/ns3/host.hh"
#include "ns3/simulator.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(HostPort);

ns3::TypeId HostPort::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::HostPort").SetParent<Device>().AddConstructor<HostPort>();
  return tid;
}

void HostPort::AddQueuePair(ns3::Ptr<QueuePair> qp) {
  m_queuePairs.push_back(qp);
  TrySend();
}

void HostPort::ForgetQueuePairs() {
  m_queuePairs.clear();
  m_last = 0;
  m_wakeUp.Cancel();
}

void HostPort::EnqueueReply(Frame frame) {
  const ns3::Ptr<ns3::Packet> packet = PutTogether(frame);
  const Label label = ReadLabel(*packet);
  m_enqueueTrace(packet, label);
  m_replyBytes += label.bytes;
  if (label.kind != FrameKind::pause) NoteQueue(m_replyBytes);
  m_replies.emplace_back(packet, label);
  TrySend();
}

void HostPort::SendPause(std::uint8_t traffic_class, std::uint32_t time_us) {
  m_host->SkipStream();
  EnqueueReply(MakePause(traffic_class, time_us, 0));
}

void HostPort::TrySend() {
  if (IsBusy()) return;
  if (!m_replies.empty() && !IsPaused(m_host->ReplyClass())) {
    SendReply();
    return;
  }
  const std::size_t chosen = ChooseQueuePair();
  if (chosen == kNone) {
    PlanWakeUp();
    return;
  }
  m_last = chosen;
  SendData(*m_queuePairs[chosen]);
}

void HostPort::SendReply() {
  const auto [packet, label] = m_replies.front();
  m_replies.pop_front();
  m_replyBytes -= label.bytes;
  Transmit(packet, label);
}

bool HostPort::MaySend(const QueuePair& qp) const {
  return !IsPaused(kDataClass) && qp.BytesLeft() > 0 && !qp.IsWindowBound(m_host->WindowFollowsRate());
}

std::size_t HostPort::ChooseQueuePair() {
  const std::size_t count = m_queuePairs.size();
  const ns3::Time now = ns3::Simulator::Now();
  std::size_t chosen = kNone, finished = kNone;
  for (std::size_t k = 1; k <= count && chosen == kNone; ++k) {
    const std::size_t at = (m_last + k) % count;
    const QueuePair& qp = *m_queuePairs[at];
    if (MaySend(qp)) {
      if (qp.next_allowed <= now) chosen = at;
    } else if (qp.IsFinished()) {
      finished = std::min(finished, at);
    }
  }
  return finished == kNone ? chosen : RemoveFinished(finished, chosen);
}

// All finished queue pairs from position `from` on leave, whether they had been passed or not. The
// memory of who sent last is a position and stays.
std::size_t HostPort::RemoveFinished(std::size_t from, std::size_t chosen) {
  std::size_t kept = from, moved = chosen;
  for (std::size_t at = from; at < m_queuePairs.size(); ++at) {
    if (m_queuePairs[at]->IsFinished()) continue;
    if (at == chosen) moved = kept;
    m_queuePairs[kept++] = m_queuePairs[at];
  }
  m_queuePairs.resize(kept);
  return moved;
}

void HostPort::SendData(QueuePair& qp) {
  Frame frame = m_host->NextPacket(qp);
  const Group& group = frame.sequence.group;
  Label label{FrameKind::data, group.traffic_class, group.telemetry, group.local, 0, frame.Tuple()};
  const ns3::Ptr<ns3::Packet> packet = PutTogether(frame);
  label.bytes = packet->GetSize();
  Transmit(packet, label);
  qp.last_packet_bytes = label.bytes;
  const std::uint64_t pace = m_host->PacesAtRate() ? qp.Rate() : qp.MaxRate();
  qp.next_allowed = ns3::Simulator::Now() + ns3::DataRate(pace).CalculateBytesTxTime(label.bytes);
}

// Queue pairs that cannot send count as well: one whose time has passed keeps the card asleep.
void HostPort::PlanWakeUp() {
  if (m_queuePairs.empty() || !m_wakeUp.IsExpired()) return;
  ns3::Time first = m_queuePairs.front()->next_allowed;
  for (const auto& qp : m_queuePairs) first = std::min(first, qp->next_allowed);
  const ns3::Time now = ns3::Simulator::Now();
  if (first > now) m_wakeUp = ns3::Simulator::Schedule(first - now, &HostPort::TrySend, this);
}

void HostPort::WakeNoLaterThan(ns3::Time time) {
  if (m_wakeUp.IsExpired()) return;
  const auto planned = ns3::NanoSeconds(static_cast<std::int64_t>(m_wakeUp.GetTs()));
  if (time >= planned) return;
  m_wakeUp.Cancel();
  const ns3::Time now = ns3::Simulator::Now();
  m_wakeUp = ns3::Simulator::Schedule(std::max(time, now) - now, &HostPort::TrySend, this);
}

void HostPort::Deliver(ns3::Ptr<ns3::Packet> packet, const Label&) {
  const Frame frame = TakeApart(packet);
  if (frame.kind == FrameKind::data) {
    m_host->ReceiveData(frame);
  } else {
    m_host->ReceiveReply(frame);
  }
}

void HostPort::DoDispose() {
  m_host = nullptr;
  m_replies.clear();
  for (const auto& qp : m_queuePairs) qp->Dispose();
  m_queuePairs.clear();
  Device::DoDispose();
}

}  // namespace hpcmoe::rdma
