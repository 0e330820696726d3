// Serialization time of a packet, rounded as the RDMA model of ns-3 rounds it.
#pragma once

#include <cstdint>

#include "core/types.hh"

namespace hpcmoe {

// bits / bps in Q64.64 fixed point (floor), times 1e9, rounded to the nearest nanosecond; an exact
// half goes down unless bits / bps has no more than 64 fractional bits. Always integer arithmetic,
// so it gives the same result on every machine. Precondition: bps > 0.
inline TimeNs tx_time_ns(std::uint32_t bytes, RateBps bps) {
  __extension__ using U128 = unsigned __int128;
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  const std::uint64_t bits = std::uint64_t{bytes} * 8;
  const std::uint64_t whole_seconds = bits / bps;
  const U128 remainder = U128{bits % bps} << 64;
  const auto fraction = static_cast<std::uint64_t>(remainder / bps);
  const U128 rounded = U128{fraction} * kNsPerSecond + (U128{1} << 63);
  return whole_seconds * kNsPerSecond + static_cast<std::uint64_t>(rounded >> 64);
}

}  // namespace hpcmoe
