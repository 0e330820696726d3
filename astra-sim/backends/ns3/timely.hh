// TIMELY: the gradient of the round-trip time decides.
#pragma once

#include "backends/ns3/congestion.hh"
#include "ns3/data-rate.h"

namespace hpcmoe::rdma {

// The round-trip time is now minus the stamp that the acknowledgement returns. Hosts stamp zero unless
// told otherwise, so that it is the time since the start of the simulation: the behaviour of the widely
// used ns-3 model of RDMA, kept for comparison with it.
class Timely : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();
  IntKind Telemetry() const override { return IntKind::stamp; }
  void OnAck(QueuePair& qp, const AckHeader& ack) override;

 private:
  void Update(QueuePair& qp, std::uint64_t rtt_ns);
  void Raise(QueuePair& qp);
  void Lower(QueuePair& qp, double factor);

  ns3::DataRate m_additive, m_hyper, m_lowest;

  std::uint32_t m_lastSequence = 0;
  std::uint32_t m_stage = 0;
  std::uint64_t m_lastRttNs = 0;
  double m_difference = 0;   // smoothed, of round-trip times in ns
  std::uint64_t m_rate = 0;  // 0: the line rate
};

}  // namespace hpcmoe::rdma
