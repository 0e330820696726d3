// Stands in for the packet engine around one congestion controller: ACKs are handed in by the test,
// timers fire in order of time, then of arming.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/event_wheel.hh"
#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"
#include "network/queue_pair.hh"

namespace hpcmoe::testing {

template <class Control>
class ControllerBench {
 public:
  static constexpr std::uint32_t kFlow = 0;

  // The controller keeps a reference to the bench's copy of the parameters.
  ControllerBench(const NetworkParams& params, RateBps rate, RateBps max_rate)
      : params_(params), control_(params_) {
    begin(rate, max_rate);
  }
  ControllerBench(const ControllerBench&) = delete;

  // A new flow in the place of the old one.
  void begin(RateBps rate, RateBps max_rate) {
    qp = QueuePair{};
    qp.size = 1'000'000'000;
    qp.rate = rate;
    qp.max_rate = max_rate;
    control_.on_begin(*this, kFlow);
  }
  void finish() { control_.on_finish(kFlow); }
  void mark_at(TimeNs time) {
    run_to(time);
    control_.on_mark(*this, kFlow);
  }
  void ack(const AckInfo& info) { control_.on_ack(*this, kFlow, info); }

  // Runs the timers up to and including `time`.
  void run_to(TimeNs time) {
    while (true) {
      const auto first = std::min_element(timers_.begin(), timers_.end(), [](auto& a, auto& b) {
        return a.time < b.time;  // the first of equals is the one armed first
      });
      if (first == timers_.end() || first->time > time) break;
      const Timer timer = *first;
      timers_.erase(first);
      now_ = timer.time;
      control_.on_timer(*this, timer.event);
    }
    now_ = time;
  }
  RateBps rate_at(TimeNs time) {
    run_to(time);
    return qp.rate;
  }

  // What a controller asks of the engine.
  TimeNs now() const { return now_; }
  QueuePair& queue_pair(std::uint32_t) { return qp; }
  RateBps int_rate(std::uint32_t, std::uint32_t hop) const { return hop_rates.at(hop); }
  void set_rate(std::uint32_t, RateBps rate) { qp.rate = rate; }
  void change_rate(std::uint32_t, RateBps rate) { qp.rate = rate; }
  void schedule_control(EventKind kind, std::uint32_t flow, std::uint32_t generation, TimeNs delay) {
    Event event;
    event.kind = kind;
    event.flow = flow;
    event.seq = generation;
    timers_.push_back({now_ + delay, event});
  }

  QueuePair qp;
  std::vector<RateBps> hop_rates;

 private:
  struct Timer {
    TimeNs time;
    Event event;
  };
  NetworkParams params_;
  Control control_;
  std::vector<Timer> timers_;
  TimeNs now_ = 0;
};

}  // namespace hpcmoe::testing
