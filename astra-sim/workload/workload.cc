#include "workload/workload.hh"

#include <utility>

#include "workload/compute_model.hh"

namespace hpcmoe {

Slot slot_of(const TraceNode& node) {
  if (node.is_cpu_op) return Slot::cpu;
  if (node.type == NodeType::comp) return Slot::compute;
  return node.type == NodeType::recv ? Slot::none : Slot::comm;
}

Workload::Workload(RankTrace trace, const SystemParams& params, NodeActions& actions)
    : trace_(std::move(trace)),
      params_(params),
      actions_(actions),
      graph_(trace_),
      times_(trace_.nodes.size()) {}

// A receive whose data is there completes while it is issued, and what it frees is issued before
// the rest of the snapshot it came from. The snapshots stand on a stack of our own: a long chain of
// such receives would overflow the program's.
void Workload::issue_ready() {
  push_snapshot();
  while (!snapshots_.empty()) {
    Snapshot& top = snapshots_.back();
    if (top.next == top.end) {
      visit_.resize(top.begin);
      snapshots_.pop_back();
      continue;
    }
    const std::uint32_t index = visit_[top.next++];
    if (graph_.state(index) != NodeState::free || !is_available(slot_of(trace_.nodes[index]))) continue;
    if (issue(index)) {
      release(index);
      push_snapshot();
    }
  }
}

void Workload::complete(std::uint32_t index) {
  release(index);
  issue_ready();
  if (finished_ || !graph_.free_nodes().empty() || graph_.taken() > 0) return;
  finish(actions_.now());
}

void Workload::finish(TimeNs tick) {
  finished_ = true;
  finish_ns_ = tick;
  actions_.workload_finished();
}

void Workload::skip(std::uint32_t from, std::uint32_t to, const Jump& jump) {
  const std::uint32_t period = to - from;
  const auto last = static_cast<std::uint32_t>(to + jump.count * period);
  times_.end(to, times_.span(from).second + jump.period_ns);
  for (std::uint32_t node = to; node < last; ++node) {
    graph_.finish(node);
    const std::uint32_t next = node + 1;
    start_skipped(next, times_.span(next - period).first + jump.period_ns);
    if (next < last) times_.end(next, times_.span(next - period).second + jump.period_ns);
  }
}

void Workload::skip_rest(std::uint32_t period, TimeNs period_ns) {
  const auto end = static_cast<std::uint32_t>(trace_.nodes.size());
  for (std::uint32_t node = graph_.latest_taken(); node < end; ++node) {
    times_.end(node, times_.span(node - period).second + period_ns);
    graph_.finish(node);
    if (node + 1 < end) start_skipped(node + 1, times_.span(node + 1 - period).first + period_ns);
  }
  finish(times_.span(end - 1).second);
}

void Workload::start_skipped(std::uint32_t index, TimeNs tick) {
  graph_.take(index);
  times_.start(index, tick);
  const TraceNode& node = trace_.nodes[index];
  if (node.type == NodeType::comp && !node.is_cpu_op) times_.add_modelled(runtime_of(node));
}

void Workload::push_snapshot() {
  const std::size_t begin = visit_.size();
  visit_.insert(visit_.end(), graph_.free_nodes().begin(), graph_.free_nodes().end());
  snapshots_.push_back({begin, begin, visit_.size()});
}

void Workload::release(std::uint32_t index) {
  set_busy(slot_of(trace_.nodes[index]), false);
  times_.end(index, actions_.now());
  graph_.finish(index);
}

void Workload::set_busy(Slot slot, bool busy) {
  if (slot != Slot::none) busy_[static_cast<std::size_t>(slot)] = busy;
}

bool Workload::issue(std::uint32_t index) {
  graph_.take(index);
  set_busy(slot_of(trace_.nodes[index]), true);
  times_.start(index, actions_.now());
  if (!takes_no_time(params_, trace_.nodes[index])) return act(index);
  release(index);
  return false;  // nothing follows from it
}

bool Workload::act(std::uint32_t index) {
  const TraceNode& node = trace_.nodes[index];
  if (!params_.replay_only && node.type == NodeType::recv) return actions_.post_receive(index);
  if (params_.replay_only || node.type == NodeType::comp) {
    run(index);
  } else if (node.type == NodeType::send) {
    actions_.post_send(index);
  } else if (node.type != NodeType::coll) {
    actions_.access_remote_memory(index);
  } else if (node.comm_type == CollectiveType::broadcast) {
    actions_.run_for(index, replay_ns(node));  // not simulated: the recorded duration is all there is
  } else if (node.comm_type == CollectiveType::barrier) {
    actions_.arrive_at_barrier(index);
  } else {
    actions_.start_collective(index);
  }
  return false;
}

TimeNs Workload::runtime_of(const TraceNode& node) const {
  return uses_roofline(params_, node) ? roofline(params_, node).runtime_ns() : replay_ns(node);
}

void Workload::run(std::uint32_t index) {
  const TraceNode& node = trace_.nodes[index];
  const TimeNs runtime_ns = runtime_of(node);
  if (!node.is_cpu_op) times_.add_modelled(runtime_ns);
  actions_.run_for(index, runtime_ns);
}

}  // namespace hpcmoe
