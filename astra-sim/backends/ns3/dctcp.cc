#include "backends/ns3/dctcp.hh"

#include <algorithm>

#include "backends/ns3/queue_pair.hh"
#include "ns3/double.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(Dctcp);

ns3::TypeId Dctcp::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Dctcp")
          .SetParent<CongestionControl>()
          .AddConstructor<Dctcp>()
          .AddAttribute("Gain", "Weight of the newest round in alpha.", ns3::DoubleValue(0.00390625),
                        ns3::MakeDoubleAccessor(&Dctcp::m_gain), ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("AdditiveIncrease", "Added once per round without reduction, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(1'000'000'000)),
                        ns3::MakeDataRateAccessor(&Dctcp::m_additive), ns3::MakeDataRateChecker())
          .AddAttribute("MinRate", "Lowest sending rate, in bit/s.",
                        ns3::DataRateValue(ns3::DataRate(100'000'000)),
                        ns3::MakeDataRateAccessor(&Dctcp::m_lowest), ns3::MakeDataRateChecker())
          .AddAttribute("PayloadBytes", "Largest payload of a packet, in bytes; as in Host.",
                        ns3::UintegerValue(1000), ns3::MakeUintegerAccessor(&Dctcp::m_payloadBytes),
                        ns3::MakeUintegerChecker<std::uint32_t>(1));
  return tid;
}

// Whether the acknowledgement opens a new round.
bool Dctcp::BeginRound(const QueuePair& qp, std::uint32_t sequence) {
  if (sequence <= m_roundEnd) return false;
  if (m_roundEnd == 0) {
    m_roundPackets = static_cast<std::uint32_t>(qp.next / m_payloadBytes + 1);
  } else {
    const double share = std::min(1.0, static_cast<double>(m_marks) / m_roundPackets);
    m_alpha = (1 - m_gain) * m_alpha + m_gain * share;
    m_marks = 0;
    m_roundPackets = static_cast<std::uint32_t>((qp.next - sequence) / m_payloadBytes + 1);
  }
  m_roundEnd = static_cast<std::uint32_t>(qp.next);
  return true;
}

void Dctcp::OnAck(QueuePair& qp, const AckHeader& ack) {
  m_marks += ack.congestion ? 1 : 0;
  const bool new_round = BeginRound(qp, ack.sequence);
  if (m_reduced && ack.sequence > m_reducedUntil) m_reduced = false;
  if (ack.congestion && !m_reduced) {
    const std::uint64_t lower = WholeRate(static_cast<double>(qp.Rate()) * (1 - m_alpha / 2));
    qp.SetRate(std::max(m_lowest.GetBitRate(), lower));
    m_reduced = true;
    m_reducedUntil = qp.next;
  }
  if (!m_reduced && new_round) qp.SetRate(std::min(qp.MaxRate(), qp.Rate() + m_additive.GetBitRate()));
}

}  // namespace hpcmoe::rdma
