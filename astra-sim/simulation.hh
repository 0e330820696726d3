// The one public header: build a simulation from plain data, run it in slices, read the results.
// Many simulations may live in one process; none shares state with another, except that ns-3 has room for
// one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/packet_network.hh"
#include "network/parameters.hh"
#include "network/results.hh"
#include "network/topology.hh"
#include "system/parameters.hh"
#include "system/system_layer.hh"
#include "workload/trace.hh"

namespace hpcmoe {

struct Progress {
  bool finished = false;  // nothing is left to run
  TimeNs simulated_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packet_hops = 0;
  std::uint32_t finished_ranks = 0;
};

// The whole stack: one trace per rank, system layer, packet network.
class Simulation {
 public:
  // Throws InputError when the parts do not fit together.
  Simulation(const NetworkParams& network, const TopologySpec& topology, const SystemParams& system,
             std::vector<RankTrace> traces, Backend backend = Backend::native);
  ~Simulation();

  NetworkRecords& records();
  // Before the first run(): adds equal layers instead of simulating them where that is proven exact.
  void enable_fast_forward();

  // Runs about `max_events` more events. Throws InputError for input that only running reveals,
  // SimulationError when no progress is possible or an end-of-run invariant is broken.
  Progress run(std::uint64_t max_events);

  std::uint32_t ranks() const;
  RankReport rank_report(std::uint32_t rank) const;
  NetworkTotals totals() const;
  std::vector<LinkCounters> link_counters() const;
  TimeNs max_rtt_ns() const;
  std::uint64_t max_bdp_bytes() const;

  std::uint64_t added_layers() const;   // proven equal and added, not simulated
  std::uint64_t quiet_moments() const;  // how often all ranks computed on an empty network
  std::vector<RecordRepeat> record_repeats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct FlowSpec {
  TimeNs start_ns = 0;
  std::uint32_t src = 0, dst = 0;
  std::uint64_t bytes = 0;
};

// The network alone, driven from a list of flows.
class FlowSimulation {
 public:
  // Runs until every flow has finished or, when given, until `until_ns`.
  FlowSimulation(const NetworkParams& network, const TopologySpec& topology, std::vector<FlowSpec> flows,
                 TimeNs until_ns, Backend backend = Backend::native);
  ~FlowSimulation();

  NetworkRecords& records();
  // As Simulation::run. Without a time limit, flows that never finish are a SimulationError that
  // names them.
  Progress run(std::uint64_t max_events);

  NetworkTotals totals() const;
  std::vector<LinkCounters> link_counters() const;
  TimeNs max_rtt_ns() const;
  std::uint64_t max_bdp_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpcmoe
