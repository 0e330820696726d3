// Double binary tree all-reduce. A phase uses one of the two trees and moves the whole chunk over
// every edge, up and down again; successive phases alternate between the trees. Whatever
// collective was asked for, this all-reduce is what runs.
#pragma once

#include <optional>

#include "system/collectives/phase.hh"

namespace hpcmoe {

// Neighbours of one index in the tree. The extra root (highest index in the max tree, lowest in
// the min tree) has one child, `left`; leaves have none.
struct TreePosition {
  std::optional<std::uint32_t> parent, left, right;
};

// `size` is a power of two, at least 2.
TreePosition tree_position(std::uint32_t index, std::uint32_t size, bool max_tree);

class DoubleBinaryTreePhase final : public Phase {
 public:
  DoubleBinaryTreePhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host);
  void start() override;
  void on_receipt() override;
  bool on_bundle() override;
  void append_signature(std::vector<std::uint64_t>& signature) const override {
    signature.insert(signature.end(), {spec().max_tree ? 1u : 0u, static_cast<std::uint64_t>(state_),
                                       missing_receipts_, missing_bundles_});
  }

 private:
  enum class State : std::uint8_t { children, send_up, parent, send_down, end };

  void bundle(bool reduce, BundleRoute route);
  void exchange_with_parent();
  bool send_to_children();
  bool is_leaf() const { return !position_.left; }
  std::uint32_t rank_of(std::optional<std::uint32_t> index) const { return spec().ring.rank_at(*index); }

  TreePosition position_;
  State state_ = State::children;
  std::uint32_t missing_receipts_ = 0;  // of children
  std::uint32_t missing_bundles_ = 0;   // of children
};

}  // namespace hpcmoe
