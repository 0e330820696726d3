// What a run on ns-3 leaves behind: records of flows and pauses, queue samples, counters.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/ns3/builder.hh"
#include "network/results.hh"
#include "system/network_api.hh"

namespace hpcmoe {

class Ns3Recorder {
 public:
  Ns3Recorder(const NetworkParams& params, const Topology& topology, const Routes& routes,
              const Ns3Objects& objects)
      : p_(params), topology_(topology), routes_(routes), objects_(objects) {}

  void note_flow(const rdma::QueuePair& qp, const FlowRequest& request);
  void note_pause(const rdma::Device& device, const rdma::PauseHeader& pause);
  void sample_queues();       // one row per port with something waiting
  void write_monitor_line();  // ports of a switch with at least a kilobyte, as the ns-3 program writes them

  // Sums over all nodes and devices; what concerns flows is the caller's.
  void add_device_totals(NetworkTotals& totals) const;
  std::vector<LinkCounters> link_counters(TimeNs end) const;

  NetworkRecords records;

 private:
  TimeNs standalone_ns(const FlowRequest& request) const;

  const NetworkParams& p_;
  const Topology& topology_;
  const Routes& routes_;
  const Ns3Objects& objects_;
};

}  // namespace hpcmoe
