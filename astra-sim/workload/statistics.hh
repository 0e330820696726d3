// Times of one rank's nodes and what is reported of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/types.hh"
#include "system/parameters.hh"
#include "workload/trace.hh"

namespace hpcmoe {

class NodeTimes {
 public:
  explicit NodeTimes(std::size_t nodes) : spans_(nodes, {kNever, kNever}) {}

  void start(std::uint32_t node, TimeNs tick) { spans_[node].first = tick; }
  void end(std::uint32_t node, TimeNs tick) { spans_[node].second = tick; }
  void add_modelled(TimeNs runtime_ns) { modelled_ns_ += runtime_ns; }

  bool has_ended(std::uint32_t node) const { return spans_[node].second != kNever; }
  const std::pair<TimeNs, TimeNs>& span(std::uint32_t node) const { return spans_[node]; }
  TimeNs modelled_ns() const { return modelled_ns_; }

 private:
  std::vector<std::pair<TimeNs, TimeNs>> spans_;  // start and end tick by node
  TimeNs modelled_ns_ = 0;  // run times of non-CPU nodes that replayed or used the roofline
};

// Length of the union of half-open intervals.
TimeNs union_length(std::vector<std::pair<TimeNs, TimeNs>> spans);

struct WorkloadTotals {
  TimeNs wall_ns = 0;  // largest end tick
  TimeNs cpu_ns = 0, gpu_ns = 0, comm_ns = 0, remote_mem_ns = 0;
  // Averages over compute nodes weighted by their duration; the first three in percent.
  double compute_bound_percent = 0, compute_utilization_percent = 0;
  double memory_utilization_percent = 0, operation_intensity = 0;
};

WorkloadTotals summarize(const RankTrace& trace, const NodeTimes& times, const SystemParams& params);

}  // namespace hpcmoe
