// DCTCP on rates: the share of marked acknowledgements per round trip decides how far the rate falls.
#pragma once

#include "backends/ns3/congestion.hh"
#include "ns3/data-rate.h"

namespace hpcmoe::rdma {

class Dctcp : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();
  void OnAck(QueuePair& qp, const AckHeader& ack) override;

 private:
  bool BeginRound(const QueuePair& qp, std::uint32_t sequence);

  double m_gain = 0;
  ns3::DataRate m_additive, m_lowest;
  std::uint32_t m_payloadBytes = 1000;

  double m_alpha = 1;
  std::uint32_t m_marks = 0;     // in this round
  std::uint32_t m_roundEnd = 0;  // sequence; 0 before the first round
  std::uint32_t m_roundPackets = 0;
  bool m_reduced = false;  // no second reduction before `m_reducedUntil` is acknowledged
  std::uint64_t m_reducedUntil = 0;
};

}  // namespace hpcmoe::rdma
