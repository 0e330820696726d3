// The packet-level RDMA network as seen from above: a backend that can be run in slices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/parameters.hh"
#include "network/results.hh"
#include "network/topology.hh"
#include "system/network_api.hh"

namespace hpcmoe {

enum class RunStatus : std::uint8_t {
  running,  // the slice is used up
  quiet,    // the network is empty and the client wants to look at the state
  stopped,  // the client called stop()
  drained,  // no event is left
  stalled,  // only timers that change nothing are left
  reached,  // the time limit
};

enum class Backend : std::uint8_t {
  native,  // the engine of this program
  ns3,     // the same model in the ns-3 simulator, where the build has it
};

class PacketNetwork : public NetworkBackend {
 public:
  virtual bool is_host(std::uint32_t node) const = 0;
  virtual void set_client(NetworkClient* client) = 0;
  // Runs until the status is not `running` or about `max_events` events have run; no event later
  // than `until_ns` runs.
  virtual RunStatus run(std::uint64_t max_events, TimeNs until_ns) = 0;

  // Whether nothing is under way and nothing of the past is left that could bear on the future: not in
  // ports, and not as absolute time or a running random stream, which some parameters bring in.
  virtual bool is_at_rest() const = 0;
  // From now on records carry times later by this much: the clock's owner has added time that was
  // not simulated.
  virtual void offset_records(TimeNs offset_ns) = 0;

  virtual NetworkTotals totals() const = 0;
  virtual NetworkRecords& records() = 0;
  virtual std::vector<LinkCounters> link_counters() const = 0;
  // End-of-run invariants of a network without loss: nothing queued, buffers empty. Empty: all hold.
  virtual std::string broken_invariant() const = 0;
  // What is still in the network, for the message of a stalled run.
  virtual std::string describe_unfinished(std::size_t most) const = 0;
  virtual TimeNs max_rtt_ns() const = 0;
  virtual std::uint64_t max_bdp_bytes() const = 0;
};

// Throws InputError when parameters and topology do not fit together, or the backend is not built in.
std::unique_ptr<PacketNetwork> create_network(Backend backend, const NetworkParams& params,
                                              TopologySpec topology);
bool has_ns3();

}  // namespace hpcmoe
