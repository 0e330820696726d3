// From parameters and topology of a scenario to the nodes, devices and links of the ns-3 model.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/ns3/host.hh"
#include "backends/ns3/routes.hh"
#include "backends/ns3/switch.hh"
#include "network/parameters.hh"
#include "network/topology.hh"

namespace hpcmoe {

// What was built. Ports are indexed as those of Topology; a node is either a host or a switch.
struct Ns3Objects {
  std::vector<ns3::Ptr<rdma::Host>> hosts;       // by node id, null for switches
  std::vector<ns3::Ptr<rdma::Switch>> switches;  // by node id, null for hosts
  std::vector<ns3::Ptr<rdma::Device>> ports;
  std::vector<ns3::Ptr<rdma::Link>> links;
};

// Throws InputError for parameters that do not fit together.
void check_ns3_parameters(const NetworkParams& params, const Topology& topology);
Ns3Objects build_ns3_objects(const NetworkParams& params, const Topology& topology, const Routes& routes);

}  // namespace hpcmoe
