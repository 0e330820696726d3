// Hashes that decide paths and keyed random numbers.
#pragma once

#include <bit>
#include <cstdint>

namespace hpcmoe {

// MurmurHash3 (x86, 32 bit) of three little-endian words, the flow hash of ECMP.
constexpr std::uint32_t murmur3_words(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2,
                                      std::uint32_t seed) {
  std::uint32_t h = seed;
  for (std::uint32_t k : {w0, w1, w2}) {
    k = std::rotl(k * 0xcc9e2d51U, 15) * 0x1b873593U;
    h = std::rotl(h ^ k, 13) * 5 + 0xe6546b64U;
  }
  h ^= 12;  // length in bytes
  h = (h ^ (h >> 16)) * 0x85ebca6bU;
  h = (h ^ (h >> 13)) * 0xc2b2ae35U;
  return h ^ (h >> 16);
}

// One round of the splitmix64 finaliser: a bijection that spreads every input bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Uniform number in [0, 1) that depends on nothing but its keys: the same packet of the same port
// draws the same number whatever else the simulation does.
constexpr double keyed_uniform(std::uint64_t seed, std::uint64_t identity, std::uint64_t count) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t key = mix64(mix64(seed * kOdd + 1) ^ (identity * kOdd));
  const std::uint64_t bits = mix64(key + count * kOdd);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace hpcmoe
