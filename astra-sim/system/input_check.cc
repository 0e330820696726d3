#include "system/input_check.hh"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "system/messenger.hh"
#include "system/remote_memory.hh"
#include "workload/compute_model.hh"
#include "workload/dependency_graph.hh"

namespace hpcmoe {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& field, const std::string& value,
                         const std::string& allowed) {
  throw InputError((where.empty() ? "" : where + ": ") + field + " = " + value + "; allowed: " + allowed);
}

template <class Number>
void check_range(const std::string& field, Number value, Number low, Number high) {
  if (value >= low && value <= high) return;
  refuse("", field, std::to_string(value), std::to_string(low) + " to " + std::to_string(high));
}

template <class Number>
void check_at_least(const std::string& field, Number value, Number low) {
  if (value < low) refuse("", field, std::to_string(value), "at least " + std::to_string(low));
}

void check_not_negative(const std::string& field, double value) {
  if (!std::isfinite(value) || value < 0) refuse("", field, std::to_string(value), "a finite number >= 0");
}

std::string joined(const std::vector<std::uint32_t>& values) {
  std::string text = "[";
  for (const std::uint32_t value : values) {
    if (text.size() > 1) text += ',';
    text += std::to_string(value);
  }
  return text + "]";
}

constexpr double kMinMemoryGbps = 1e-6;  // keeps every delay within 64 bits of ns
constexpr std::size_t kMaxDims = 32;     // involved_dims is a mask of 32 bits

void check_dims(const SystemParams& params, std::size_t ranks) {
  std::uint64_t product = 1;
  for (const std::uint32_t dim : params.logical_dims) {
    product *= dim;
    if (product == 0 || product > ranks) break;
  }
  const std::size_t dims = params.logical_dims.size();
  if (dims > 0 && dims <= kMaxDims && product == ranks) return;
  refuse("", "logical_dims", joined(params.logical_dims),
         "1 to " + std::to_string(kMaxDims) + " dimensions with the number of ranks, " +
             std::to_string(ranks) + ", as their product");
}

void check_implementation(const std::string& field, const CollectiveImpl& impl) {
  if (static_cast<unsigned>(impl.algorithm) > static_cast<unsigned>(Algorithm::double_binary_tree)) {
    refuse("", field, std::to_string(static_cast<unsigned>(impl.algorithm)), "algorithm 0 to 3");
  }
  if (impl.algorithm == Algorithm::direct && impl.window != -1 && impl.window < 1) {
    refuse("", field, "direct with window " + std::to_string(impl.window), "a window of at least 1");
  }
  if (impl.algorithm == Algorithm::double_binary_tree && impl.one_dim) {
    refuse("", field, "double binary tree on one dimension of all ranks",
           "ring, direct, halving_doubling there");
  }
}

void check_implementations(const std::string& field, const std::vector<CollectiveImpl>& impls,
                           std::size_t dims) {
  const bool one_dim = !impls.empty() && impls.front().one_dim;
  if (impls.size() > dims && !one_dim) {
    refuse("", field, std::to_string(impls.size()) + " entries",
           "at most one per logical dimension, " + std::to_string(dims));
  }
  for (const CollectiveImpl& impl : impls) check_implementation(field, impl);
  if (one_dim) return;  // the other entries are ignored
  if (std::any_of(impls.begin(), impls.end(), [](const CollectiveImpl& impl) { return impl.one_dim; })) {
    refuse("", field, "a one-dimensional form after the first entry", "it alone, as the first entry");
  }
}

void check_group(std::int32_t id, const std::vector<std::uint32_t>& members, std::size_t ranks) {
  const std::string field = "communicator group " + std::to_string(id);
  if (id < 1) refuse("", field, joined(members), "ids of at least 1 (0 stands for all ranks)");
  std::vector<std::uint32_t> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!sorted.empty() && distinct && sorted.back() < ranks) return;
  refuse("", field, joined(members), "one or more distinct ranks below " + std::to_string(ranks));
}

