// Queues of one rank. Every logical dimension owns `per_dim` consecutive queues; a queue runs a
// limited number of streams at a time and starts the others in order of arrival. Scheduling policies
// would order the chunks of different collectives, but a rank runs one collective at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "system/collective_layout.hh"

namespace hpcmoe {

struct Stream;

struct QueueChoice {
  std::uint32_t queue = 0;
  bool clockwise = true;
};

// Round-robin choice of a dimension's queues. The pointers live as long as the rank.
class QueueSelector {
 public:
  QueueSelector(std::uint32_t dims, std::uint32_t per_dim);
  // plain: all queues, the second half of them runs anticlockwise. first: the first half,
  // clockwise. last: the second half, anticlockwise. With one queue all share it.
  QueueChoice next(std::uint32_t dim, QueueUse use);
  void append_signature(std::vector<std::uint64_t>& signature) const {
    for (const Pointers& p : pointers_) signature.insert(signature.end(), {p.plain, p.first, p.last});
  }

 private:
  struct Pointers {
    std::uint32_t plain = 0, first = 0, last = 0;
  };
  std::uint32_t per_dim_;
  std::vector<Pointers> pointers_;
};

class StreamQueue {
 public:
  void enter(Stream& stream) { waiting_.push_back(&stream); }
  void leave() { --started_; }  // by a stream that had been started
  // The next stream to start, or null when the limit is reached or none waits.
  Stream* start_next(std::uint64_t limit);
  void append_signature(std::vector<std::uint64_t>& signature) const;

 private:
  std::deque<Stream*> waiting_;
  std::uint64_t started_ = 0;
};

}  // namespace hpcmoe
