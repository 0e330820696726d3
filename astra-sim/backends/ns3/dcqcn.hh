// DCQCN as network cards do it: marks lower the rate, timers raise it again.
#pragma once

#include "backends/ns3/congestion.hh"
#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"

namespace hpcmoe::rdma {

class Dcqcn : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();
  void Start(QueuePair& qp) override;
  void OnAck(QueuePair& qp, const AckHeader& ack) override;
  void Stop() override;

 private:
  void FirstMark();
  void UpdateAlpha();
  void CheckDecrease();
  void Increase();

  ns3::Time m_alphaInterval, m_decreaseInterval, m_increaseInterval;
  double m_gain = 0;
  bool m_clampTarget = false;
  std::uint32_t m_fastRecoveries = 0;
  ns3::DataRate m_additive, m_hyper, m_lowest;

  QueuePair* m_qp = nullptr;
  bool m_marked = false;        // ever
  bool m_alphaMark = false;     // since the last update of alpha
  bool m_decreaseMark = false;  // since the last decrease
  double m_alpha = 1;
  std::uint64_t m_target = 0;
  std::uint32_t m_stage = 0;
  ns3::EventId m_alphaTimer, m_decreaseTimer, m_increaseTimer;
};

}  // namespace hpcmoe::rdma