void check_memory(const SystemParams& params) {
  check_range<std::uint32_t>("memory_type", params.memory_type, kNoRemoteMemory, kMemoryPool);
  if (params.memory_type == kMemoryPerNode) {
    check_at_least<std::uint32_t>("memory_npus_per_node", params.memory_npus_per_node, 1);
  }
}

// The checks of one node. `where` is built only for a message.
class NodeCheck {
 public:
  NodeCheck(const SystemParams& params, const CollectiveLayouts& layouts, std::uint32_t rank,
            const TraceNode& node)
      : params_(params), layouts_(layouts), rank_(rank), node_(node) {}

  void run() const;

 private:
  [[noreturn]] void refuse_field(const std::string& field, const std::string& value,
                                 const std::string& allowed) const {
    refuse("rank " + std::to_string(rank_) + ", node " + std::to_string(node_.id), field, value, allowed);
  }

  void check_duration() const;
  void check_compute() const;
  void check_memory_access() const;
  void check_point_to_point() const;
  void check_group_of_node() const;
  void check_collective() const;
  void check_phase(const Layout& layout, const PlannedPhase& phase) const;

  const SystemParams& params_;
  const CollectiveLayouts& layouts_;
  std::uint32_t rank_;
  const TraceNode& node_;
};

void NodeCheck::run() const {
  check_duration();
  if (params_.replay_only) return;
  const bool communicates =
      node_.type == NodeType::coll || node_.type == NodeType::send || node_.type == NodeType::recv;
  if (communicates && node_.is_cpu_op) refuse_field("is_cpu_op", "true", "false for a communication node");
  switch (node_.type) {
    case NodeType::comp:
      return check_compute();
    case NodeType::coll:
      return check_collective();
    case NodeType::send:
    case NodeType::recv:
      return check_point_to_point();
    case NodeType::mem_load:
    case NodeType::mem_store:
      return check_memory_access();
    case NodeType::invalid:
    case NodeType::metadata:
      return;
  }
  refuse_field("type", std::to_string(static_cast<unsigned>(node_.type)), "0 to 7");
}

void NodeCheck::check_duration() const {
  constexpr std::uint64_t kMaxUs = std::numeric_limits<std::int64_t>::max() / 1000;
  if (node_.duration_us <= kMaxUs) return;
  refuse_field("duration_micros", std::to_string(node_.duration_us), "at most " + std::to_string(kMaxUs));
}

void NodeCheck::check_compute() const {
  if (!uses_roofline(params_, node_) || takes_no_time(params_, node_)) return;
  if (node_.num_ops == 0) refuse_field("num_ops", "0", "at least 1 where tensor_size is not 0");
  for (const auto& [field, value] : {std::pair{"peak_perf_tflops", params_.peak_perf_tflops},
                                     std::pair{"local_mem_bw_gbps", params_.local_mem_bw_gbps}}) {
    if (!(value > 0)) refuse("", field, std::to_string(value), "more than 0 with the roofline model");
  }
  if (roofline(params_, node_).seconds >= 9e9) {
    refuse_field("num_ops", std::to_string(node_.num_ops), "a run time below 9e9 s");
  }
}

void NodeCheck::check_memory_access() const {
  if (params_.memory_type == kNoRemoteMemory) {
    refuse_field("type", node_.type == NodeType::mem_load ? "MEM_LOAD" : "MEM_STORE",
                 "remote memory accesses need a memory_type other than 0");
  }
  check_at_least<std::uint64_t>("remote_mem_bw_gbps", params_.remote_mem_bw_gbps, 1);
}

void NodeCheck::check_point_to_point() const {
  if (node_.peer >= layouts_.ranks() || node_.peer == rank_) {
    refuse_field(node_.type == NodeType::send ? "comm_dst" : "comm_src", std::to_string(node_.peer),
                 "another rank, below " + std::to_string(layouts_.ranks()));
  }
  if (node_.comm_bytes == 0 || node_.comm_bytes > kMaxMessageBytes) {
    refuse_field("comm_size", std::to_string(node_.comm_bytes), "1 to " + std::to_string(kMaxMessageBytes));
  }
}

