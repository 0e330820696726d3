// Run times of nodes that are not simulated in detail: recorded durations and the roofline.
#pragma once

#include <cstdint>

#include "core/types.hh"
#include "system/parameters.hh"
#include "workload/trace.hh"

namespace hpcmoe {

// What the roofline says of one compute node.
struct RooflinePoint {
  double seconds = 0;              // run time
  double intensity = 0;            // FLOP per byte
  double compute_utilization = 0;  // 0 .. 1, share of the peak rate
  double memory_utilization = 0;   // 0 .. 1, share of the memory bandwidth
  bool compute_bound = false;

  TimeNs runtime_ns() const { return static_cast<TimeNs>(seconds * 1e9); }
};

// Performance is min(bandwidth * intensity, peak) with bandwidth in 1e9 B/s and peak in 1e12
// FLOP/s. The node has num_ops > 0 and tensor_bytes > 0.
RooflinePoint roofline(const SystemParams& params, const TraceNode& node);

// Recorded duration; a node that records none takes 1 ns.
TimeNs replay_ns(const TraceNode& node);

bool uses_roofline(const SystemParams& params, const TraceNode& node);

// Nodes that end at the instant they start and trigger nothing.
bool takes_no_time(const SystemParams& params, const TraceNode& node);

}  // namespace hpcmoe
