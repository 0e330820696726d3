// Units and small types shared by every layer. Units stand in names: _ns, _bytes, _bps.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace hpcmoe {

using TimeNs = std::uint64_t;
using RateBps = std::uint64_t;

// For the few functions of the hot path that the compiler would otherwise not inline, and for those that only
// prefetch: the compiler takes a call of such a function for one without effect and drops it.
#define HPCMOE_INLINE [[gnu::always_inline]] inline

constexpr TimeNs kNever = ~TimeNs{0};
constexpr std::uint32_t kNil = ~std::uint32_t{0};  // no index

// A fault of the input that only the simulator can see. The message is for the user: it names the
// field, the value and what is allowed.
class InputError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// The run cannot go on (no progress is possible, or an end-of-run invariant does not hold).
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hpcmoe
