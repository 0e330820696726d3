// One rank's execution trace as plain arrays, already validated by the reader.
#pragma once

#include <cstdint>
#include <vector>

namespace hpcmoe {

// Values are those of the Chakra schema.
enum class NodeType : std::uint8_t {
  invalid = 0,
  metadata = 1,
  mem_load = 2,
  mem_store = 3,
  comp = 4,
  send = 5,
  recv = 6,
  coll = 7,
};

enum class CollectiveType : std::uint8_t {
  all_reduce = 0,
  all_gather = 2,
  broadcast = 5,
  all_to_all = 6,
  reduce_scatter = 7,
  barrier = 9,
};

struct TraceNode {
  std::uint64_t id = 0;
  std::uint64_t duration_us = 0;
  std::uint64_t num_ops = 0;       // FLOP
  std::uint64_t tensor_bytes = 0;  // bytes touched, for the roofline and remote memory
  std::uint64_t comm_bytes = 0;
  std::uint32_t comm_priority = 0;
  std::uint32_t peer = 0;  // destination of a SEND, source of a RECV
  std::uint32_t tag = 0;
  std::uint32_t involved_dims = 0xF;  // bit k: logical dimension k takes part
  std::int32_t group = 0;             // communicator group, 0 = all ranks
  std::int32_t layer = -1;
  NodeType type = NodeType::comp;
  CollectiveType comm_type = CollectiveType::all_reduce;
  bool is_cpu_op = false;
};

// nodes are in ascending id order; parents of nodes[i] are the indices
// parents[parent_begin[i] .. parent_begin[i + 1]).
struct RankTrace {
  std::vector<TraceNode> nodes;
  std::vector<std::uint32_t> parent_begin;
  std::vector<std::uint32_t> parents;
};

}  // namespace hpcmoe
