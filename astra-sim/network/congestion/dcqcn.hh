// DCQCN in its Mellanox flavour (CC_MODE 1): every marked ACK is a congestion notification; one
// timer ages alpha, one cuts the rate, one raises it. Rate changes act at the next packet's pacing.
//
// Left out: the byte counter of the paper, and a separate notification packet.
#pragma once

#include <algorithm>
#include <vector>

#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"
#include "network/queue_pair.hh"

namespace hpcmoe {

class Dcqcn {
 public:
  static constexpr bool kReadsInt = false;
  static std::uint32_t int_bytes(const NetworkParams&) { return 0; }

  explicit Dcqcn(const NetworkParams& p) : p_(&p) {
    if (p.alpha_resume_interval_us == 0 || p.rate_decrease_interval_us == 0 || p.rp_timer_us == 0) {
      throw InputError(
          "ALPHA_RESUME_INTERVAL, RATE_DECREASE_INTERVAL and RP_TIMER must be at least 1 us with "
          "CC_MODE 1 (a timer of 0 never lets time pass)");
    }
  }

  template <class Engine>
  void on_begin(Engine& engine, std::uint32_t flow) {
    if (flow >= states_.size()) states_.resize(flow + 1);
    State fresh;
    fresh.generation = states_[flow].generation + 1;  // timers of the place's last flow are void
    fresh.increase_generation = states_[flow].increase_generation + 1;
    fresh.target = engine.queue_pair(flow).rate;
    states_[flow] = fresh;
  }

  template <class Engine>
  void on_mark(Engine& engine, std::uint32_t flow) {
    State& s = states_[flow];
    QueuePair& qp = engine.queue_pair(flow);
    if (qp.done) return;
    s.mark_for_alpha = s.mark_for_decrease = true;
    if (!s.first_mark) return;
    s.first_mark = false;
    s.alpha = 1;
    s.mark_for_alpha = false;
    arm(engine, EventKind::control_alpha, flow, p_->alpha_resume_interval_us * kUs);
    arm(engine, EventKind::control_decrease, flow, p_->rate_decrease_interval_us * kUs + 1);
    s.target = qp.rate;
  }

  template <class Engine>
  void on_ack(Engine&, std::uint32_t, const AckInfo&) {}

  // False: the timer had been cancelled.
  template <class Engine>
  bool on_timer(Engine& engine, const Event& event) {
    const State& s = states_[event.flow];
    const bool raises = event.kind == EventKind::control_increase;
    if (event.seq != (raises ? s.increase_generation : s.generation)) return false;
    if (raises) {
      increase(engine, event.flow);
    } else if (event.kind == EventKind::control_alpha) {
      age_alpha(engine, event.flow);
    } else {
      decrease(engine, event.flow);
    }
    return true;
  }

  void on_finish(std::uint32_t flow) {
    ++states_[flow].generation;
    ++states_[flow].increase_generation;
  }

 private:
  static constexpr TimeNs kUs = 1000;

  struct State {
    double alpha = 1;
    RateBps target = 0;
    std::uint32_t stage = 0;
    std::uint32_t generation = 0;  // of the alpha and decrease timers
    std::uint32_t increase_generation = 0;
    bool first_mark = true;
    bool mark_for_alpha = false;
    bool mark_for_decrease = false;
  };

  template <class Engine>
  void arm(Engine& engine, EventKind kind, std::uint32_t flow, TimeNs delay) {
    const State& s = states_[flow];
    engine.schedule_control(
        kind, flow, kind == EventKind::control_increase ? s.increase_generation : s.generation, delay);
  }

  template <class Engine>
  void age_alpha(Engine& engine, std::uint32_t flow) {
    State& s = states_[flow];
    const double kept = (1 - p_->ewma_gain) * s.alpha;
    s.alpha = s.mark_for_alpha ? kept + p_->ewma_gain : kept;
    s.mark_for_alpha = false;
    arm(engine, EventKind::control_alpha, flow, p_->alpha_resume_interval_us * kUs);
  }

  template <class Engine>
  void decrease(Engine& engine, std::uint32_t flow) {
    arm(engine, EventKind::control_decrease, flow, p_->rate_decrease_interval_us * kUs);
    State& s = states_[flow];
    if (!s.mark_for_decrease) return;
    const RateBps rate = engine.queue_pair(flow).rate;
    if (p_->clamp_target_rate || s.stage != 0) s.target = rate;
    const auto cut = static_cast<RateBps>(static_cast<double>(rate) * (1 - s.alpha / 2));
    engine.set_rate(flow, std::max(p_->min_rate_bps, cut));
    s.stage = 0;
    s.mark_for_decrease = false;
    ++s.increase_generation;  // cancels the running increase timer
    arm(engine, EventKind::control_increase, flow, p_->rp_timer_us * kUs);
  }

  template <class Engine>
  void increase(Engine& engine, std::uint32_t flow) {
    arm(engine, EventKind::control_increase, flow, p_->rp_timer_us * kUs);
    State& s = states_[flow];
    const QueuePair& qp = engine.queue_pair(flow);
    if (s.stage >= p_->fast_recovery_times) {
      const RateBps step = s.stage == p_->fast_recovery_times ? p_->rate_ai_bps : p_->rate_hai_bps;
      s.target = std::min(s.target + step, qp.max_rate);
    }
    engine.set_rate(flow, qp.rate / 2 + s.target / 2);
    ++s.stage;
  }

  const NetworkParams* p_;
  std::vector<State> states_;
};

}  // namespace hpcmoe
