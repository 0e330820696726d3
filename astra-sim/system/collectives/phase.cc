#include "system/collectives/phase.hh"

#include "system/collectives/direct.hh"
#include "system/collectives/double_binary_tree.hh"
#include "system/collectives/halving_doubling.hh"
#include "system/collectives/ring.hh"

namespace hpcmoe {

std::unique_ptr<Phase> make_phase(const PhaseSpec& spec, Stream& stream, PhaseHost& host) {
  switch (spec.algorithm) {
    case Algorithm::ring:
      return std::make_unique<RingPhase>(spec, stream, host);
    case Algorithm::direct:
      return std::make_unique<DirectPhase>(spec, stream, host);
    case Algorithm::halving_doubling:
      return std::make_unique<HalvingDoublingPhase>(spec, stream, host);
    case Algorithm::double_binary_tree:
      return std::make_unique<DoubleBinaryTreePhase>(spec, stream, host);
  }
  return nullptr;
}

std::uint64_t phase_output_bytes(Algorithm algorithm, CollectiveType op, std::uint32_t ring_size,
                                 std::uint64_t bytes) {
  if (algorithm == Algorithm::double_binary_tree) return bytes;  // all-reduce whatever was asked for
  if (op == CollectiveType::reduce_scatter) return bytes / ring_size;
  if (op == CollectiveType::all_gather) return bytes * ring_size;
  return bytes;
}

std::uint64_t largest_message_bytes(Algorithm algorithm, CollectiveType op, std::uint32_t ring_size,
                                    std::uint64_t bytes) {
  if (algorithm == Algorithm::double_binary_tree) return bytes;
  const bool gather = op == CollectiveType::all_gather;
  if (algorithm == Algorithm::halving_doubling) return gather ? bytes * (ring_size / 2) : bytes / 2;
  return gather ? bytes : bytes / ring_size;
}

}  // namespace hpcmoe
