// Where ranks wait for each other. The last one to arrive lets all of them go on at that instant, in
// rank order; nothing is sent.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "system/event_table.hh"

namespace hpcmoe {

class Barrier {
 public:
  Barrier(Timers& timers, std::uint32_t ranks) : timers_(timers), id_(ranks + 1), nodes_(ranks, kAbsent) {}

  // The backend's name for this barrier's timers; ranks and the compute clock have the smaller ones.
  std::uint32_t id() const { return id_; }

  // A rank has one barrier in work at a time: its communication slot sees to that.
  void arrive(std::uint32_t rank, std::uint32_t node) {
    nodes_[rank] = node;
    if (++waiting_ == nodes_.size()) timers_.ask(id_, 0);
  }

  // Everybody is here: calls done(rank, node) in rank order.
  template <class Done>
  void drain(Done&& done) {
    waiting_ = 0;
    const std::vector<std::uint32_t> nodes =
        std::exchange(nodes_, std::vector<std::uint32_t>(nodes_.size(), kAbsent));
    for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) done(rank, nodes[rank]);
  }

  std::size_t waiting() const { return waiting_; }
  bool is_waiting(std::uint32_t rank) const { return nodes_[rank] != kAbsent; }
  void move(std::uint32_t rank, std::uint32_t node) { nodes_[rank] = node; }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  Timers& timers_;
  std::uint32_t id_;
  std::vector<std::uint32_t> nodes_;  // by rank: the node with which it waits
  std::size_t waiting_ = 0;
};

}  // namespace hpcmoe
