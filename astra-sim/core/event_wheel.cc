#include "core/event_wheel.hh"

#include <algorithm>

namespace hpcmoe {
namespace {

constexpr TimeNs kSmallestWheel = 1024;
constexpr TimeNs kLargestWheel = 65536;  // 1 MiB of slots; farther events go through the heap

}  // namespace

EventWheel::EventWheel(TimeNs horizon_ns) {
  size_ = std::bit_ceil(std::clamp(horizon_ns, kSmallestWheel, kLargestWheel));
  mask_ = static_cast<std::size_t>(size_ - 1);
  slots_.resize(static_cast<std::size_t>(size_));
  occupied_.assign(static_cast<std::size_t>(size_ / 64), 0);
}

void EventWheel::schedule_far(const Event& event, TimeNs time) {
  far_.push({time, far_sequence_++, event});
  far_next_ = far_.top().time;
}

void EventWheel::admit_far() {
  while (!far_.empty() && far_.top().time - now_ < size_) {
    append(far_.top().event, far_.top().time);
    far_.pop();
  }
  far_next_ = far_.empty() ? kNever : far_.top().time;
}

}  // namespace hpcmoe
