#include "system/collectives/ring.hh"

namespace hpcmoe {

namespace {

std::uint64_t message_count(CollectiveType op, std::uint64_t n) {
  if (op == CollectiveType::all_reduce) return 2 * (n - 1);
  if (op == CollectiveType::all_to_all) return n * (n - 1) / 2;
  return n - 1;
}

}  // namespace

RingPhase::RingPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host)
    : PacketPhase(spec, stream, host, {1, spec.ring.size - 1, message_count(spec.op, spec.ring.size)}) {}

PacketPhase::Packet RingPhase::packet(std::uint64_t) const {
  const Ring& ring = spec().ring;
  return {ring.rank_after(1, spec().clockwise), ring.rank_after(1, !spec().clockwise),
          largest_message_bytes(Algorithm::ring, spec().op, ring.size, spec().bytes)};
}

}  // namespace hpcmoe
