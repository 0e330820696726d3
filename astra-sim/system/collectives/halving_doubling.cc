#include "system/collectives/halving_doubling.hh"

#include <bit>

namespace hpcmoe {

namespace {

std::uint64_t log2_size(const PhaseSpec& spec) {
  return static_cast<std::uint64_t>(std::countr_zero(spec.ring.size));
}

}  // namespace

HalvingDoublingPhase::HalvingDoublingPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host)
    : PacketPhase(
          spec, stream, host,
          {1, log2_size(spec) - 1, (spec.op == CollectiveType::all_reduce ? 2 : 1) * log2_size(spec)}) {}

PacketPhase::Packet HalvingDoublingPhase::packet(std::uint64_t j) const {
  if (j >= shape().messages) return {};
  const std::uint64_t steps = log2_size(spec());
  const bool gather = spec().op == CollectiveType::all_gather || j >= steps;
  const std::uint64_t back = j % steps;  // steps since the turning point, when gathering
  const std::uint64_t level = gather ? steps - 1 - back : j;
  const std::uint32_t partner = spec().ring.rank_at(spec().ring.index ^ (1u << level));
  if (!gather) return {partner, partner, spec().bytes >> (j + 1)};
  const std::uint64_t shard = spec().op == CollectiveType::all_gather ? spec().bytes : spec().bytes >> steps;
  return {partner, partner, shard << back};
}

}  // namespace hpcmoe
