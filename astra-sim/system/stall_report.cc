#include "system/stall_report.hh"

#include <string>

namespace hpcmoe {

namespace {

using Entry = MessageMatcher::Entry;

std::string bytes_from(std::uint64_t bytes, const MessageKey& key) {
  return std::to_string(bytes) + " bytes from rank " + std::to_string(key.src) + " (tag " +
         std::to_string(key.tag) + ")";
}

std::string collective_reason(const Rank& rank, const MessageMatcher& matcher) {
  std::string text;
  std::uint64_t more = 0;
  matcher.for_each_waiting([&](const Entry& entry) {
    const bool of_collective = entry.key.tag >= kTagSpace && entry.key.dst == rank.rank();
    if (!of_collective) return;
    if (text.empty()) {
      text = bytes_from(entry.bytes, entry.key);
    } else {
      ++more;
    }
  });
  if (more > 0) text += " and " + std::to_string(more) + " more receives";
  return (text.empty() ? "" : text + ": ") + rank.engine().describe_chunks();
}

std::string receive_reason(const Rank& rank, std::uint32_t index, const MessageMatcher& matcher) {
  const TraceNode& node = rank.workload().node(index);
  const MessageKey key{node.tag % kTagSpace, node.peer, rank.rank()};
  std::uint64_t missing = node.comm_bytes;
  bool replaced = true;
  matcher.for_each_waiting([&](const Entry& entry) {
    if (!(entry.key == key) || entry.completion.index != index) return;
    missing = entry.bytes;
    replaced = false;
  });
  const std::string text = bytes_from(missing, key);
  return replaced ? text + ", but a later receive with this source and tag took its place" : text;
}

std::string taken_reason(const Rank& rank, std::uint32_t index, const SystemParams& params,
                         const MessageMatcher& matcher) {
  const TraceNode& node = rank.workload().node(index);
  if (params.replay_only) return "the end of its recorded duration";
  switch (node.type) {
    case NodeType::coll:
      if (node.comm_type == CollectiveType::barrier) return "the other ranks at a barrier";
      if (node.comm_type != CollectiveType::broadcast) return collective_reason(rank, matcher);
      return "the end of its recorded duration";
    case NodeType::send:
      return "the delivery of " + std::to_string(node.comm_bytes) + " bytes to rank " +
             std::to_string(node.peer) + " (tag " + std::to_string(node.tag % kTagSpace) + ")";
    case NodeType::recv:
      // Under rendezvous the receive is posted late and under another name.
      if (!params.rendezvous_protocol) return receive_reason(rank, index, matcher);
      return bytes_from(node.comm_bytes, {node.tag % kTagSpace, node.peer, rank.rank()});
    case NodeType::mem_load:
    case NodeType::mem_store:
      return "the remote memory";
    default:
      return "the end of its run time";
  }
}

// Nothing is in flight, so nothing will complete. Only nodes that take no time get a rank there.
StuckNode idle_node(const Rank& rank) {
  const Workload& workload = rank.workload();
  StuckNode stuck{rank.rank(), workload.node(0).id, workload.node(0).type, ""};
  if (!workload.graph().free_nodes().empty()) {
    const TraceNode& node = workload.node(workload.graph().free_nodes().front());
    stuck.node_id = node.id;
    stuck.type = node.type;
    stuck.waits_for =
        "a completion on its rank that would issue it: the nodes before it take no time and trigger nothing";
  } else {
    stuck.waits_for = "a completion on its rank: nodes that take no time do not end a rank";
  }
  return stuck;
}

}  // namespace

std::vector<StuckNode> stuck_nodes(const std::deque<Rank>& ranks, const SystemParams& params,
                                   const MessageMatcher& matcher) {
  std::vector<StuckNode> stuck;
  for (const Rank& rank : ranks) {
    const Workload& workload = rank.workload();
    if (workload.finished()) continue;
    if (workload.graph().taken() == 0) {
      stuck.push_back(idle_node(rank));
      continue;
    }
    for (std::uint32_t i = 0; i < workload.trace().nodes.size(); ++i) {
      if (workload.graph().state(i) != NodeState::taken) continue;
      const TraceNode& node = workload.node(i);
      stuck.push_back({rank.rank(), node.id, node.type, taken_reason(rank, i, params, matcher)});
    }
  }
  return stuck;
}

}  // namespace hpcmoe
