// A host port's list of queue pairs and the round robin over it.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/types.hh"
#include "network/queue_pair.hh"

namespace hpcmoe {

// One bit per position of a list.
class BitRow {
 public:
  void resize(std::size_t bits) { words_.resize((bits + 63) / 64, 0); }
  void set(std::size_t i, bool value) {
    const std::uint64_t bit = std::uint64_t{1} << (i & 63);
    words_[i >> 6] = value ? words_[i >> 6] | bit : words_[i >> 6] & ~bit;
  }
  // First set position in [from, to), or `to`.
  std::size_t find(std::size_t from, std::size_t to) const {
    if (from >= to) return to;
    std::size_t word = from >> 6;
    std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from & 63));
    const std::size_t last = (to - 1) >> 6;
    while (bits == 0) {
      if (word == last) return to;
      bits = words_[++word];
    }
    const std::size_t found = (word << 6) + static_cast<std::size_t>(std::countr_zero(bits));
    return found < to ? found : to;
  }

 private:
  std::vector<std::uint64_t> words_;
};

struct Nic {
  std::vector<std::uint32_t> flows;  // in order of creation; finished ones leave late
  std::vector<TimeNs> next_avail;    // by list position: earliest start of the next packet by pacing
  BitRow sendable;                   // bytes left and not bound by the window
  BitRow finished;
  std::uint32_t last_served = 0;
  std::uint32_t port = 0;
  bool wake_pending = false;
  std::uint32_t wake_generation = 0;
  TimeNs wake_time = 0;

  // What serving the flow behind the last one served will touch; mostly it is the next.
  HPCMOE_INLINE void prefetch_next(const QueuePair* queue_pairs) const {
    const std::size_t next = last_served + std::size_t{1};
    if (next >= flows.size()) return;
    __builtin_prefetch(&next_avail[next]);
    __builtin_prefetch(&queue_pairs[flows[next]]);
  }
};

// A host's simulated PCIe pauses.
struct HostPause {
  bool armed = false;
  std::uint32_t made = 0;
};

}  // namespace hpcmoe
