#include "backends/ns3/timely.hh"

#include <algorithm>

#include "backends/ns3/queue_pair.hh"
#include "ns3/simulator.h"

namespace hpcmoe::rdma {
namespace {

constexpr double kNewWeight = 0.875;
constexpr double kDecreaseWeight = 0.8;
constexpr double kSmallestRttNs = 20'000;
constexpr std::uint64_t kLowRttNs = 50'000;
constexpr std::uint64_t kHighRttNs = 500'000;
constexpr std::uint32_t kAdditiveStages = 5;

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Timely);

ns3::TypeId Timely::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Timely")
          .SetParent<CongestionControl>()
          .AddConstructor<Timely>()
          .AddAttribute("AdditiveIncrease", "Step of the first increases, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(50'000'000)),
                        ns3::MakeDataRateAccessor(&Timely::m_additive), ns3::MakeDataRateChecker())
          .AddAttribute("HyperIncrease", "Step after five increases, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Timely::m_hyper), ns3::MakeDataRateChecker())
          .AddAttribute("MinRate", "Lowest sending rate, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Timely::m_lowest), ns3::MakeDataRateChecker());
  return tid;
}

void Timely::OnAck(QueuePair& qp, const AckHeader& ack) {
  if (ack.sequence <= m_lastSequence) return;
  const auto now = static_cast<std::uint64_t>(ns3::Simulator::Now().GetNanoSeconds());
  const std::uint64_t rtt_ns = now - ack.field.stamp_ns;
  if (m_lastSequence != 0) Update(qp, rtt_ns);
  const auto next = static_cast<std::uint32_t>(qp.next);
  if (next > m_lastSequence) {
    m_lastSequence = next;
    m_lastRttNs = rtt_ns;
  }
}

void Timely::Update(QueuePair& qp, std::uint64_t rtt_ns) {
  const auto step = static_cast<std::int64_t>(rtt_ns) - static_cast<std::int64_t>(m_lastRttNs);
  m_difference = (1 - kNewWeight) * m_difference + kNewWeight * static_cast<double>(step);
  const double gradient = m_difference / kSmallestRttNs;
  if (rtt_ns < kLowRttNs) {
    Raise(qp);
  } else if (rtt_ns > kHighRttNs) {
    Lower(qp, 1 - kDecreaseWeight * (1 - static_cast<double>(kHighRttNs) / static_cast<double>(rtt_ns)));
  } else if (gradient <= 0) {
    Raise(qp);
  } else {
    Lower(qp, std::max(0.0, 1 - kDecreaseWeight * gradient));
  }
}

void Timely::Raise(QueuePair& qp) {
  const ns3::DataRate& step = m_stage < kAdditiveStages ? m_additive : m_hyper;
  const std::uint64_t from = m_rate == 0 ? qp.MaxRate() : m_rate;
  m_rate = std::min(qp.MaxRate(), from + step.GetBitRate());
  qp.SetRate(m_rate);
  ++m_stage;
}

void Timely::Lower(QueuePair& qp, double factor) {
  const std::uint64_t from = m_rate == 0 ? qp.MaxRate() : m_rate;
  m_rate = std::max(m_lowest.GetBitRate(), WholeRate(static_cast<double>(from) * factor));
  qp.SetRate(m_rate);
  m_stage = 0;
}

}  // namespace hpcmoe::rdma
