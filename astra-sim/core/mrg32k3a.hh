// L'Ecuyer's combined multiple recursive generator MRG32k3a with jumps by stream and substream,
// as ns-3 uses it: stream s starts s * 2^127 steps after the seed, run r another r * 2^76.
#pragma once

#include <array>
#include <cstdint>

namespace hpcmoe {

class Mrg32k3a {
 public:
  // Seed 1 in all six words, then jumped to (stream, run 1).
  explicit Mrg32k3a(std::uint64_t stream, std::uint64_t seed = 1);

  double next();  // uniform in (0, 1]
  void skip_streams(std::uint64_t count);

  // The first number of this stream, leaving the generator where it is.
  double peek() const;

 private:
  using Vector = std::array<std::uint64_t, 3>;
  Vector x_, y_;
};

// Hands out one number per stream: draw k is the first number of stream base + k. Streams that are
// used up without their number being looked at cost nothing until the next draw.
class StreamPerDraw {
 public:
  StreamPerDraw(std::uint64_t base, std::uint64_t seed) : generator_(base, seed) {}
  void skip() { ++skipped_; }
  double draw();

 private:
  Mrg32k3a generator_;
  std::uint64_t skipped_ = 0;
};

}  // namespace hpcmoe
