// Collectives of one rank: cuts them into chunks, runs every chunk (a stream) through its phases.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "system/collective_layout.hh"
#include "system/collectives/phase.hh"
#include "system/event_table.hh"
#include "system/messenger.hh"
#include "system/queue_levels.hh"
#include "system/shared_bus.hh"

namespace hpcmoe {

// One chunk of a collective.
struct Stream {
  std::uint32_t tag = 0;    // of all its messages
  std::uint32_t chunk = 0;  // within the collective
  std::uint32_t steps = 0;  // messages sent so far
  std::uint32_t current = 0;
  std::vector<PhaseSpec> phases;
  std::unique_ptr<Phase> phase;  // null while it waits in a queue
};

class CollectiveClient {
 public:
  virtual void collective_finished(std::uint32_t node) = 0;

 protected:
  ~CollectiveClient() = default;
};

// Time to add two operands of `bytes` at the local memory bandwidth: two reads and a write, each
// truncated to whole ns. No bandwidth given: reductions are free.
TimeNs reduction_delay_ns(std::uint64_t bytes, double local_mem_bw_gbps);

class CollectiveEngine final : public PhaseHost, public BusClient {
 public:
  CollectiveEngine(const SystemParams& params, const CollectiveLayouts& layouts, EventTable& events,
                   Messenger& messenger, CollectiveClient& client);

  // At most one collective is in flight per rank; the workload's communication slot sees to that.
  void start(std::uint32_t node_index, const TraceNode& node);

  void on_bundle(Phase& phase);
  void on_reduction(Phase& phase, std::uint64_t bytes);
  void on_carried(Phase& phase, std::uint64_t bytes, bool reduce) override;
  void on_bus_event(const RankEvent& event);

  // All that the future depends on, with stream ids counted from `base`: round robins, the parity of
  // trees, and the state of every unfinished chunk.
  void append_signature(std::vector<std::uint64_t>& signature, std::uint64_t base) const;
  std::uint64_t world_streams() const;  // streams of the whole world's collectives so far
  // The collective in work now stands for another node of the same content.
  void move_to(std::uint32_t node_index, const TraceNode& node);

  bool is_active() const { return unfinished_chunks_ > 0; }
  std::uint32_t active_node() const { return node_index_; }
  std::string describe_chunks() const;  // where the unfinished chunks are, for a stalled run

  void send(Phase& phase, std::uint32_t to, std::uint64_t bytes) override;
  void receive(Phase& phase, std::uint32_t from, std::uint64_t bytes) override;
  void schedule_bundle(Phase& phase, std::uint64_t bytes, bool reduce, BundleRoute route) override;

 private:
  Stream& new_stream();
  std::uint32_t next_tag(std::int32_t group);
  void assign_phases(Stream& stream, const Scope& scope, CollectiveType op,
                     const std::vector<PlannedPhase>& plan);
  void enter_queue(Stream& stream);
  void start_waiting(std::uint32_t queue);
  void exit_phase(Stream& stream);
  FlowLabel next_label(Stream& stream) const;

  const SystemParams& params_;
  const CollectiveLayouts& layouts_;
  EventTable& events_;
  Messenger& messenger_;
  CollectiveClient& client_;
  std::uint64_t streams_per_queue_;
  QueueSelector selector_;
  std::vector<StreamQueue> queues_;
  std::map<std::int32_t, std::uint64_t> stream_counters_;  // by group
  // Phases generated so far by (dimension of a world layout): even ones use the max tree.
  std::map<std::pair<CollectiveType, std::uint32_t>, std::uint32_t> tree_counters_;
  std::deque<Stream> streams_;  // stable addresses; finished ones are reused
  std::vector<Stream*> spare_streams_;
  SharedBus bus_;

  std::uint32_t node_index_ = 0;
  std::uint64_t node_id_ = 0;
  std::int32_t layer_ = -1;
  std::uint64_t unfinished_chunks_ = 0;
};

}  // namespace hpcmoe
