// The packet engine of this program.
#pragma once

#include <memory>

#include "backends/packet_network.hh"

namespace hpcmoe {

class NativeNetwork : public PacketNetwork {
 public:
  // Throws InputError when parameters and topology do not fit together.
  static std::unique_ptr<NativeNetwork> create(const NetworkParams& params, TopologySpec topology);
};

}  // namespace hpcmoe
