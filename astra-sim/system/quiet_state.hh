// Moments at which no message is under way and every rank computes or waits for a message that is
// yet to be sent: what exact fast-forward compares and jumps between.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hh"

namespace hpcmoe {

struct QuietState {
  // Per rank the index of the node in work.
  std::vector<std::uint32_t> positions;
  // All else that the ranks' future depends on, free of absolute time and position: what is left of
  // each computation, the state of each unfinished collective, posted receives, positions and stream
  // ids relative to rank 0, round robins, tree parities.
  std::vector<std::uint64_t> signature;
  // Totals so far, per rank.
  std::vector<std::uint64_t> bytes_sent, bytes_received;
};

// How often, and by how much each time, a stretch of the run is added without being simulated.
struct Jump {
  std::uint64_t count = 0;
  TimeNs period_ns = 0;

  TimeNs total_ns() const { return count * period_ns; }
};

// By how much labels grow from one copy of a stretch to the next.
struct LabelStep {
  std::int64_t layer = 0;
  std::uint64_t node_id = 0;
};

}  // namespace hpcmoe
