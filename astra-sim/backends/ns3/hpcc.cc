#include "backends/ns3/hpcc.hh"

#include <algorithm>

#include "backends/ns3/queue_pair.hh"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/pointer.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint32_t kTimeMask = (1U << 24) - 1;
constexpr std::uint32_t kBytesMask = (1U << 20) - 1;
constexpr std::uint64_t kBytesUnit = 128;
constexpr std::uint64_t kQueueUnit = 80;

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Hpcc);

ns3::TypeId Hpcc::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Hpcc")
          .SetParent<CongestionControl>()
          .AddConstructor<Hpcc>()
          .AddAttribute("AdditiveIncrease", "Added to the rate at every step, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(50'000'000)),
                        ns3::MakeDataRateAccessor(&Hpcc::m_additive), ns3::MakeDataRateChecker())
          .AddAttribute("MinRate", "Lowest sending rate, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Hpcc::m_lowest), ns3::MakeDataRateChecker())
          .AddAttribute("TargetUtilisation", "Utilisation of the busiest link that is aimed at.",
                        ns3::DoubleValue(0.95), ns3::MakeDoubleAccessor(&Hpcc::m_target),
                        ns3::MakeDoubleChecker<double>())
          .AddAttribute("AdditiveStages", "Additive steps before a multiplicative one.",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Hpcc::m_stages),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("FastReact", "React to every acknowledgement, not once per round trip.",
                        ns3::BooleanValue(true), ns3::MakeBooleanAccessor(&Hpcc::m_fastReact),
                        ns3::MakeBooleanChecker())
          .AddAttribute("MultiRate", "Keep a rate per hop.", ns3::BooleanValue(true),
                        ns3::MakeBooleanAccessor(&Hpcc::m_multiRate), ns3::MakeBooleanChecker())
          .AddAttribute("SampleFeedback", "A fast reaction leaves out hops with an empty queue.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Hpcc::m_sampleFeedback),
                        ns3::MakeBooleanChecker())
          .AddAttribute("IntMultiplier", "Factor of the units of telemetry counters; as in Switch.",
                        ns3::UintegerValue(1), ns3::MakeUintegerAccessor(&Hpcc::m_multiplier),
                        ns3::MakeUintegerChecker<std::uint32_t>(1))
          .AddAttribute("Slots", "Switches that packets have room for; telemetry of more is ignored.",
                        ns3::UintegerValue(kIntSlots), ns3::MakeUintegerAccessor(&Hpcc::m_slots),
                        ns3::MakeUintegerChecker<std::uint8_t>(1, kIntSlots))
          .AddAttribute("IntRates", "Meaning of the telemetry's rate codes; as in Switch.",
                        ns3::PointerValue(), ns3::MakePointerAccessor(&Hpcc::m_rates),
                        ns3::MakePointerChecker<IntRates>());
  return tid;
}

void Hpcc::Start(QueuePair& qp) {
  if (!m_rates) m_rates = ns3::CreateObject<IntRates>();
  m_path.rate = qp.MaxRate();
  for (State& hop : m_hops) hop.rate = qp.MaxRate();
}

void Hpcc::OnAck(QueuePair& qp, const AckHeader& ack) {
  const bool full = ack.sequence > m_lastSequence;
  if (full || m_fastReact) Update(qp, ack.field, full);
}

// A full update is made once per round trip and its result stays; a fast one starts anew from there.
void Hpcc::Update(QueuePair& qp, const IntField& field, bool full) {
  const auto next = static_cast<std::uint32_t>(qp.next);
  const bool fits = field.hop_count <= m_slots;
  if (m_lastSequence == 0) {
    m_lastSequence = next;
    if (fits) std::copy_n(field.hops.begin(), field.hop_count, m_records.begin());
    return;
  }
  if (fits) React(qp, field, full);
  if (full) m_lastSequence = std::max(m_lastSequence, next);
}

