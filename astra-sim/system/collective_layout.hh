// Which ranks and algorithms a collective runs on: logical dimensions for the whole world, one ring
// for a communicator subgroup.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "system/collectives/phase.hh"
#include "system/parameters.hh"
#include "workload/trace.hh"

namespace hpcmoe {

// One dimension of a layout. Rank r has index (r / stride) % size in it.
struct LayoutDim {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  CollectiveImpl impl;
};

struct Layout {
  std::vector<LayoutDim> dims;
  const std::vector<std::uint32_t>* members = nullptr;  // subgroup: its ranks in the order listed

  Ring ring(std::uint32_t dim, std::uint32_t rank) const;
};

// A layout and the part of it that one collective uses.
struct Scope {
  const Layout* layout = nullptr;  // null: no implementation is configured for this collective
  std::uint32_t dims_mask = 0;
  std::int32_t group = 0;
};

enum class QueueUse : std::uint8_t { plain, first, last };  // see queue_levels.hh

struct PlannedPhase {
  std::uint32_t dim = 0;
  CollectiveType op = CollectiveType::all_reduce;
  std::uint64_t bytes = 0;
  QueueUse use = QueueUse::plain;
};

struct ChunkSizes {
  std::uint64_t bytes = 0;  // every chunk, the last one as well
  std::uint64_t count = 0;
};

// `bytes` of the collective cut into about `splits` chunks of at least one byte per rank of the
// world. The size of an all-gather is a rank's own part and is not raised.
ChunkSizes chunk_sizes(CollectiveType op, std::uint64_t bytes, std::uint64_t splits, std::uint32_t ranks);

class CollectiveLayouts {
 public:
  CollectiveLayouts(const SystemParams& params, std::uint32_t ranks);

  std::uint32_t ranks() const { return ranks_; }
  // The node is a collective other than a broadcast, and its group exists.
  Scope scope_of(const TraceNode& node) const;
  // Phases of one chunk in order; none when no dimension of more than one rank takes part.
  std::vector<PlannedPhase> phases(const Scope& scope, CollectiveType op, std::uint64_t chunk_bytes) const;

 private:
  const Layout* world(CollectiveType op) const;
  void add_world(CollectiveType op);
  void add_group(CollectiveType op, std::int32_t id, const std::vector<std::uint32_t>& members);

  const SystemParams& params_;
  std::uint32_t ranks_;
  std::map<CollectiveType, Layout> worlds_;
  std::map<std::pair<std::int32_t, CollectiveType>, Layout> groups_;  // smaller than the world only
};

// The configured implementations of a collective, one per logical dimension; may be empty.
const std::vector<CollectiveImpl>& implementations(const SystemParams& params, CollectiveType op);

}  // namespace hpcmoe
