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
  running,   // the slice is used up
  stopped,   // the client called stop()
  drained,   // no event is left
  stalled,   // only timers that change nothing are left
  reached,   // the time limit
};

class NativeNetwork : public NetworkBackend {
 public:
  // Throws InputError when parameters and topology do not fit together.
  static std::unique_ptr<NativeNetwork> create(const NetworkParams& params, TopologySpec topology);

  virtual bool is_host(std::uint32_t node) const = 0;
  virtual void set_client(NetworkClient* client) = 0;
  // Runs until the status is not `running` or about `max_events` events have run; no event later
  // than `until_ns` runs.
  virtual RunStatus run(std::uint64_t max_events, TimeNs until_ns) = 0;

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

}  // namespace hpcmoe
