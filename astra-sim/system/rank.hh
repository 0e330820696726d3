// Everything that belongs to one rank.
#pragma once

#include <cstdint>

#include "system/barrier.hh"
#include "system/collective_engine.hh"
#include "system/compute_clock.hh"
#include "system/event_table.hh"
#include "system/messenger.hh"
#include "system/quiet_state.hh"
#include "system/remote_memory.hh"
#include "system/system_layer.hh"
#include "workload/workload.hh"

namespace hpcmoe {

// What the ranks share.
struct RankEnvironment {
  const SystemParams& params;
  const CollectiveLayouts& layouts;
  Timers& timers;
  ComputeClock& compute_clock;
  Barrier& barrier;
  Messenger& messenger;
  RemoteMemory& memory;
};

class RankObserver {
 public:
  virtual void rank_finished() = 0;

 protected:
  ~RankObserver() = default;
};

class Rank final : private NodeActions, private CollectiveClient {
 public:
  Rank(std::uint32_t rank, RankTrace trace, const RankEnvironment& environment, RankObserver& observer);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void start() { workload_.issue_ready(); }
  void on_timer();
  void complete(std::uint32_t node) { workload_.complete(node); }

  std::uint32_t rank() const { return events_.rank(); }
  // In a chain: the node that is in work.
  std::uint32_t position() const { return workload_.graph().latest_taken(); }
  // Goes on as if the nodes (from, to] had run `jump.count` more times.
  void skip(std::uint32_t from, std::uint32_t to, const Jump& jump);
  void skip_rest(std::uint32_t period, TimeNs period_ns) { workload_.skip_rest(period, period_ns); }

  const Workload& workload() const { return workload_; }
  const CollectiveEngine& engine() const { return engine_; }

 private:
  TimeNs now() const override { return events_.reported_now(); }
  void run_for(std::uint32_t node, TimeNs runtime_ns) override;
  void start_collective(std::uint32_t node) override;
  void arrive_at_barrier(std::uint32_t node) override {
    environment_.barrier.arrive(rank(), node, workload_.node(node).involved_dims);
  }
  void post_send(std::uint32_t node) override;
  bool post_receive(std::uint32_t node) override;
  void access_remote_memory(std::uint32_t node) override;
  void workload_finished() override { observer_.rank_finished(); }
  void collective_finished(std::uint32_t node) override { complete(node); }

  void run_event(const RankEvent& event);

  RankEnvironment environment_;
  RankObserver& observer_;
  EventTable events_;
  CollectiveEngine engine_;
  Workload workload_;
};

}  // namespace hpcmoe