void NodeCheck::check_group_of_node() const {
  if (node_.group == 0) return;
  const std::string value = std::to_string(node_.group);
  const auto group = params_.groups.find(node_.group);
  if (group == params_.groups.end()) refuse_field("pg_name", value, "0 or the id of a communicator group");
  const std::vector<std::uint32_t>& members = group->second;
  if (std::find(members.begin(), members.end(), rank_) == members.end()) {
    refuse_field("pg_name", value, "a group that this rank belongs to");
  }
}

std::string name_of(CollectiveType op) {
  switch (op) {
    case CollectiveType::all_reduce:
      return "all_reduce";
    case CollectiveType::all_gather:
      return "all_gather";
    case CollectiveType::broadcast:
      return "broadcast";
    case CollectiveType::all_to_all:
      return "all_to_all";
    case CollectiveType::reduce_scatter:
      return "reduce_scatter";
    case CollectiveType::barrier:
      return "barrier";
  }
  return std::to_string(static_cast<unsigned>(op));
}

bool is_supported(CollectiveType op) {
  return op == CollectiveType::all_reduce || op == CollectiveType::all_gather ||
         op == CollectiveType::broadcast || op == CollectiveType::all_to_all ||
         op == CollectiveType::reduce_scatter || op == CollectiveType::barrier;
}

void NodeCheck::check_collective() const {
  const CollectiveType op = node_.comm_type;
  if (!is_supported(op)) refuse_field("comm_type", name_of(op), "0, 2, 5, 6, 7, 9");
  if (op == CollectiveType::broadcast) return;
  if (op == CollectiveType::barrier) {
    if (node_.group != 0)
      refuse_field("pg_name", std::to_string(node_.group), "0: a barrier names dimensions, not a group");
    return;
  }
  check_group_of_node();
  const Scope scope = layouts_.scope_of(node_);
  if (!scope.layout) refuse_field("comm_type", name_of(op), "a collective with a configured implementation");
  const std::uint64_t splits = params_.preferred_dataset_splits;
  const std::uint64_t bytes = node_.comm_bytes;
  const bool gather = op == CollectiveType::all_gather;
  if (gather && (bytes < splits || bytes / splits > kMaxMessageBytes)) {
    refuse_field("comm_size", std::to_string(bytes),
                 "for an all-gather, 1 to " + std::to_string(kMaxMessageBytes) + " bytes in each of the " +
                     std::to_string(splits) + " splits (preferred_dataset_splits)");
  }
  const ChunkSizes chunks = chunk_sizes(op, bytes, splits, layouts_.ranks());
  const std::vector<PlannedPhase> phases = layouts_.phases(scope, op, chunks.bytes);
  if (phases.empty()) {
    refuse_field(
        scope.group == 0 ? "involved_dim" : "pg_name",
        scope.group == 0 ? std::to_string(node_.involved_dims) + " (mask)" : std::to_string(scope.group),
        "a collective of two or more ranks");
  }
  for (const PlannedPhase& phase : phases) check_phase(*scope.layout, phase);
}

void NodeCheck::check_phase(const Layout& layout, const PlannedPhase& phase) const {
  const LayoutDim& dim = layout.dims[phase.dim];
  const bool halving = dim.impl.algorithm == Algorithm::halving_doubling;
  const bool tree = dim.impl.algorithm == Algorithm::double_binary_tree;
  const std::string algorithm = halving ? "halving_doubling" : "double_binary_tree";
  if ((halving || tree) && !std::has_single_bit(dim.size)) {
    refuse_field("comm_type",
                 name_of(phase.op) + " with " + algorithm + " on " + std::to_string(dim.size) + " ranks",
                 "a power of two ranks for this algorithm");
  }
  if (tree && layout.members) {
    refuse_field("comm_type", name_of(phase.op) + " with double_binary_tree on a communicator group",
                 "ring, direct, halving_doubling on groups smaller than the world");
  }
  if (halving && phase.op == CollectiveType::all_to_all) {
    refuse_field("comm_type", "all_to_all with halving_doubling", "ring, direct for all_to_all");
  }
  const std::uint64_t largest = largest_message_bytes(dim.impl.algorithm, phase.op, dim.size, phase.bytes);
  if (largest > kMaxMessageBytes) {
    refuse_field("comm_size",
                 std::to_string(node_.comm_bytes) + " (a message of " + std::to_string(largest) + " bytes)",
                 "messages of at most " + std::to_string(kMaxMessageBytes) + " bytes");
  }
}

