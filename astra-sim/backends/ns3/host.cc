#include "backends/ns3/host.hh"

#include <algorithm>

#include "ns3/boolean.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint32_t kHashSeed = 0x8BADF00D;
constexpr int kRequestIntervalUs = 500;
constexpr int kOwnPauseUs = 10;
constexpr int kOwnPauseRestUs = 1000;

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Host);

ns3::TypeId Host::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Host")
          .SetParent<Node>()
          .AddConstructor<Host>()
          .AddAttribute("PayloadBytes", "Largest payload of a packet, in bytes.", ns3::UintegerValue(1000),
                        ns3::MakeUintegerAccessor(&Host::m_payloadBytes),
                        ns3::MakeUintegerChecker<std::uint32_t>(1, 65000))
          .AddAttribute(
              "AckInterval",
              "Bytes of a message after which every packet is acknowledged; before, only whole chunks.",
              ns3::UintegerValue(1), ns3::MakeUintegerAccessor(&Host::m_ackInterval),
              ns3::MakeUintegerChecker<std::uint32_t>(1))
          .AddAttribute("ChunkBytes", "Chunk of acknowledgement and of going back to zero, in bytes.",
                        ns3::UintegerValue(4000), ns3::MakeUintegerAccessor(&Host::m_chunkBytes),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("BackToZero", "After a loss whole chunks are sent again.", ns3::BooleanValue(false),
                        ns3::MakeBooleanAccessor(&Host::m_backToZero), ns3::MakeBooleanChecker())
          .AddAttribute("VarWindow", "The window follows the rate.", ns3::BooleanValue(false),
                        ns3::MakeBooleanAccessor(&Host::m_varWindow), ns3::MakeBooleanChecker())
          .AddAttribute("PaceAtRate", "Packets are paced at the current rate, not at the line rate.",
                        ns3::BooleanValue(true), ns3::MakeBooleanAccessor(&Host::m_paceAtRate),
                        ns3::MakeBooleanChecker())
          .AddAttribute("ReplyHighPriority", "The control class, not the data class, stops acknowledgements.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Host::m_replyHighPriority),
                        ns3::MakeBooleanChecker())
          .AddAttribute("StampBuildTime", "Packets with a time stamp carry the time, not zero.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Host::m_stampBuildTime),
                        ns3::MakeBooleanChecker())
          .AddAttribute("PauseTime", "Time field of pause frames, in us; 0 makes every pause a resume.",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Host::m_pauseTimeUs),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("OwnPauses", "Pauses of 10 us that the host asks for by itself as data arrive.",
                        ns3::UintegerValue(0), ns3::MakeUintegerAccessor(&Host::m_ownPauses),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("Draws", "Random numbers of the network.", ns3::PointerValue(),
                        ns3::MakePointerAccessor(&Host::m_draws), ns3::MakePointerChecker<Draws>())
          .AddTraceSource("Finished", "The last byte of a message is acknowledged.",
                          ns3::MakeTraceSourceAccessor(&Host::m_finishedTrace),
                          "hpcmoe::rdma::QueuePair::TracedCallback");
  return tid;
}

void Host::NotifyConstructionCompleted() {
  Node::NotifyConstructionCompleted();
  if (!m_draws) m_draws = ns3::CreateObject<Draws>();
  m_control.SetTypeId(CongestionControl::GetTypeId());
}

void Host::AddPort(ns3::Ptr<HostPort> port) {
  port->SetHost(this);
  m_ports.push_back(port);
  AddDevice(port);
}

void Host::AddRoute(ns3::Ipv4Address destination, std::uint32_t port) {
  m_routes[destination.Get()].push_back(port);
}

void Host::SetCongestionControl(const ns3::ObjectFactory& factory) {
  m_control = factory;
  const auto example = m_control.Create<CongestionControl>();
  m_telemetry = example->Telemetry();
  m_telemetrySlots = example->TelemetrySlots();
}

ns3::Ptr<HostPort> Host::Route(const FlowTuple& tuple) const {
  const auto found = m_routes.find(tuple.destination);
  if (found == m_routes.end()) return nullptr;
  return m_ports[found->second[FlowHash(tuple, kHashSeed) % found->second.size()]];
}

bool Host::Send(const QueuePairRequest& request) {
  const ns3::Ptr<HostPort> port = Route(request.tuple);
  if (!port) return false;
  const auto qp = ns3::CreateObject<QueuePair>();
  qp->Setup(request, m_control.Create<CongestionControl>(), ns3::PeekPointer(port));
  m_live[{request.tuple.destination, request.tuple.source_port}] = qp;
  port->AddQueuePair(qp);
  return true;
}

Frame Host::NextPacket(QueuePair& qp) const {
  const QueuePairRequest& request = qp.Request();
  const auto left = static_cast<std::uint32_t>(qp.BytesLeft());
  const std::uint32_t payload = std::min(m_payloadBytes, left);
  SequenceHeader header;
  header.sequence = static_cast<std::uint32_t>(qp.next);
  header.group = {kDataClass, request.telemetry ? m_telemetry : IntKind::none, m_telemetrySlots,
                  request.local};
  header.field.kind = header.group.telemetry;
  header.field.slots = header.group.slots;
  if (m_stampBuildTime) {
    header.field.stamp_ns = static_cast<std::uint64_t>(ns3::Simulator::Now().GetNanoSeconds());
  }
  qp.next += payload;
  return MakeData(request.tuple, header, payload);
}

void Host::ReceiveData(const Frame& data) {
  const FlowTuple tuple = data.Tuple();
  // The reply's own tuple chooses the device that it leaves through.
  const auto port = Route({tuple.destination, tuple.source, tuple.destination_port, tuple.source_port});
  if (!port) return;
  PauseSometimes(*port);
  Receiver& receiver = m_receivers[{tuple.source, tuple.source_port}];
  const Answer answer = Accept(receiver, data.sequence.sequence, data.payload->GetSize());
  if (answer == Answer::nothing) return;
  const FrameKind kind = answer == Answer::ack ? FrameKind::ack : FrameKind::nack;
  port->EnqueueReply(MakeReply(kind, data, receiver.expected));
}

Host::Answer Host::Accept(Receiver& receiver, std::uint32_t sequence, std::uint32_t payload_bytes) {
  if (sequence < receiver.expected) return Answer::nothing;
  if (sequence == receiver.expected) {
    receiver.expected += payload_bytes;
    m_receivedBytes += receiver.expected - std::min(receiver.expected, receiver.furthest);
    receiver.furthest = std::max(receiver.expected, receiver.furthest);
    const bool whole_chunk = m_chunkBytes != 0 && receiver.expected % m_chunkBytes == 0;
    return receiver.expected >= m_ackInterval || whole_chunk ? Answer::ack : Answer::nothing;
  }
  const ns3::Time now = ns3::Simulator::Now();
  if (now < receiver.quiet_until && receiver.last_request == receiver.expected) return Answer::nothing;
  receiver.quiet_until = now + ns3::MicroSeconds(kRequestIntervalUs);
  receiver.last_request = receiver.expected;
  receiver.expected = RoundDown(receiver.expected);
  return Answer::nack;
}

std::uint32_t Host::RoundDown(std::uint32_t sequence) const {
  return m_backToZero ? sequence / m_chunkBytes * m_chunkBytes : sequence;
}

void Host::ReceiveReply(const Frame& reply) {
  const auto found = m_live.find({reply.ip.GetSource().Get(), reply.ack.destination_port});
  if (found == m_live.end()) return;
  const ns3::Ptr<QueuePair> qp = found->second;
  qp->acknowledged = std::max<std::uint64_t>(qp->acknowledged, RoundDown(reply.ack.sequence));
  if (qp->IsFinished()) Finish(*qp);
  if (reply.kind == FrameKind::nack) qp->next = qp->acknowledged;
  if (!qp->Request().local) qp->Control().OnAck(*qp, reply.ack);
  qp->Port().TrySend();
}

// Whoever waits for the message is told before this host goes on, and may start others at once.
void Host::Finish(QueuePair& qp) {
  qp.Control().Stop();
  m_finishedTrace(ns3::Ptr<QueuePair>(&qp));
  m_live.erase({qp.Request().tuple.destination, qp.Request().tuple.source_port});
}

void Host::ForgetSender(ns3::Ipv4Address source, std::uint16_t source_port) {
  m_receivers.erase({source.Get(), source_port});
}

std::vector<ns3::Ptr<QueuePair>> Host::LiveQueuePairs() const {
  std::vector<ns3::Ptr<QueuePair>> live;
  for (const auto& entry : m_live) live.push_back(entry.second);
  return live;
}

void Host::PauseSometimes(HostPort& port) {
  if (m_ownPauses == 0 || !m_pauseArmed) return;
  m_pauseArmed = false;
  if (m_pausesMade == m_ownPauses) return;
  ++m_pausesMade;
  port.SendPause(kDataClass, m_pauseTimeUs);
  ns3::Simulator::Schedule(ns3::MicroSeconds(kOwnPauseUs), &Host::EndOwnPause, this,
                           ns3::Ptr<HostPort>(&port));
}

void Host::EndOwnPause(ns3::Ptr<HostPort> port) {
  port->SendPause(kDataClass, 0);
  ns3::Simulator::Schedule(ns3::MicroSeconds(kOwnPauseRestUs), &Host::ArmPause, this);
}

void Host::DoDispose() {
  for (const auto& entry : m_live) entry.second->Dispose();
  m_live.clear();
  m_receivers.clear();
  m_ports.clear();
  m_draws = nullptr;
  Node::DoDispose();
}

}  // namespace hpcmoe::rdma
