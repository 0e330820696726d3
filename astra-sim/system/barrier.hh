// Where ranks wait for each other: those that differ in the logical dimensions which the barrier involves
// and in no other. The last one to arrive lets them go on at that instant, in rank order; nothing is sent.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "system/event_table.hh"

namespace hpcmoe {

class Barrier {
 public:
  Barrier(Timers& timers, std::vector<std::uint32_t> logical_dims, std::uint32_t ranks)
      : timers_(timers), dims_(std::move(logical_dims)), id_(ranks + 1), places_(ranks) {}

  // The backend's name for this barrier's timers; ranks and the compute clock have the smaller ones.
  std::uint32_t id() const { return id_; }

  // A rank has one barrier in work at a time: its communication slot sees to that.
  void arrive(std::uint32_t rank, std::uint32_t node, std::uint32_t involved_dims) {
    const Cohort cohort = cohort_of(rank, involved_dims);
    places_[rank] = {node, cohort.name};
    if (++waiting_[cohort.name] < cohort.size) return;
    if (ready_.empty()) timers_.ask(id_, 0);  // one timer for all that are complete by then
    ready_.push_back(cohort.name);
  }

  // Calls done(rank, node) in rank order for all whose cohort is complete.
  template <class Done>
  void drain(Done&& done) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> released;
    for (const Name& name : std::exchange(ready_, {})) waiting_.erase(name);
    for (std::uint32_t rank = 0; rank < places_.size(); ++rank) {
      if (!is_waiting(rank) || waiting_.count(places_[rank].cohort) > 0) continue;
      released.emplace_back(rank, std::exchange(places_[rank], Place{}).node);
    }
    for (const auto& [rank, node] : released) done(rank, node);
  }

  bool is_waiting(std::uint32_t rank) const { return places_[rank].node != kAbsent; }
  void move(std::uint32_t rank, std::uint32_t node) { places_[rank].node = node; }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  static constexpr std::uint32_t kFlags = 4;  // a trace names no more dimensions; further ones are involved
  using Name = std::pair<std::uint32_t, std::uint32_t>;  // involved dimensions, lowest rank
  struct Cohort {
    Name name;
    std::uint32_t size = 1;
  };
  struct Place {
    std::uint32_t node = kAbsent;
    Name cohort;
  };

  Cohort cohort_of(std::uint32_t rank, std::uint32_t involved_dims) const {
    Cohort cohort{{involved_dims, rank}};
    std::uint32_t stride = 1;
    for (std::uint32_t dim = 0; dim < dims_.size(); ++dim) {
      if (dim >= kFlags || (involved_dims >> dim & 1) != 0) {
        cohort.name.second -= rank / stride % dims_[dim] * stride;
        cohort.size *= dims_[dim];
      }
      stride *= dims_[dim];
    }
    return cohort;
  }

  Timers& timers_;
  std::vector<std::uint32_t> dims_;
  std::uint32_t id_;
  std::vector<Place> places_;  // by rank
  std::map<Name, std::uint32_t> waiting_;
  std::vector<Name> ready_;
};

}  // namespace hpcmoe
