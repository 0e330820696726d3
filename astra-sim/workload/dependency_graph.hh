// Which nodes of one rank's trace are blocked, free, taken or finished. Node indices follow node
// ids, so ascending index is ascending id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workload/trace.hh"

namespace hpcmoe {

enum class NodeState : std::uint8_t { blocked, free, taken, finished };

class DependencyGraph {
 public:
  explicit DependencyGraph(const RankTrace& trace);

  NodeState state(std::uint32_t node) const { return states_[node]; }
  const std::vector<std::uint32_t>& free_nodes() const { return free_; }  // ascending
  std::size_t taken() const { return taken_; }
  // The node taken last, which in a chain is the only one that can be in work.
  std::uint32_t latest_taken() const { return latest_taken_; }

  void take(std::uint32_t node);
  void finish(std::uint32_t node);  // frees the children that waited for this node alone

  // A node on a dependency cycle or behind one, or the number of nodes when there is none.
  static std::uint32_t first_unreachable(const RankTrace& trace);

 private:
  std::vector<NodeState> states_;
  std::vector<std::uint32_t> missing_parents_;
  std::vector<std::uint32_t> child_begin_;
  std::vector<std::uint32_t> children_;
  std::vector<std::uint32_t> free_;
  std::size_t taken_ = 0;
  std::uint32_t latest_taken_ = 0;
};

}  // namespace hpcmoe
