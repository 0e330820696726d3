// What a congestion controller sees of an ACK, and how INT records are packed.
#pragma once

#include <array>
#include <cstdint>

#include "core/types.hh"

namespace hpcmoe {

constexpr std::uint32_t kMaxIntSlots = 8;

// One switch's record: time (24 bits, ns), bytes sent (20 bits, units of 128 B), queue (17 bits,
// units of 80 B). The link's rate is a fact of the path and is not carried.
struct IntRecord {
  std::uint64_t packed = 0;

  static IntRecord make(TimeNs time, std::uint64_t byte_units, std::uint64_t queue_units) {
    return {(time & 0xFFFFFF) | ((byte_units & 0xFFFFF) << 24) | ((queue_units & 0x1FFFF) << 44)};
  }
  std::uint32_t time() const { return packed & 0xFFFFFF; }
  std::uint32_t bytes() const { return (packed >> 24) & 0xFFFFF; }
  std::uint32_t queue() const { return (packed >> 44) & 0x1FFFF; }
};

using IntRecords = std::array<IntRecord, kMaxIntSlots>;

struct AckInfo {
  std::uint32_t seq = 0;  // cumulative
  bool marked = false;
  std::uint8_t int_hops = 0;  // switches that added a record
  TimeNs stamp_ns = 0;        // when the data packet was built, if the profile stamps it
  const IntRecords* records = nullptr;
};

}  // namespace hpcmoe
