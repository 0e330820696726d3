#include "workload/chain.hh"

namespace hpcmoe {
namespace {

bool same_content(const TraceNode& a, const TraceNode& b) {
  return a.type == b.type && a.comm_type == b.comm_type && a.is_cpu_op == b.is_cpu_op &&
         a.duration_us == b.duration_us && a.num_ops == b.num_ops && a.tensor_bytes == b.tensor_bytes &&
         a.comm_bytes == b.comm_bytes && a.comm_priority == b.comm_priority && a.peer == b.peer &&
         a.tag == b.tag && a.involved_dims == b.involved_dims && a.group == b.group;
}

// How many nodes from `from` on are like those `to - from` later.
std::uint32_t alike_from(const RankTrace& trace, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t period = to - from;
  const auto& nodes = trace.nodes;
  const std::uint64_t id_step = nodes[to].id - nodes[from].id;
  const std::int32_t layer_step = nodes[to].layer - nodes[from].layer;
  std::uint32_t x = from;  // the node in work counts too
  for (; x + period < nodes.size(); ++x) {
    const TraceNode &early = nodes[x], &late = nodes[x + period];
    if (!same_content(early, late) || late.id - early.id != id_step ||
        late.layer - early.layer != layer_step) {
      break;
    }
  }
  return x - from;
}

}  // namespace

bool is_chain(const RankTrace& trace) {
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const std::uint32_t begin = trace.parent_begin[i], end = trace.parent_begin[i + 1];
    const bool follows = i == 0 ? begin == end : end == begin + 1 && trace.parents[begin] == i - 1;
    const NodeType type = trace.nodes[i].type;
    if (!follows || (type != NodeType::comp && type != NodeType::coll)) return false;
  }
  return true;
}

std::uint64_t repeats_after(const RankTrace& trace, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t alike = alike_from(trace, from, to);
  return alike == 0 ? 0 : (alike - 1) / (to - from);
}

bool ends_as_repeat(const RankTrace& trace, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t period = to - from, alike = alike_from(trace, from, to);
  const auto& nodes = trace.nodes;
  if (alike == 0 || from + alike + period != nodes.size()) return false;
  const TraceNode& before = nodes[to - 1];
  const bool rests_at_barrier = before.type == NodeType::coll && before.comm_type == CollectiveType::barrier;
  return rests_at_barrier && nodes[to].type == NodeType::comp && (alike - 1) % period + 2 == period;
}

}  // namespace hpcmoe
