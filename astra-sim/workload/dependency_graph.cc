#include "workload/dependency_graph.hh"

#include <algorithm>
#include <cassert>

namespace hpcmoe {

DependencyGraph::DependencyGraph(const RankTrace& trace)
    : states_(trace.nodes.size(), NodeState::blocked),
      missing_parents_(trace.nodes.size()),
      child_begin_(trace.nodes.size() + 1),
      children_(trace.parents.size()) {
  const auto n = static_cast<std::uint32_t>(trace.nodes.size());
  for (const std::uint32_t parent : trace.parents) ++child_begin_[parent + 1];
  for (std::uint32_t i = 0; i < n; ++i) child_begin_[i + 1] += child_begin_[i];
  std::vector<std::uint32_t> next(child_begin_.begin(), child_begin_.end() - 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    missing_parents_[i] = trace.parent_begin[i + 1] - trace.parent_begin[i];
    for (std::uint32_t p = trace.parent_begin[i]; p < trace.parent_begin[i + 1]; ++p) {
      children_[next[trace.parents[p]]++] = i;
    }
    if (missing_parents_[i] == 0) {
      states_[i] = NodeState::free;
      free_.push_back(i);
    }
  }
}

void DependencyGraph::take(std::uint32_t node) {
  assert(states_[node] == NodeState::free);
  states_[node] = NodeState::taken;
  ++taken_;
  latest_taken_ = node;
  free_.erase(std::lower_bound(free_.begin(), free_.end(), node));
}

void DependencyGraph::finish(std::uint32_t node) {
  assert(states_[node] == NodeState::taken);
  states_[node] = NodeState::finished;
  --taken_;
  for (std::uint32_t c = child_begin_[node]; c < child_begin_[node + 1]; ++c) {
    const std::uint32_t child = children_[c];
    if (--missing_parents_[child] > 0) continue;
    states_[child] = NodeState::free;
    free_.insert(std::lower_bound(free_.begin(), free_.end(), child), child);
  }
}

std::uint32_t DependencyGraph::first_unreachable(const RankTrace& trace) {
  DependencyGraph graph(trace);
  while (!graph.free_.empty()) {
    const std::uint32_t node = graph.free_.back();
    graph.take(node);
    graph.finish(node);
  }
  const auto blocked = std::find(graph.states_.begin(), graph.states_.end(), NodeState::blocked);
  return static_cast<std::uint32_t>(blocked - graph.states_.begin());
}

}  // namespace hpcmoe
