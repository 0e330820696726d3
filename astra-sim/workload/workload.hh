// Issues the ready nodes of one rank onto its hardware slots and finishes them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "system/parameters.hh"
#include "system/quiet_state.hh"
#include "workload/dependency_graph.hh"
#include "workload/statistics.hh"
#include "workload/trace.hh"

namespace hpcmoe {

// Each slot holds one node at a time. A RECV on the GPU needs none, so any number may be posted;
// everything else that communicates shares one slot, so collectives of a rank never overlap.
enum class Slot : std::uint8_t { cpu, compute, comm, none };
Slot slot_of(const TraceNode& node);

// What the system layer does for a workload.
class NodeActions {
 public:
  virtual TimeNs now() const = 0;
  virtual void run_for(std::uint32_t node, TimeNs runtime_ns) = 0;
  virtual void start_collective(std::uint32_t node) = 0;
  virtual void arrive_at_barrier(std::uint32_t node) = 0;
  virtual void post_send(std::uint32_t node) = 0;
  virtual bool post_receive(std::uint32_t node) = 0;  // true: the data is there, the node is complete
  virtual void access_remote_memory(std::uint32_t node) = 0;
  virtual void workload_finished() = 0;

 protected:
  ~NodeActions() = default;
};

class Workload {
 public:
  Workload(RankTrace trace, const SystemParams& params, NodeActions& actions);

  // Visits a snapshot of the free nodes by ascending id; what becomes free meanwhile waits for the
  // next call. Called at time zero and after every completion, but not after nodes that take no
  // time: their children wait until something else of this rank completes.
  void issue_ready();
  void complete(std::uint32_t node);

  // A chain: the nodes (from, to] have run and `to` is in work. Their further copies are taken as
  // run, each `jump.period_ns` after the one before; the last copy's end is in work afterwards.
  void skip(std::uint32_t from, std::uint32_t to, const Jump& jump);
  // A chain: the node in work and all that follow end as the nodes `period` places before them did,
  // `period_ns` later.
  void skip_rest(std::uint32_t period, TimeNs period_ns);

  bool finished() const { return finished_; }
  TimeNs finish_ns() const { return finish_ns_; }
  const TraceNode& node(std::uint32_t index) const { return trace_.nodes[index]; }
  const RankTrace& trace() const { return trace_; }
  const DependencyGraph& graph() const { return graph_; }
  const NodeTimes& times() const { return times_; }

 private:
  struct Snapshot {
    std::size_t begin, next, end;  // places in visit_
  };

  bool is_available(Slot slot) const { return slot == Slot::none || !busy_[static_cast<std::size_t>(slot)]; }
  void set_busy(Slot slot, bool busy);
  void push_snapshot();
  bool issue(std::uint32_t index);  // true: complete already
  bool act(std::uint32_t index);
  void start_skipped(std::uint32_t index, TimeNs tick);
  void finish(TimeNs tick);
  void run(std::uint32_t index);
  TimeNs runtime_of(const TraceNode& node) const;
  void release(std::uint32_t index);

  RankTrace trace_;
  const SystemParams& params_;
  NodeActions& actions_;
  DependencyGraph graph_;
  NodeTimes times_;
  std::array<bool, 3> busy_{};
  std::vector<Snapshot> snapshots_;   // in work, the innermost last; empty between calls
  std::vector<std::uint32_t> visit_;  // the nodes of all of them
  bool finished_ = false;
  TimeNs finish_ns_ = 0;
};

}  // namespace hpcmoe
