#include "backends/ns3/switch.hh"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/pointer.h"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint32_t kBytesUnit = 128;
constexpr std::uint32_t kQueueUnit = 80;

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Switch);

ns3::TypeId Switch::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Switch")
          .SetParent<Node>()
          .AddConstructor<Switch>()
          .AddAttribute("BufferBytes", "Memory that all ports share, in bytes. Fixed at construction.",
                        ns3::UintegerValue(32U << 20), ns3::MakeUintegerAccessor(&Switch::m_bufferBytes),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("HeadroomFactor",
                        "Headroom of a port in products of its link's rate and one-way delay.",
                        ns3::DoubleValue(3), ns3::MakeDoubleAccessor(&Switch::m_headroomFactor),
                        ns3::MakeDoubleChecker<double>(0))
          .AddAttribute("PauseTime", "Time field of pause frames, in us; 0 makes every pause a resume.",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Switch::m_pauseTimeUs),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("Marking", "Whether packets get congestion marks.", ns3::BooleanValue(true),
                        ns3::MakeBooleanAccessor(&Switch::m_marking), ns3::MakeBooleanChecker())
          .AddAttribute("IntMultiplier", "Factor of the units of telemetry counters; as in Hpcc.",
                        ns3::UintegerValue(1), ns3::MakeUintegerAccessor(&Switch::m_intMultiplier),
                        ns3::MakeUintegerChecker<std::uint32_t>(1))
          .AddAttribute("IntRates", "Meaning of the telemetry's rate codes; as in Hpcc.", ns3::PointerValue(),
                        ns3::MakePointerAccessor(&Switch::m_intRates), ns3::MakePointerChecker<IntRates>())
          .AddAttribute("Draws", "Random numbers of the network.", ns3::PointerValue(),
                        ns3::MakePointerAccessor(&Switch::m_draws), ns3::MakePointerChecker<Draws>())
          .AddTraceSource("Mark", "A packet that leaves gets a congestion mark.",
                          ns3::MakeTraceSourceAccessor(&Switch::m_markTrace),
                          "hpcmoe::rdma::Switch::MarkTracedCallback");
  return tid;
}

void Switch::NotifyConstructionCompleted() {
  Node::NotifyConstructionCompleted();
  m_buffer = SharedBuffer(m_bufferBytes);
  if (!m_draws) m_draws = ns3::CreateObject<Draws>();
  if (!m_intRates) m_intRates = ns3::CreateObject<IntRates>();
}

void Switch::AddPort(ns3::Ptr<SwitchPort> port, std::uint64_t nic_bps) {
  port->SetSwitch(this);
  m_ports.push_back(port);
  const auto delay = static_cast<std::uint64_t>(port->GetLink().GetDelay().GetNanoSeconds());
  m_buffer.AddPort(port->GetDataRate().GetBitRate(), nic_bps, delay, m_headroomFactor);
  AddDevice(port);
}

void Switch::AddRoute(ns3::Ipv4Address destination, std::uint32_t port) {
  m_routes[destination.Get()].push_back(port);
}

void Switch::SetMarkingThreshold(std::uint64_t rate_bps, MarkingThreshold threshold) {
  m_thresholds[rate_bps] = threshold;
}

bool Switch::Route(const FlowTuple& tuple, std::uint32_t& out) const {
  const auto found = m_routes.find(tuple.destination);
  if (found == m_routes.end()) return false;
  out = found->second[FlowHash(tuple, GetId()) % found->second.size()];
  return true;
}

void Switch::Forward(SwitchPort::Waiting waiting) {
  std::uint32_t out = 0;
  const Label& label = waiting.label;
  const std::uint32_t in = waiting.in;
  if (!Route(label.tuple, out) || !m_buffer.Admits(in, label.traffic_class, label.bytes)) {
    ++m_drops;
    m_ports[in]->NoteDrop(waiting);
    return;
  }
  m_buffer.Store(in, out, label.traffic_class, label.bytes);
  if (m_buffer.MustPause(in, label.traffic_class)) {
    ++m_pausesSent;
    m_ports[in]->SendPause(label.traffic_class, m_pauseTimeUs);
    m_buffer.SetPaused(in, label.traffic_class, true);
  }
  m_ports[out]->Enqueue(std::move(waiting));
}

void Switch::OnDequeue(SwitchPort& out, SwitchPort::Waiting& waiting) {
  const Label& label = waiting.label;
  if (label.kind == FrameKind::pause) return;
  m_buffer.Release(waiting.in, out.GetIfIndex(), label.traffic_class, label.bytes);
  const std::uint64_t packet = out.CountPacket();
  const bool mark =
      m_marking && Marks(out, m_buffer.EgressBytes(out.GetIfIndex(), label.traffic_class), packet);
  if (m_buffer.MayResume(waiting.in, label.traffic_class)) {
    m_ports[waiting.in]->SendPause(label.traffic_class, 0);
    m_buffer.SetPaused(waiting.in, label.traffic_class, false);
  }
  const bool record = label.kind == FrameKind::data && label.telemetry == IntKind::hops && !label.local;
  if (!mark && !record) return;
  Frame frame = TakeApart(waiting.packet);
  if (mark) {
    frame.ip.SetEcn(ns3::Ipv4Header::ECN_CE);
    out.NoteMark();
    m_markTrace(ns3::Ptr<const Device>(&out), label);
  }
  if (record) frame.sequence.field.Push(Telemetry(out));
  waiting.packet = PutTogether(frame);
}

bool Switch::Marks(const SwitchPort& out, std::uint32_t queued, std::uint64_t packet) {
  const auto found = m_thresholds.find(out.GetDataRate().GetBitRate());
  NS_ABORT_MSG_IF(found == m_thresholds.end(),
                  "no marking threshold for ports of " << out.GetDataRate().GetBitRate() << " bit/s");
  const MarkingThreshold& t = found->second;
  if (queued > t.kmax_bytes) return true;
  if (queued <= t.kmin_bytes) return false;
  const double above = static_cast<double>(queued - t.kmin_bytes);
  const double probability = t.pmax * above / static_cast<double>(t.kmax_bytes - t.kmin_bytes);
  const std::uint64_t direction =
      std::uint64_t{GetId()} << 32 | out.GetLink().PeerOf(out)->GetNode()->GetId();
  return m_draws->Next(direction, packet) < probability;
}

IntHop Switch::Telemetry(const SwitchPort& out) const {
  const auto now = static_cast<std::uint64_t>((ns3::Simulator::Now() - m_epoch).GetNanoSeconds());
  IntHop hop;
  hop.rate_code = m_intRates->Encode(out.GetDataRate().GetBitRate());
  hop.time = static_cast<std::uint32_t>(now % (1U << 24));
  hop.bytes = static_cast<std::uint32_t>(out.SentBytes() / (std::uint64_t{kBytesUnit} * m_intMultiplier) %
                                         (1U << 20));
  hop.queue = static_cast<std::uint32_t>(out.QueuedBytes() / (std::uint64_t{kQueueUnit} * m_intMultiplier) %
                                         (1U << 17));
  return hop;
}

void Switch::RestartCounters() {
  m_epoch = ns3::Simulator::Now();
  for (const auto& port : m_ports) port->RestartCounters();
}

void Switch::DoDispose() {
  m_ports.clear();
  m_draws = nullptr;
  m_intRates = nullptr;
  Node::DoDispose();
}

}  // namespace hpcmoe::rdma
