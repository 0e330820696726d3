// HPCC: telemetry of every switch on the path gives the utilisation that the rate is set by.
#pragma once

#include <array>

#include "backends/ns3/congestion.hh"
#include "backends/ns3/int_rates.hh"
#include "ns3/data-rate.h"

namespace hpcmoe::rdma {

class Hpcc : public CongestionControl {
 public:
  static ns3::TypeId GetTypeId();
  IntKind Telemetry() const override { return IntKind::hops; }
  std::uint8_t TelemetrySlots() const override { return m_slots; }
  void Start(QueuePair& qp) override;
  void OnAck(QueuePair& qp, const AckHeader& ack) override;

 protected:
  void DoDispose() override;

 private:
  // The rate and its history that belong to the whole path, or to one hop of it.
  struct State {
    double utilisation = 1;
    std::uint64_t rate = 0;
    std::uint32_t stage = 0;  // additive increases since the last multiplicative step
  };
  struct Sample {
    double utilisation = 0;
    std::uint64_t time_ns = 0;
    bool used = false;
  };
  struct Step {
    std::uint64_t rate = 0;
    std::uint32_t stage = 0;
  };

  void Update(QueuePair& qp, const IntField& field, bool full);
  void React(QueuePair& qp, const IntField& field, bool full);
  Sample Measure(const QueuePair& qp, const IntHop& now, const IntHop& before) const;
  void Smooth(State& state, const Sample& sample, std::uint64_t base_rtt_ns) const;
  Step NextStep(const QueuePair& qp, const State& state) const;
  void ReactToPath(QueuePair& qp, const std::array<Sample, kIntSlots>& samples, std::uint32_t hops,
                   bool full);
  void ReactPerHop(QueuePair& qp, const std::array<Sample, kIntSlots>& samples, std::uint32_t hops,
                   bool full);

  ns3::DataRate m_additive, m_lowest;
  double m_target = 0.95;
  std::uint32_t m_stages = 5;
  bool m_fastReact = true, m_multiRate = true, m_sampleFeedback = false;
  std::uint32_t m_multiplier = 1;
  std::uint8_t m_slots = kIntSlots;
  ns3::Ptr<IntRates> m_rates;

  std::uint32_t m_lastSequence = 0;  // 0: no acknowledgement yet
  std::array<IntHop, kIntSlots> m_records{};
  State m_path;
  std::array<State, kIntSlots> m_hops;
};

}  // namespace hpcmoe::rdma
