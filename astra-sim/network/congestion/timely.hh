// TIMELY (CC_MODE 7): the gradient of the round-trip time sets the rate. The ns-3 RDMA model never
// writes the time stamp that the sender subtracts, so its "round-trip time" is the absolute time;
// with timely_stamp = build time the packet's own stamp is used, as the paper means it.
#pragma once

#include <algorithm>
#include <vector>

#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"
#include "network/queue_pair.hh"

namespace hpcmoe {

class Timely {
 public:
  static constexpr bool kReadsInt = false;
  static std::uint32_t int_bytes(const NetworkParams&) { return 8; }  // a 64-bit time stamp
  explicit Timely(const NetworkParams& p) : p_(&p) {}

  template <class Engine>
  void on_begin(Engine& engine, std::uint32_t flow) {
    if (flow >= states_.size()) states_.resize(flow + 1);
    states_[flow] = State{};
    states_[flow].rate = engine.queue_pair(flow).rate;
  }
  template <class Engine>
  void on_mark(Engine&, std::uint32_t) {}
  template <class Engine>
  bool on_timer(Engine&, const Event&) {
    return false;
  }
  void on_finish(std::uint32_t) {}

  template <class Engine>
  void on_ack(Engine& engine, std::uint32_t flow, const AckInfo& ack) {
    State& s = states_[flow];
    if (ack.seq <= s.last_seq) return;
    const QueuePair& qp = engine.queue_pair(flow);
    const auto next = static_cast<std::uint32_t>(qp.snd_nxt);
    const TimeNs rtt = engine.now() - ack.stamp_ns;
    if (s.last_seq != 0) engine.set_rate(flow, update(s, qp, rtt));
    if (next > s.last_seq) {
      s.last_seq = next;
      s.last_rtt = rtt;
    }
  }

 private:
  static constexpr double kAlpha = 0.875, kBeta = 0.8;
  static constexpr TimeNs kLowNs = 50'000, kHighNs = 500'000, kMinRttNs = 20'000;
  static constexpr std::uint32_t kFastSteps = 5;

  struct State {
    RateBps rate = 0;
    double difference = 0;
    TimeNs last_rtt = 0;
    std::uint32_t last_seq = 0, steps = 0;
  };

  RateBps update(State& s, const QueuePair& qp, TimeNs rtt) const {
    const auto change =
        static_cast<double>(static_cast<std::int64_t>(rtt) - static_cast<std::int64_t>(s.last_rtt));
    const double difference = (1 - kAlpha) * s.difference + kAlpha * change;
    const double gradient = difference / static_cast<double>(kMinRttNs);
    double factor = 0;
    bool up = true;
    if (rtt >= kLowNs) {
      if (rtt > kHighNs) {
        factor = 1 - kBeta * (1 - static_cast<double>(kHighNs) / static_cast<double>(rtt));
        up = false;
      } else if (gradient > 0) {
        factor = std::max(0.0, 1 - kBeta * gradient);
        up = false;
      }
    }
    if (up) {
      const RateBps step = s.steps < kFastSteps ? p_->rate_ai_bps : p_->rate_hai_bps;
      s.rate = std::min(qp.max_rate, s.rate + step);
      ++s.steps;
    } else {
      const auto cut = static_cast<RateBps>(static_cast<double>(s.rate) * factor);
      s.rate = std::max(p_->min_rate_bps, cut);
      s.steps = 0;
    }
    s.difference = difference;
    return s.rate;
  }

  const NetworkParams* p_;
  std::vector<State> states_;
};

}  // namespace hpcmoe
