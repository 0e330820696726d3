// LogGP model of the bus between an NPU and its network interface, with a second bus to the memory
// behind it. Replaces the constant endpoint delay of bundles when model_shared_bus is set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "system/collectives/phase.hh"
#include "system/event_table.hh"
#include "system/parameters.hh"

namespace hpcmoe {

class BusClient {
 public:
  virtual void on_carried(Phase& phase, std::uint64_t bytes, bool reduce) = 0;

 protected:
  ~BusClient() = default;
};

class SharedBus {
 public:
  SharedBus(const SystemParams& params, EventTable& events, BusClient& client);

  // Carries a bundle along its route, then tells the client.
  void carry(Phase& phase, std::uint64_t bytes, bool reduce, BundleRoute route);
  void on_event(const RankEvent& event);

 private:
  // The hops of a job. The first four are named after the end that sends.
  enum class Hop : std::uint8_t { npu, interface, inner_npu, memory, reduction, done };
  struct Job {
    Phase* phase = nullptr;
    std::uint64_t bytes = 0;
    bool reduce = false;
    std::array<Hop, 8> hops{};
    std::uint8_t next = 0;
  };
  enum class State : std::uint8_t { free, sending, receiving };
  struct End {
    State state = State::free;
    State previous = State::free;
    TimeNs last_change = 0;
    std::deque<std::uint32_t> sends;     // jobs
    std::deque<std::uint32_t> receives;  // jobs
    std::uint64_t sent_in_a_row = 0;
  };

  static std::size_t partner_of(std::size_t end) { return end ^ 1; }
  std::uint32_t take_job();
  void advance(std::uint32_t job);
  void try_send(std::size_t end);
  void transmit(std::size_t end);
  TimeNs start_offset(const End& end) const;
  void sent(std::size_t end);
  void received(std::size_t end);
  void start_reduction();

  EventTable& events_;
  BusClient& client_;
  TimeNs latency_, overhead_, gap_;
  float outer_gap_per_byte_;
  std::uint64_t reduction_ns_per_100_bytes_;
  std::array<End, 4> ends_;  // by Hop: outer bus npu and interface, inner bus inner_npu and memory
  std::deque<std::uint32_t> reductions_;  // the first one is in progress
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> spare_jobs_;
};

}  // namespace hpcmoe
