// Shared-buffer accounting of a switch and its PFC thresholds. All arithmetic is in unsigned 32-bit
// numbers that wrap, as the model prescribes: when headroom and reserve exceed the buffer, the
// threshold wraps to a huge value and PFC never acts.
//
// Left out: classes other than 3 (PFC frames are not accounted), egress admission (always passes).
#pragma once

#include <algorithm>
#include <cstdint>

#include "network/port.hh"

namespace hpcmoe {

constexpr std::uint32_t kReserveBytes = 4096;       // per port
constexpr std::uint32_t kResumeOffsetBytes = 3072;  // below the threshold before a resume

struct SharedBuffer {
  std::uint32_t available = 0;  // buffer - headroom of all ports - reserve of all ports
  std::uint32_t shared_used = 0;
  std::uint32_t node = 0;

  std::uint32_t threshold(const Port& in) const { return (available - shared_used) >> in.alpha_shift; }
  static std::uint32_t used(const Port& in) {
    return in.ingress_bytes > kReserveBytes ? in.ingress_bytes - kReserveBytes : 0;
  }

  bool rejects(const Port& in, std::uint32_t size) const {
    return size + used(in) > threshold(in) && size + in.headroom_used > in.headroom;
  }

  // A packet that is forwarded at once leaves the accounts as they were, unless it is refused, goes
  // to the headroom or makes this switch pause or resume its neighbour on the way.
  bool passes_untouched(const Port& in, std::uint32_t size) const {
    const std::uint32_t total = in.ingress_bytes + size;
    const std::uint32_t beyond = total > kReserveBytes ? total - kReserveBytes : 0;
    const std::uint32_t left = available - shared_used;
    const std::uint32_t limit = (left - std::min(size, beyond)) >> in.alpha_shift;
    return in.headroom_used == 0 && !in.paused_by_us && beyond < limit &&
           size + used(in) <= left >> in.alpha_shift;
  }

  void admit(Port& in, std::uint32_t size) {
    const std::uint32_t total = in.ingress_bytes + size;
    if (total <= kReserveBytes) {
      in.ingress_bytes = total;
    } else if (total - kReserveBytes > threshold(in)) {
      in.headroom_used += size;
    } else {
      in.ingress_bytes = total;
      shared_used += std::min(size, total - kReserveBytes);
    }
  }

  void release(Port& in, std::uint32_t size) {
    const std::uint32_t from_headroom = std::min(in.headroom_used, size);
    const std::uint32_t from_shared = std::min(size - from_headroom, used(in));
    in.headroom_used -= from_headroom;
    in.ingress_bytes -= size - from_headroom;
    shared_used -= from_shared;
  }

  bool wants_pause(const Port& in) const { return in.headroom_used > 0 || used(in) >= threshold(in); }
  bool wants_resume(const Port& in) const {
    return in.headroom_used == 0 && (used(in) == 0 || used(in) + kResumeOffsetBytes <= threshold(in));
  }
};

}  // namespace hpcmoe
