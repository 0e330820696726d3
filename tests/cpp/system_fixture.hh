// Small traces and whole runs on the ideal network for the tests of the system layer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "ideal_network.hh"
#include "system/system_layer.hh"

namespace hpcmoe::testing {

constexpr std::uint64_t kMiB = 1048576;

// Node ids are 0, 1, 2, ... in order of `add`; parents are named by id.
class TraceBuilder {
 public:
  TraceBuilder& add(TraceNode node, const std::vector<std::uint32_t>& parents = {}) {
    node.id = trace_.nodes.size();
    trace_.nodes.push_back(node);
    trace_.parents.insert(trace_.parents.end(), parents.begin(), parents.end());
    trace_.parent_begin.push_back(static_cast<std::uint32_t>(trace_.parents.size()));
    return *this;
  }
  const RankTrace& trace() const { return trace_; }

 private:
  RankTrace trace_{{}, {0}, {}};
};

inline TraceNode collective(CollectiveType type, std::uint64_t bytes = kMiB) {
  TraceNode node;
  node.type = NodeType::coll;
  node.comm_type = type;
  node.comm_bytes = bytes;
  return node;
}
inline TraceNode all_reduce(std::uint64_t bytes = kMiB) {
  return collective(CollectiveType::all_reduce, bytes);
}
inline TraceNode compute_us(std::uint64_t duration_us) {
  TraceNode node;
  node.duration_us = duration_us;
  return node;
}
inline TraceNode compute_ops(std::uint64_t ops, std::uint64_t bytes) {
  TraceNode node;
  node.num_ops = ops;
  node.tensor_bytes = bytes;
  return node;
}
inline TraceNode point_to_point(NodeType type, std::uint32_t peer, std::uint32_t tag, std::uint64_t bytes) {
  TraceNode node;
  node.type = type;
  node.peer = peer;
  node.tag = tag;
  node.comm_bytes = bytes;
  return node;
}
inline TraceNode send(std::uint32_t peer, std::uint32_t tag, std::uint64_t bytes) {
  return point_to_point(NodeType::send, peer, tag, bytes);
}
inline TraceNode recv(std::uint32_t peer, std::uint32_t tag, std::uint64_t bytes) {
  return point_to_point(NodeType::recv, peer, tag, bytes);
}
inline TraceNode of_type(NodeType type, std::uint64_t tensor_bytes = 0) {
  TraceNode node;
  node.type = type;
  node.tensor_bytes = tensor_bytes;
  return node;
}
inline TraceNode in_group(TraceNode node, std::int32_t group) {
  node.group = group;
  return node;
}

// "ring", "direct", "direct4", "halving_doubling", "double_binary_tree", "one_ring", "one_direct".
inline CollectiveImpl implementation(const std::string& name) {
  CollectiveImpl impl;
  const bool one_dim = name.starts_with("one_");
  const std::string rest = one_dim ? name.substr(4) : name;
  impl.one_dim = one_dim;
  if (rest.starts_with("direct")) {
    impl.algorithm = Algorithm::direct;
    if (rest.size() > 6) impl.window = std::stoll(rest.substr(6));
  } else if (rest == "halving_doubling") {
    impl.algorithm = Algorithm::halving_doubling;
  } else if (rest == "double_binary_tree") {
    impl.algorithm = Algorithm::double_binary_tree;
  }
  return impl;
}

inline void use(SystemParams& params, const std::vector<std::string>& names) {
  std::vector<CollectiveImpl> impls;
  for (const std::string& name : names) impls.push_back(implementation(name));
  params.all_reduce = params.all_gather = params.reduce_scatter = params.all_to_all = impls;
}

inline SystemParams make_params(const std::vector<std::uint32_t>& dims,
                                const std::vector<std::string>& names) {
  SystemParams params;
  params.collective_optimization = 1;
  params.preferred_dataset_splits = 1;
  params.active_chunks_per_dimension = 1;
  params.endpoint_delay_ns = 10;
  params.local_mem_bw_gbps = 50;
  params.num_queues_per_dim = 1;
  params.local_reduction_delay = 1;
  params.logical_dims = dims;
  use(params, names);
  return params;
}

inline std::uint32_t rank_count(const SystemParams& params) {
  std::uint32_t ranks = 1;
  for (const std::uint32_t dim : params.logical_dims) ranks *= dim;
  return ranks;
}

struct Outcome {
  std::vector<RankReport> reports;
  std::vector<StuckNode> stuck;
  std::vector<SentMessage> sent;
  std::uint32_t finished = 0;
  std::uint64_t pending_timers = 0;
  bool stopped = false;

  std::vector<TimeNs> ends() const {
    std::vector<TimeNs> result;
    for (const RankReport& report : reports) result.push_back(report.finish_ns);
    return result;
  }
  std::vector<SentMessage> sent_by(std::uint32_t rank) const {
    std::vector<SentMessage> result;
    for (const SentMessage& message : sent) {
      if (message.request.src == rank) result.push_back(message);
    }
    return result;
  }
};

inline Outcome run(const SystemParams& params, const std::vector<RankTrace>& traces) {
  IdealNetwork network;
  SystemLayer layer(params, traces, network);
  layer.start();
  network.run(layer);
  Outcome outcome;
  for (std::uint32_t rank = 0; rank < layer.ranks(); ++rank) outcome.reports.push_back(layer.report(rank));
  outcome.stuck = layer.stuck();
  outcome.sent = network.sent();
  outcome.finished = layer.finished_ranks();
  outcome.pending_timers = layer.pending_timers();
  outcome.stopped = network.stopped();
  return outcome;
}

// The same trace on every rank.
inline Outcome run_all(const SystemParams& params, const TraceBuilder& builder) {
  return run(params, std::vector<RankTrace>(rank_count(params), builder.trace()));
}
inline Outcome run_node(const SystemParams& params, const TraceNode& node) {
  return run_all(params, TraceBuilder().add(node));
}

inline std::vector<TimeNs> all(std::uint32_t ranks, TimeNs end) { return std::vector<TimeNs>(ranks, end); }

}  // namespace hpcmoe::testing

namespace std {
// So that a failed comparison shows the values.
inline ostream& operator<<(ostream& out, const vector<hpcmoe::TimeNs>& values) {
  for (const hpcmoe::TimeNs value : values) out << value << ' ';
  return out;
}
}  // namespace std
