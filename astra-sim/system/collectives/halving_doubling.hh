// Halving-doubling: log2(N) exchanges with the partner at distance 1, 2, 4, ... while sizes halve,
// and the way back while they double. N is a power of two.
#pragma once

#include "system/collectives/packet_phase.hh"

namespace hpcmoe {

class HalvingDoublingPhase final : public PacketPhase {
 public:
  HalvingDoublingPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host);

 protected:
  Packet packet(std::uint64_t j) const override;
};

}  // namespace hpcmoe
