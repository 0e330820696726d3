// A network without contention: a message of B bytes takes 500 + floor(B / 50) ns, at which instant
// sender and receiver learn of it. Timers are events of the same queue, FIFO at equal times.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "system/network_api.hh"

namespace hpcmoe::testing {

struct SentMessage {
  TimeNs time_ns = 0;
  FlowRequest request;
};

class IdealNetwork final : public NetworkBackend {
 public:
  TimeNs now() const override { return now_; }
  void schedule_timer(std::uint32_t rank, TimeNs delay_ns) override {
    ++timers_;
    push(delay_ns, {true, rank});
  }
  void start_flow(const FlowRequest& request) override {
    sent_.push_back({now_, request});
    push(500 + request.bytes / 50, {false, request.token});
  }
  void stop() override { stopped_ = true; }

  void run(NetworkClient& client) {
    while (!events_.empty() && !stopped_) {
      const auto [time, order, what] = events_.top();
      events_.pop();
      now_ = time;
      if (what.is_timer) {
        client.on_timer(static_cast<std::uint32_t>(what.value));
      } else {
        client.on_flow_finished(what.value);
      }
    }
  }

  bool stopped() const { return stopped_; }
  std::uint64_t timers() const { return timers_; }
  const std::vector<SentMessage>& sent() const { return sent_; }

 private:
  struct What {
    bool is_timer;
    std::uint64_t value;  // rank or token
  };
  struct Event {
    TimeNs time;
    std::uint64_t order;
    What what;
    bool operator>(const Event& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };

  void push(TimeNs delay_ns, const What& what) { events_.push({now_ + delay_ns, next_order_++, what}); }

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  TimeNs now_ = 0;
  std::uint64_t next_order_ = 0;
  std::uint64_t timers_ = 0;
  bool stopped_ = false;
  std::vector<SentMessage> sent_;
};

}  // namespace hpcmoe::testing
