// Ring: every message goes to the next neighbour, one in flight. Each receipt triggers the next
// send. An all-to-all relays N(N-1)/2 shards hop by hop.
#pragma once

#include "system/collectives/packet_phase.hh"

namespace hpcmoe {

class RingPhase final : public PacketPhase {
 public:
  RingPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host);

 protected:
  Packet packet(std::uint64_t j) const override;
};

}  // namespace hpcmoe
