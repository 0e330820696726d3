// Per-rank table tick -> FIFO of events. Only the first registration for a tick asks the backend
// for a timer; that timer drains the whole list, including what is added with delay 0 meanwhile.
// This fixes the order of everything a rank does within one tick.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "core/types.hh"
#include "system/network_api.hh"

namespace hpcmoe {

enum class RankEventKind : std::uint8_t {
  bundle_fires,      // target: Phase
  reduction_starts,  // target: Phase, value: bytes to reduce
  node_done,         // value: node index
  memory_free,       // value: remote memory channel
  bus_sent,          // value: end of the shared bus
  bus_received,      // value: end of the shared bus
  bus_reduced,       // the reduction unit behind the shared bus is done with a job
};

struct RankEvent {
  RankEventKind kind;
  std::uint64_t value = 0;
  void* target = nullptr;
};

// Timers of all ranks: the storage of the events and the count of callbacks the backend owes.
class Timers {
 public:
  explicit Timers(NetworkBackend& network) : network_(network) {}

  TimeNs now() const { return network_.now(); }
  // Time as reported: the clock plus what was added without being simulated.
  TimeNs reported_now() const { return network_.now() + added_ns_; }
  void add(TimeNs not_simulated_ns) { added_ns_ += not_simulated_ns; }
  std::uint64_t pending() const { return pending_; }
  void ask(std::uint32_t id, TimeNs delay_ns) {
    ++pending_;
    network_.schedule_timer(id, delay_ns);
  }
  void called_back() { --pending_; }

 private:
  friend class EventTable;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Link {
    RankEvent event;
    std::uint32_t next = kNone;
  };

  std::uint32_t take(const RankEvent& event);
  void release(std::uint32_t link);

  NetworkBackend& network_;
  std::vector<Link> links_;
  std::uint32_t spare_ = kNone;  // head of the list of unused links
  std::uint64_t pending_ = 0;
  TimeNs added_ns_ = 0;
};

class EventTable {
 public:
  EventTable(Timers& timers, std::uint32_t rank) : timers_(timers), rank_(rank) {}

  TimeNs now() const { return timers_.now(); }
  TimeNs reported_now() const { return timers_.reported_now(); }
  std::uint32_t rank() const { return rank_; }
  void schedule(TimeNs delay_ns, const RankEvent& event);

  // Runs `run(event)` for everything registered for the present tick, in order of registration.
  template <class Run>
  void drain(Run&& run) {
    assert(!slots_.empty() && slots_.back().tick == now());
    while (slots_.back().head != Timers::kNone) run(pop());
    slots_.pop_back();
  }

 private:
  struct Slot {
    TimeNs tick;
    std::uint32_t head, tail;
  };

  RankEvent pop();

  Timers& timers_;
  std::uint32_t rank_;
  std::vector<Slot> slots_;  // by descending tick: the next one to run is the last
};

}  // namespace hpcmoe
