#include "workload/statistics.hh"

#include <algorithm>
#include <array>

#include "workload/compute_model.hh"

namespace hpcmoe {

namespace {

enum class TimeClass : std::uint8_t { cpu, gpu, comm, remote_mem, uncounted };
constexpr std::size_t kCounted = 4;

TimeClass class_of(const TraceNode& node) {
  switch (node.type) {
    case NodeType::comp:
      return node.is_cpu_op ? TimeClass::cpu : TimeClass::gpu;
    case NodeType::coll:
    case NodeType::send:
    case NodeType::recv:
      return TimeClass::comm;
    case NodeType::mem_load:
    case NodeType::mem_store:
      return TimeClass::remote_mem;
    case NodeType::invalid:
    case NodeType::metadata:
      break;
  }
  return TimeClass::uncounted;
}

void add_roofline_averages(const RankTrace& trace, const NodeTimes& times, const SystemParams& params,
                           WorkloadTotals& totals) {
  double weight = 1;  // upstream divides by the sum of durations plus one
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    if (node.type != NodeType::comp || !times.has_ended(i)) continue;
    const auto duration = static_cast<double>(times.span(i).second - times.span(i).first);
    weight += duration;
    if (!uses_roofline(params, node) || takes_no_time(params, node)) continue;
    const RooflinePoint point = roofline(params, node);
    totals.compute_bound_percent += point.compute_bound ? duration : 0;
    totals.compute_utilization_percent += point.compute_utilization * duration;
    totals.memory_utilization_percent += point.memory_utilization * duration;
    totals.operation_intensity += point.intensity * duration;
  }
  totals.compute_bound_percent *= 100 / weight;
  totals.compute_utilization_percent *= 100 / weight;
  totals.memory_utilization_percent *= 100 / weight;
  totals.operation_intensity /= weight;
}

}  // namespace

TimeNs union_length(std::vector<std::pair<TimeNs, TimeNs>> spans) {
  std::sort(spans.begin(), spans.end());
  TimeNs length = 0;
  TimeNs covered_to = 0;
  for (const auto& [start, end] : spans) {
    const TimeNs from = std::max(start, covered_to);
    if (end <= from) continue;
    length += end - from;
    covered_to = end;
  }
  return length;
}

WorkloadTotals summarize(const RankTrace& trace, const NodeTimes& times, const SystemParams& params) {
  WorkloadTotals totals;
  std::array<std::vector<std::pair<TimeNs, TimeNs>>, kCounted> spans;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    if (!times.has_ended(i)) continue;
    totals.wall_ns = std::max(totals.wall_ns, times.span(i).second);
    const TimeClass time_class = class_of(trace.nodes[i]);
    if (time_class != TimeClass::uncounted) {
      spans[static_cast<std::size_t>(time_class)].push_back(times.span(i));
    }
  }
  totals.cpu_ns = union_length(std::move(spans[0]));
  totals.gpu_ns = union_length(std::move(spans[1]));
  totals.comm_ns = union_length(std::move(spans[2]));
  totals.remote_mem_ns = union_length(std::move(spans[3]));
  if (params.roofline_enabled) add_roofline_averages(trace, times, params, totals);
  return totals;
}

}  // namespace hpcmoe
