// Ends of GPU computations, all ranks together: those of one tick are handled in rank order, however
// they came about. One backend timer serves a tick. This makes what follows a quiet moment depend on
// the ranks' states alone and not on the order in which they got there.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "system/event_table.hh"

namespace hpcmoe {

class ComputeClock {
 public:
  ComputeClock(Timers& timers, std::uint32_t ranks) : timers_(timers), id_(ranks), nodes_(ranks, kIdle) {}

  // The backend's name for this clock's timers; the ranks have the smaller ones.
  std::uint32_t id() const { return id_; }
  void start(std::uint32_t rank, std::uint32_t node, TimeNs runtime_ns);

  // Ends what ends now: calls done(rank, node) in rank order.
  template <class Done>
  void drain(Done&& done) {
    const auto now = ticks_.begin();
    const std::vector<std::uint32_t> ranks = std::move(now->second);
    ticks_.erase(now);
    computing_ -= static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t rank : ranks) {
      const std::uint32_t node = nodes_[rank];
      nodes_[rank] = kIdle;
      done(rank, node);
    }
  }

  std::uint32_t computing() const { return computing_; }  // ranks
  std::uint64_t pending_timers() const { return ticks_.size(); }
  bool is_computing(std::uint32_t rank) const { return nodes_[rank] != kIdle; }
  void move(std::uint32_t rank, std::uint32_t node) { nodes_[rank] = node; }
  // Per rank what is left of its computation, or kNever.
  std::vector<TimeNs> remaining_ns() const;

 private:
  static constexpr std::uint32_t kIdle = ~std::uint32_t{0};

  Timers& timers_;
  std::uint32_t id_;
  std::vector<std::uint32_t> nodes_;                    // by rank: the node it computes
  std::map<TimeNs, std::vector<std::uint32_t>> ticks_;  // ranks in ascending order
  std::uint32_t computing_ = 0;
};

}  // namespace hpcmoe
