// The packet network on the ns-3 simulator.
#pragma once

#include <memory>

#include "backends/packet_network.hh"

namespace hpcmoe {

// ns-3 keeps its clock, nodes and random seeds in global variables: one such network at a time may exist
// in a process (SimulationError for a second one). A fatal error of ns-3 ends the process.
std::unique_ptr<PacketNetwork> create_ns3_network(const NetworkParams& params, TopologySpec topology);

}  // namespace hpcmoe
