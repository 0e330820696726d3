#include "backends/ns3/dcqcn.hh"

#include <algorithm>

#include "backends/ns3/host_port.hh"
#include "backends/ns3/queue_pair.hh"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(Dcqcn);

ns3::TypeId Dcqcn::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Dcqcn")
          .SetParent<CongestionControl>()
          .AddConstructor<Dcqcn>()
          .AddAttribute("AlphaInterval", "Time between updates of alpha.",
                        ns3::TimeValue(ns3::MicroSeconds(55)), ns3::MakeTimeAccessor(&Dcqcn::m_alphaInterval),
                        ns3::MakeTimeChecker())
          .AddAttribute("DecreaseInterval", "Time between checks whether to lower the rate.",
                        ns3::TimeValue(ns3::MicroSeconds(4)),
                        ns3::MakeTimeAccessor(&Dcqcn::m_decreaseInterval), ns3::MakeTimeChecker())
          .AddAttribute("IncreaseInterval", "Time between steps that raise the rate.",
                        ns3::TimeValue(ns3::MicroSeconds(900)),
                        ns3::MakeTimeAccessor(&Dcqcn::m_increaseInterval), ns3::MakeTimeChecker())
          .AddAttribute("Gain", "Weight of the newest interval in alpha.", ns3::DoubleValue(0.00390625),
                        ns3::MakeDoubleAccessor(&Dcqcn::m_gain), ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("ClampTarget", "Every decrease also lowers the target rate.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Dcqcn::m_clampTarget),
                        ns3::MakeBooleanChecker())
          .AddAttribute("FastRecoveries", "Increases toward the target before the target itself is raised.",
                        ns3::UintegerValue(5), ns3::MakeUintegerAccessor(&Dcqcn::m_fastRecoveries),
                        ns3::MakeUintegerChecker<std::uint32_t>())
          .AddAttribute("AdditiveIncrease", "First step of the target, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(50'000'000)),
                        ns3::MakeDataRateAccessor(&Dcqcn::m_additive), ns3::MakeDataRateChecker())
          .AddAttribute("HyperIncrease", "Later steps of the target, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Dcqcn::m_hyper), ns3::MakeDataRateChecker())
          .AddAttribute("MinRate", "Lowest sending rate, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Dcqcn::m_lowest), ns3::MakeDataRateChecker());
  return tid;
}

void Dcqcn::Start(QueuePair& qp) {
  m_qp = &qp;
  m_target = qp.MaxRate();
}

void Dcqcn::OnAck(QueuePair& qp, const AckHeader& ack) {
  // Once everything has arrived a rate means nothing.
  if (!ack.congestion || qp.IsFinished()) return;
  m_alphaMark = m_decreaseMark = true;
  if (!m_marked) FirstMark();
}

// The first mark starts the clocks and changes no rate. Alpha is updated before the decrease that falls
// on the same microsecond.
void Dcqcn::FirstMark() {
  m_marked = true;
  m_alpha = 1;
  m_alphaMark = false;
  m_alphaTimer = ns3::Simulator::Schedule(m_alphaInterval, &Dcqcn::UpdateAlpha, this);
  m_decreaseTimer =
      ns3::Simulator::Schedule(m_decreaseInterval + ns3::NanoSeconds(1), &Dcqcn::CheckDecrease, this);
  m_target = m_qp->Rate();
}

void Dcqcn::UpdateAlpha() {
  m_alpha = m_alphaMark ? (1 - m_gain) * m_alpha + m_gain : (1 - m_gain) * m_alpha;
  m_alphaMark = false;
  m_alphaTimer = ns3::Simulator::Schedule(m_alphaInterval, &Dcqcn::UpdateAlpha, this);
}

void Dcqcn::CheckDecrease() {
  m_decreaseTimer = ns3::Simulator::Schedule(m_decreaseInterval, &Dcqcn::CheckDecrease, this);
  if (!m_decreaseMark) return;
  const std::uint64_t rate = m_qp->Rate();
  if (m_clampTarget || m_stage != 0) m_target = rate;
  const std::uint64_t lower = WholeRate(static_cast<double>(rate) * (1 - m_alpha / 2));
  m_qp->SetRate(std::max(m_lowest.GetBitRate(), lower));
  m_stage = 0;
  m_decreaseMark = false;
  m_increaseTimer.Cancel();
  m_increaseTimer = ns3::Simulator::Schedule(m_increaseInterval, &Dcqcn::Increase, this);
}

void Dcqcn::Increase() {
  m_increaseTimer = ns3::Simulator::Schedule(m_increaseInterval, &Dcqcn::Increase, this);
  if (m_stage >= m_fastRecoveries) {
    const ns3::DataRate& step = m_stage == m_fastRecoveries ? m_additive : m_hyper;
    m_target = std::min(m_target + step.GetBitRate(), m_qp->Port().GetDataRate().GetBitRate());
  }
  m_qp->SetRate(m_qp->Rate() / 2 + m_target / 2);
  ++m_stage;
}

void Dcqcn::Stop() {
  m_alphaTimer.Cancel();
  m_decreaseTimer.Cancel();
  m_increaseTimer.Cancel();
}

}  // namespace hpcmoe::rdma
