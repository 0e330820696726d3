// DCTCP as a rate controller (CC_MODE 8): the marked share of a window cuts the rate, once per
// round trip; unmarked round trips add to it.
#pragma once

#include <algorithm>
#include <vector>

#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"
#include "network/queue_pair.hh"

namespace hpcmoe {

class Dctcp {
 public:
  static constexpr bool kReadsInt = false;
  static std::uint32_t int_bytes(const NetworkParams&) { return 0; }
  explicit Dctcp(const NetworkParams& p) : p_(&p) {}

  template <class Engine>
  void on_begin(Engine&, std::uint32_t flow) {
    if (flow >= states_.size()) states_.resize(flow + 1);
    states_[flow] = State{};
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
    const QueuePair& qp = engine.queue_pair(flow);
    const auto next = static_cast<std::uint32_t>(qp.snd_nxt);
    bool new_batch = false;
    s.marks += ack.marked ? 1 : 0;
    if (ack.seq > s.last_seq) {
      new_batch = true;
      close_batch(s, next, ack.seq);
    }
    if (s.reduced && ack.seq > s.high) s.reduced = false;
    if (ack.marked && !s.reduced) {
      const auto cut = static_cast<RateBps>(static_cast<double>(qp.rate) * (1 - s.alpha / 2));
      engine.set_rate(flow, std::max(p_->min_rate_bps, cut));
      s.reduced = true;
      s.high = next;
    }
    if (!s.reduced && new_batch) {
      engine.set_rate(flow, std::min(qp.max_rate, qp.rate + p_->dctcp_rate_ai_bps));
    }
  }

 private:
  struct State {
    double alpha = 1;
    std::uint32_t last_seq = 0, high = 0, marks = 0, batch = 0;
    bool reduced = false;
  };

  void close_batch(State& s, std::uint32_t next, std::uint32_t seq) const {
    if (s.last_seq == 0) {
      s.last_seq = next;
      s.batch = next / p_->payload_bytes + 1;
      return;
    }
    const double share = std::min(1.0, static_cast<double>(s.marks) / s.batch);
    s.alpha = (1 - p_->ewma_gain) * s.alpha + p_->ewma_gain * share;
    s.last_seq = next;
    s.marks = 0;
    s.batch = (next - seq) / p_->payload_bytes + 1;
  }

  const NetworkParams* p_;
  std::vector<State> states_;
};

}  // namespace hpcmoe
