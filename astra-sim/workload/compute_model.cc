#include "workload/compute_model.hh"

#include <algorithm>

namespace hpcmoe {

RooflinePoint roofline(const SystemParams& params, const TraceNode& node) {
  // The order of these operations decides how the result is truncated; keep it.
  const double peak = params.peak_perf_tflops * 1e12;
  const double bandwidth = params.local_mem_bw_gbps * 1e9;
  const double intensity = static_cast<double>(node.num_ops) / static_cast<double>(node.tensor_bytes);
  const double rate = std::min(bandwidth * intensity, peak);
  const double seconds = static_cast<double>(node.num_ops) / rate;
  return {seconds, intensity, rate / peak, rate / intensity / bandwidth, bandwidth * intensity >= peak};
}

TimeNs replay_ns(const TraceNode& node) { return node.duration_us == 0 ? 1 : node.duration_us * 1000; }

bool uses_roofline(const SystemParams& params, const TraceNode& node) {
  return params.roofline_enabled && !params.replay_only && node.type == NodeType::comp && !node.is_cpu_op;
}

bool takes_no_time(const SystemParams& params, const TraceNode& node) {
  if (params.replay_only) return false;
  return node.type == NodeType::invalid || node.type == NodeType::metadata ||
         (uses_roofline(params, node) && node.tensor_bytes == 0);
}

}  // namespace hpcmoe
