#include "system/collectives/double_binary_tree.hh"

#include <cassert>

namespace hpcmoe {

// In-order numbering v = 1 .. N-1 of a perfect tree: the lowest set bit of v gives the height.
TreePosition tree_position(std::uint32_t index, std::uint32_t size, bool max_tree) {
  const std::uint32_t first = max_tree ? 0 : 1;  // index of v = 1
  const std::uint32_t root = max_tree ? size - 1 : 0;
  const auto index_of = [first](std::uint32_t v) { return v - 1 + first; };
  const std::uint32_t top = size / 2;
  if (index == root) return {{}, index_of(top), {}};
  const std::uint32_t v = index + 1 - first;
  const std::uint32_t low = v & (~v + 1);
  TreePosition position;
  position.parent = v == top ? root : index_of((v ^ low) | (low << 1));
  if (low > 1) {
    position.left = index_of(v - low / 2);
    position.right = index_of(v + low / 2);
  }
  return position;
}

DoubleBinaryTreePhase::DoubleBinaryTreePhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host)
    : Phase(spec, stream, host), position_(tree_position(spec.ring.index, spec.ring.size, spec.max_tree)) {}

void DoubleBinaryTreePhase::start() {
  if (is_leaf()) {
    state_ = State::send_up;
    bundle(false, BundleRoute::outbound);
    return;
  }
  // The counters come before the receives: one that matches at once calls back from inside.
  missing_receipts_ = missing_bundles_ = position_.right ? 2 : 1;
  host().receive(*this, rank_of(position_.left), spec().bytes);
  if (position_.right) host().receive(*this, rank_of(position_.right), spec().bytes);
}

void DoubleBinaryTreePhase::on_receipt() {
  if (state_ == State::children) {
    assert(missing_receipts_ > 0);
    --missing_receipts_;
    bundle(true, missing_receipts_ == 0 ? BundleRoute::turnaround : BundleRoute::inbound);
    return;
  }
  assert(state_ == State::parent);
  state_ = is_leaf() ? State::end : State::send_down;
  if (is_leaf()) {
    bundle(false, BundleRoute::inbound);
  } else {
    bundle(true, BundleRoute::turnaround);  // charged although nothing is added
  }
}

bool DoubleBinaryTreePhase::on_bundle() {
  switch (state_) {
    case State::children:
      if (--missing_bundles_ > 0) return false;
      if (!position_.parent) return send_to_children();
      exchange_with_parent();
      return false;
    case State::send_up:
      exchange_with_parent();
      return false;
    case State::send_down:
      return send_to_children();
    case State::end:
      return true;
    case State::parent:
      break;
  }
  assert(false && "no bundle is due while the parent is awaited");
  return false;
}

void DoubleBinaryTreePhase::bundle(bool reduce, BundleRoute route) {
  host().schedule_bundle(*this, spec().bytes, reduce, route);
}

void DoubleBinaryTreePhase::exchange_with_parent() {
  state_ = State::parent;
  host().send(*this, rank_of(position_.parent), spec().bytes);
  host().receive(*this, rank_of(position_.parent), spec().bytes);
}

bool DoubleBinaryTreePhase::send_to_children() {
  host().send(*this, rank_of(position_.left), spec().bytes);
  if (position_.right) host().send(*this, rank_of(position_.right), spec().bytes);
  return true;
}

}  // namespace hpcmoe
