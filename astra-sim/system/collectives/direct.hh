// Direct: every rank sends to every other one, at most `window` messages in flight.
#pragma once

#include "system/collectives/packet_phase.hh"

namespace hpcmoe {

class DirectPhase final : public PacketPhase {
 public:
  DirectPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host);
  bool on_bundle() override;

 protected:
  Packet packet(std::uint64_t j) const override;
};

}  // namespace hpcmoe
