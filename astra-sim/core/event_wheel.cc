#include "core/event_wheel.hh"

#include <algorithm>

namespace hpcmoe {
namespace {

constexpr TimeNs kSmallestWheel = 1024;
constexpr TimeNs kLargestWheel = 65536;  // 256 KiB of slots; farther events go through the heap

}  // namespace

EventWheel::EventWheel(TimeNs horizon_ns) {
  size_ = std::bit_ceil(std::clamp(horizon_ns, kSmallestWheel, kLargestWheel));
  mask_ = static_cast<std::size_t>(size_ - 1);
  tails_.assign(static_cast<std::size_t>(size_), kNil);
  occupied_.assign(static_cast<std::size_t>(size_ / 64), 0);
}

std::uint32_t EventWheel::allocate() {
  ++live_;
  if (free_ == kNil) {
    events_.emplace_back();
    return static_cast<std::uint32_t>(events_.size() - 1);
  }
  const std::uint32_t index = free_;
  free_ = events_[index].next;
  events_[index] = Event{};
  return index;
}

void EventWheel::schedule_far(std::uint32_t index, TimeNs time) {
  far_.push({time, far_sequence_++, index});
  far_next_ = far_.top().time;
}

void EventWheel::admit_far() {
  while (!far_.empty() && far_.top().time - now_ < size_) {
    const Far event = far_.top();
    far_.pop();
    append(event.index, event.time);
  }
  far_next_ = far_.empty() ? kNever : far_.top().time;
}

}  // namespace hpcmoe
