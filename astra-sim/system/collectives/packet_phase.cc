#include "system/collectives/packet_phase.hh"

namespace hpcmoe {

void PacketPhase::start() {
  for (std::uint64_t i = 0; i < shape_.parallel; ++i) insert();
}

void PacketPhase::on_receipt() {
  ++received_;
  insert();
}

bool PacketPhase::on_bundle() {
  add_credit();
  post_next();
  return is_over();
}

void PacketPhase::insert() {
  if (plain_left_ == 0 && reducing_left_ == 0) {
    plain_left_ = shape_.parallel;
    reducing_left_ = shape_.reducing_inserts;
    odd_round_ = !odd_round_;
  }
  bool reduce = false;
  BundleRoute route = BundleRoute::outbound;
  if (plain_left_ > 0) {
    --plain_left_;
  } else {
    const CollectiveType op = spec().op;
    reduce = op == CollectiveType::reduce_scatter || (op == CollectiveType::all_reduce && odd_round_);
    route = reducing_left_ <= shape_.parallel ? BundleRoute::inbound : BundleRoute::turnaround;
    --reducing_left_;
  }
  host().schedule_bundle(*this, packet(inserted_).bytes, reduce, route);
  ++inserted_;
}

void PacketPhase::post_next() {
  if (posted_ == inserted_ || left_ == 0 || credits_ == 0) return;
  const Packet next = packet(posted_);
  host().send(*this, next.to, next.bytes);
  host().receive(*this, next.from, next.bytes);  // may call on_receipt() at once
  --left_;
  ++posted_;
  --credits_;
}

}  // namespace hpcmoe
