#include "system/collective_layout.hh"

#include <algorithm>
#include <cassert>

namespace hpcmoe {

namespace {

constexpr CollectiveType kSimulated[] = {CollectiveType::all_reduce, CollectiveType::all_gather,
                                         CollectiveType::reduce_scatter, CollectiveType::all_to_all};

// Appends phases, each with the output of the one before as its input.
class PhaseChain {
 public:
  PhaseChain(const Layout& layout, std::uint64_t bytes) : layout_(layout), bytes_(bytes) {}

  void add(std::uint32_t dim, CollectiveType op, QueueUse use) {
    phases_.push_back({dim, op, bytes_, use});
    const LayoutDim& layout_dim = layout_.dims[dim];
    bytes_ = phase_output_bytes(layout_dim.impl.algorithm, op, layout_dim.size, bytes_);
  }
  std::vector<PlannedPhase> take() { return std::move(phases_); }

 private:
  const Layout& layout_;
  std::uint64_t bytes_;
  std::vector<PlannedPhase> phases_;
};

std::vector<std::uint32_t> dims_in_use(const Layout& layout, std::uint32_t mask) {
  std::vector<std::uint32_t> dims;
  for (std::uint32_t k = 0; k < layout.dims.size(); ++k) {
    if (layout.dims[k].size > 1 && (mask >> k & 1u)) dims.push_back(k);
  }
  return dims;
}

// Reduce-scatter up to the last dimension, all-reduce on it, all-gather on the way back.
void add_bandwidth_aware_all_reduce(PhaseChain& chain, const std::vector<std::uint32_t>& dims) {
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    chain.add(dims[i], CollectiveType::reduce_scatter, QueueUse::first);
  }
  chain.add(dims.back(), CollectiveType::all_reduce, QueueUse::first);
  for (std::size_t i = dims.size() - 1; i-- > 0;) {
    chain.add(dims[i], CollectiveType::all_gather, QueueUse::last);
  }
}

}  // namespace

Ring Layout::ring(std::uint32_t dim, std::uint32_t rank) const {
  const LayoutDim& d = dims[dim];
  if (members) {
    const auto place = std::find(members->begin(), members->end(), rank);
    assert(place != members->end());
    return {d.size, static_cast<std::uint32_t>(place - members->begin()), 0, 1, members->data()};
  }
  const std::uint32_t index = rank / d.stride % d.size;
  return {d.size, index, rank - index * d.stride, d.stride, nullptr};
}

ChunkSizes chunk_sizes(CollectiveType op, std::uint64_t bytes, std::uint64_t splits, std::uint32_t ranks) {
  std::uint64_t chunk = bytes / splits;
  if (op != CollectiveType::all_gather && chunk < ranks) return {ranks, splits};
  if (chunk == 0) return {0, 0};
  return {chunk, (bytes + chunk - 1) / chunk};
}

const std::vector<CollectiveImpl>& implementations(const SystemParams& params, CollectiveType op) {
  switch (op) {
    case CollectiveType::all_gather:
      return params.all_gather;
    case CollectiveType::reduce_scatter:
      return params.reduce_scatter;
    case CollectiveType::all_to_all:
      return params.all_to_all;
    default:
      return params.all_reduce;
  }
}

CollectiveLayouts::CollectiveLayouts(const SystemParams& params, std::uint32_t ranks)
    : params_(params), ranks_(ranks) {
  for (const CollectiveType op : kSimulated) {
    if (implementations(params, op).empty()) continue;
    add_world(op);
    for (const auto& [id, members] : params.groups) {
      if (members.size() < ranks) add_group(op, id, members);
    }
  }
}

const Layout* CollectiveLayouts::world(CollectiveType op) const {
  const auto found = worlds_.find(op);
  return found == worlds_.end() ? nullptr : &found->second;
}

// A "one..." implementation replaces the dimensions by a single one; a list shorter than the
// dimensions covers the first ones only.
void CollectiveLayouts::add_world(CollectiveType op) {
  const std::vector<CollectiveImpl>& impls = implementations(params_, op);
  Layout& layout = worlds_[op];
  if (impls.front().one_dim) {
    layout.dims.push_back({ranks_, 1, impls.front()});
    return;
  }
  std::uint32_t stride = 1;
  for (std::size_t k = 0; k < std::min(impls.size(), params_.logical_dims.size()); ++k) {
    layout.dims.push_back({params_.logical_dims[k], stride, impls[k]});
    stride *= params_.logical_dims[k];
  }
}

// A subgroup is one ring. It runs the configured algorithm only when that is unambiguous.
void CollectiveLayouts::add_group(CollectiveType op, std::int32_t id,
                                  const std::vector<std::uint32_t>& members) {
  const std::vector<CollectiveImpl>& impls = implementations(params_, op);
  const CollectiveImpl impl = impls.size() == 1 ? impls.front() : CollectiveImpl{};
  groups_[{id, op}] = {{{static_cast<std::uint32_t>(members.size()), 1, impl}}, &members};
}

Scope CollectiveLayouts::scope_of(const TraceNode& node) const {
  if (node.group == 0) return {world(node.comm_type), node.involved_dims, 0};
  const auto found = groups_.find({node.group, node.comm_type});
  // A group of all ranks runs on the logical dimensions, all of them.
  if (found == groups_.end()) return {world(node.comm_type), ~0u, node.group};
  return {&found->second, ~0u, node.group};
}

std::vector<PlannedPhase> CollectiveLayouts::phases(const Scope& scope, CollectiveType op,
                                                    std::uint64_t chunk_bytes) const {
  const std::vector<std::uint32_t> dims = dims_in_use(*scope.layout, scope.dims_mask);
  PhaseChain chain(*scope.layout, chunk_bytes);
  if (dims.empty()) return {};
  if (op == CollectiveType::all_reduce && params_.collective_optimization == 1) {
    add_bandwidth_aware_all_reduce(chain, dims);
  } else if (op == CollectiveType::all_gather) {
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) chain.add(*dim, op, QueueUse::plain);
  } else {
    for (const std::uint32_t dim : dims) chain.add(dim, op, QueueUse::plain);
  }
  return chain.take();
}

}  // namespace hpcmoe