void check_trace(std::uint32_t rank, const RankTrace& trace) {
  const std::string where = "rank " + std::to_string(rank);
  const std::size_t nodes = trace.nodes.size();
  if (nodes == 0) refuse(where, "number of trace nodes", "0", "at least 1");
  const bool framed = trace.parent_begin.size() == nodes + 1 && trace.parent_begin.front() == 0 &&
                      trace.parent_begin.back() == trace.parents.size() &&
                      std::is_sorted(trace.parent_begin.begin(), trace.parent_begin.end());
  const bool inside = std::all_of(trace.parents.begin(), trace.parents.end(),
                                  [nodes](std::uint32_t parent) { return parent < nodes; });
  if (!framed || !inside) refuse(where, "parents", "out of range", "indices of this trace's nodes");
  const auto not_ascending =
      std::adjacent_find(trace.nodes.begin(), trace.nodes.end(),
                         [](const TraceNode& a, const TraceNode& b) { return a.id >= b.id; });
  if (not_ascending != trace.nodes.end()) {
    refuse(where, "node id", std::to_string(not_ascending->id), "ids in ascending order, each once");
  }
  const std::uint32_t unreachable = DependencyGraph::first_unreachable(trace);
  if (unreachable < nodes) {
    refuse(where + ", node " + std::to_string(trace.nodes[unreachable].id), "dependencies",
           "a cycle among the node's ancestors", "an acyclic graph");
  }
}

}  // namespace

void check_parameters(const SystemParams& params, std::size_t ranks) {
  check_dims(params, ranks);
  check_range<std::uint32_t>("scheduling_policy", params.scheduling_policy, 0, 2);
  check_range<std::uint32_t>("collective_optimization", params.collective_optimization, 0, 1);
  check_at_least<std::uint64_t>("preferred_dataset_splits", params.preferred_dataset_splits, 1);
  check_at_least<std::uint64_t>("active_chunks_per_dimension", params.active_chunks_per_dimension, 1);
  check_at_least<std::uint32_t>("num_queues_per_dim", params.num_queues_per_dim, 1);
  check_not_negative("local_mem_bw_gbps", params.local_mem_bw_gbps);
  if (params.local_mem_bw_gbps > 0 && params.local_mem_bw_gbps < kMinMemoryGbps) {
    refuse("", "local_mem_bw_gbps", std::to_string(params.local_mem_bw_gbps),
           "0 (reductions are free) or at least 1e-6");
  }
  check_not_negative("peak_perf_tflops", params.peak_perf_tflops);
  check_not_negative("bus_latency", params.bus_latency);
  check_not_negative("bus_overhead", params.bus_overhead);
  check_not_negative("bus_gap", params.bus_gap);
  check_not_negative("bus_gap_per_byte", params.bus_gap_per_byte);
  check_memory(params);
  const std::size_t dims = params.logical_dims.size();
  check_implementations("all_reduce", params.all_reduce, dims);
  check_implementations("all_gather", params.all_gather, dims);
  check_implementations("reduce_scatter", params.reduce_scatter, dims);
  check_implementations("all_to_all", params.all_to_all, dims);
  for (const auto& [id, members] : params.groups) check_group(id, members, ranks);
}

void check_traces(const SystemParams& params, const CollectiveLayouts& layouts,
                  const std::vector<RankTrace>& traces) {
  for (std::uint32_t rank = 0; rank < traces.size(); ++rank) {
    check_trace(rank, traces[rank]);
    for (const TraceNode& node : traces[rank].nodes) NodeCheck(params, layouts, rank, node).run();
  }
}

}  // namespace hpcmoe