void Hpcc::React(QueuePair& qp, const IntField& field, bool full) {
  std::array<Sample, kIntSlots> samples;
  bool any = false;
  for (std::uint32_t i = 0; i < field.hop_count; ++i) {
    if (m_sampleFeedback && !full && field.hops[i].queue == 0) continue;
    samples[i] = Measure(qp, field.hops[i], m_records[i]);
    m_records[i] = field.hops[i];
    any = true;
  }
  if (!any) return;
  if (m_multiRate) {
    ReactPerHop(qp, samples, field.hop_count, full);
  } else {
    ReactToPath(qp, samples, field.hop_count, full);
  }
}

// What the hop sent since the last record, and what waits there, against what it can send.
Hpcc::Sample Hpcc::Measure(const QueuePair& qp, const IntHop& now, const IntHop& before) const {
  const std::uint64_t time_ns = (now.time - before.time) & kTimeMask;
  const std::uint64_t bytes =
      std::uint64_t{(now.bytes - before.bytes) & kBytesMask} * kBytesUnit * m_multiplier;
  const auto queued = static_cast<double>(std::min(now.queue, before.queue) * kQueueUnit * m_multiplier);
  const double sent_bps = static_cast<double>(bytes * 8) / (static_cast<double>(time_ns) * 1e-9);
  const auto line = static_cast<double>(m_rates->Decode(now.rate_code));
  const double window = qp.Request().window_bytes;
  return {sent_bps / line + queued * static_cast<double>(qp.MaxRate()) / line / window, time_ns, true};
}

void Hpcc::Smooth(State& state, const Sample& sample, std::uint64_t base_rtt_ns) const {
  const std::uint64_t time_ns = std::min(sample.time_ns, base_rtt_ns);
  state.utilisation = (state.utilisation * static_cast<double>(base_rtt_ns - time_ns) +
                       sample.utilisation * static_cast<double>(time_ns)) /
                      static_cast<double>(base_rtt_ns);
}

Hpcc::Step Hpcc::NextStep(const QueuePair& qp, const State& state) const {
  const double excess = state.utilisation / m_target;
  Step step;
  if (excess >= 1 || state.stage >= m_stages) {
    step.rate = WholeRate(static_cast<double>(state.rate) / excess) + m_additive.GetBitRate();
  } else {
    step.rate = state.rate + m_additive.GetBitRate();
    step.stage = state.stage + 1;
  }
  if (step.rate < m_lowest.GetBitRate()) step.rate = m_lowest.GetBitRate();
  if (step.rate > qp.MaxRate()) step.rate = qp.MaxRate();
  return step;
}

void Hpcc::ReactToPath(QueuePair& qp, const std::array<Sample, kIntSlots>& samples, std::uint32_t hops,
                       bool full) {
  Sample busiest;
  for (std::uint32_t i = 0; i < hops; ++i) {
    if (samples[i].used && samples[i].utilisation > busiest.utilisation) busiest = samples[i];
  }
  Smooth(m_path, busiest, static_cast<std::uint64_t>(qp.Request().base_rtt.GetNanoSeconds()));
  const Step step = NextStep(qp, m_path);
  qp.ChangeRate(step.rate);
  if (!full) return;
  m_path.rate = step.rate;
  m_path.stage = step.stage;
}

void Hpcc::ReactPerHop(QueuePair& qp, const std::array<Sample, kIntSlots>& samples, std::uint32_t hops,
                       bool full) {
  std::array<Step, kIntSlots> steps;
  std::uint64_t lowest = qp.MaxRate();
  for (std::uint32_t i = 0; i < hops; ++i) {
    steps[i] = {m_hops[i].rate, m_hops[i].stage};
    if (samples[i].used) {
      Smooth(m_hops[i], samples[i], static_cast<std::uint64_t>(qp.Request().base_rtt.GetNanoSeconds()));
      steps[i] = NextStep(qp, m_hops[i]);
    }
    lowest = std::min(lowest, steps[i].rate);
  }
  qp.ChangeRate(lowest);
  if (!full) return;
  for (std::uint32_t i = 0; i < hops; ++i) {
    m_hops[i].rate = steps[i].rate;
    m_hops[i].stage = steps[i].stage;
  }
}

void Hpcc::DoDispose() {
  m_rates = nullptr;
  CongestionControl::DoDispose();
}

}  // namespace hpcmoe::rdma
