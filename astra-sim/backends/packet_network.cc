#include "backends/packet_network.hh"

#include <utility>

#include "backends/native/native_network.hh"
#ifdef HPCMOE_NS3
#include "backends/ns3/ns3_network.hh"
#endif

namespace hpcmoe {

#ifdef HPCMOE_NS3
bool has_ns3() { return true; }
#else
bool has_ns3() { return false; }
namespace {
std::unique_ptr<PacketNetwork> create_ns3_network(const NetworkParams&, TopologySpec) {
  throw InputError(
      "this installation was built without ns-3, so the backend ns3 is not available; allowed is native "
      "(HPCMOE_NS3=ON when installing adds it)");
}
}  // namespace
#endif

std::unique_ptr<PacketNetwork> create_network(Backend backend, const NetworkParams& params,
                                              TopologySpec topology) {
  if (backend == Backend::ns3) return create_ns3_network(params, std::move(topology));
  return NativeNetwork::create(params, std::move(topology));
}

}  // namespace hpcmoe
