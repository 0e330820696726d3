#include "system/compute_clock.hh"

#include <algorithm>

namespace hpcmoe {

void ComputeClock::start(std::uint32_t rank, std::uint32_t node, TimeNs runtime_ns) {
  auto [slot, fresh] = ticks_.try_emplace(timers_.now() + runtime_ns);
  auto& ranks = slot->second;
  ranks.insert(std::upper_bound(ranks.begin(), ranks.end(), rank), rank);
  nodes_[rank] = node;
  ++computing_;
  if (fresh) timers_.ask(id_, runtime_ns);
}

std::vector<TimeNs> ComputeClock::remaining_ns() const {
  std::vector<TimeNs> remaining(nodes_.size(), kNever);
  for (const auto& [tick, ranks] : ticks_) {
    for (std::uint32_t rank : ranks) remaining[rank] = tick - timers_.now();
  }
  return remaining;
}

}  // namespace hpcmoe
