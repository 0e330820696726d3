#include "system/collectives/direct.hh"

#include <algorithm>

namespace hpcmoe {

namespace {

std::uint64_t in_flight(const PhaseSpec& spec) {
  const std::uint64_t others = spec.ring.size - 1;
  return spec.window < 0 ? others : std::min(static_cast<std::uint64_t>(spec.window), others);
}

}  // namespace

// On the ring of a subgroup a round has N-1 times as many reducing inserts as on a logical
// dimension, so that an all-reduce there is charged for reductions in its gather half as well.
DirectPhase::DirectPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host)
    : PacketPhase(spec, stream, host,
                  {in_flight(spec), in_flight(spec) * (spec.ring.is_subgroup() ? spec.ring.size - 1 : 1),
                   (spec.op == CollectiveType::all_reduce ? 2u : 1u) * std::uint64_t{spec.ring.size - 1}}) {}

// The gather half of an all-reduce opens when all N-1 messages of the reduce half have arrived,
// reduced or not.
bool DirectPhase::on_bundle() {
  const std::uint64_t others = ring_size() - 1;
  if (spec().op != CollectiveType::all_reduce || messages_left() > others) return PacketPhase::on_bundle();
  add_credit();
  if (received() < others) return false;
  for (std::uint64_t i = 0; i < shape().parallel; ++i) post_next();
  return is_over();
}

PacketPhase::Packet DirectPhase::packet(std::uint64_t j) const {
  const Ring& ring = spec().ring;
  const std::uint64_t steps = 1 + j % (ring.size - 1);
  return {ring.rank_after(steps, spec().clockwise), ring.rank_after(steps, !spec().clockwise),
          largest_message_bytes(Algorithm::direct, spec().op, ring.size, spec().bytes)};
}

}  // namespace hpcmoe
