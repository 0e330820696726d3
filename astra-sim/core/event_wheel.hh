// Event queue: a timing wheel of one-nanosecond slots in front of a heap for far events.
//
// Order is total: by time, then by order of scheduling. Within the wheel's horizon a slot is a FIFO
// list, which keeps that order for free. An event beyond the horizon waits in the heap and moves
// into its slot when time has come close enough, which is before anything can be scheduled there
// directly; so the heap's events, scheduled earlier, stand first.
//
// An event is a 32-byte record in one pool; a packet in flight *is* its arrival event, and a packet
// in a port's queue is the same record linked there. Nothing is allocated per packet once the pool
// has grown to the run's working set. Indices, not pointers: the pool may move when it grows.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <queue>
#include <vector>

#include "core/huge_pages.hh"
#include "core/types.hh"

namespace hpcmoe {

constexpr std::uint32_t kNil = ~std::uint32_t{0};

enum class EventKind : std::uint8_t {
  // packets: the event is the arrival at port `target`
  data,
  ack,
  nack,
  pfc,
  // everything else
  tx_done,          // port `target` has sent its packet
  flow_initialise,  // first of the two zero-delay steps of a flow's start
  flow_begin,
  wake_up,        // host port `target`, generation `seq`
  rank_timer,     // system layer, rank `target`
  control_alpha,  // queue pair timers: `flow`, generation `seq`
  control_decrease,
  control_increase,
  nic_resume,
  nic_rearm,
  queue_monitor,
};

struct Event {
  std::uint32_t next = kNil;
  std::uint32_t target = 0;   // receiving port, or a timer's subject
  std::uint32_t flow = 0;     // queue pair
  std::uint32_t seq = 0;      // data: first byte; ACK: next byte expected; timers: generation
  std::uint32_t wire = 0;     // bytes on the wire
  std::uint32_t in_port = 0;  // switch port the packet came in by, while it is queued
  EventKind kind = EventKind::data;
  std::uint8_t flags = 0;
  std::uint8_t hop = 0;  // switches passed so far
  std::uint8_t int_hops = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Event) == 32);

// Packet flags.
constexpr std::uint8_t kEcnMarked = 1;   // congestion experienced
constexpr std::uint8_t kEcnEcho = 2;     // ACK: the data packet was marked
constexpr std::uint8_t kCarriesInt = 4;  // the packet has an INT field
constexpr std::uint8_t kPfcPause = 8;    // PFC: pause, else resume

class EventWheel {
 public:
  // `horizon_ns`: events nearer than this cost O(1); rounded up to a power of two.
  explicit EventWheel(TimeNs horizon_ns);

  TimeNs now() const { return now_; }
  bool empty() const { return near_ == 0 && far_.empty(); }

  std::uint32_t allocate();
  void release(std::uint32_t index) {
    events_[index].next = free_;
    free_ = index;
    --live_;
  }
  void prefetch(std::uint32_t index) const { __builtin_prefetch(&events_[index]); }
  Event& operator[](std::uint32_t index) { return events_[index]; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(events_.size()); }
  std::uint32_t live() const { return live_; }  // records in use

  HPCMOE_INLINE void schedule_at(std::uint32_t index, TimeNs time) {
    assert(time >= now_);
    if (time - now_ < size_) [[likely]] {
      append(index, time);
    } else {
      schedule_far(index, time);
    }
  }

  // Time of the earliest event, or kNever.
  HPCMOE_INLINE TimeNs next_time() const {
    if (near_ == 0) return far_next_;
    const std::size_t start = now_ & mask_;
    std::size_t word = start >> 6;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start & 63));
    while (bits == 0) {  // near_ > 0, so some slot within one turn is occupied
      word = (word + 1) & (occupied_.size() - 1);
      bits = occupied_[word];
    }
    const std::size_t slot = (word << 6) + static_cast<std::size_t>(std::countr_zero(bits));
    return now_ + ((slot - start) & mask_);
  }

  // Moves the clock to `time`, which must be next_time().
  HPCMOE_INLINE void advance(TimeNs time) {
    assert(time >= now_ && time != kNever);
    now_ = time;
    if (far_next_ - now_ < size_) [[unlikely]]
      admit_far();
  }

  // Takes all events of the current instant; the result is the first of a list linked by `next`.
  // Events scheduled for the same instant while that list runs form the next batch.
  std::uint32_t take_batch() {
    const std::uint32_t tail = tails_[now_ & mask_];
    if (tail == kNil) return kNil;
    const std::uint32_t head = events_[tail].next;
    events_[tail].next = kNil;
    clear(now_ & mask_);
    return head;
  }

  // The events of the batches taken so far have run.
  void count_done(std::uint64_t events) { near_ -= events; }

 private:
  struct Far {
    TimeNs time;
    std::uint64_t sequence;
    std::uint32_t index;
    bool operator>(const Far& o) const { return time != o.time ? time > o.time : sequence > o.sequence; }
  };

  void schedule_far(std::uint32_t index, TimeNs time);
  void admit_far();

  HPCMOE_INLINE void append(std::uint32_t index, TimeNs time) {
    const std::size_t slot = time & mask_;
    const std::uint32_t tail = tails_[slot];
    if (tail == kNil) {
      events_[index].next = index;
      occupied_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
    } else {
      events_[index].next = events_[tail].next;
      events_[tail].next = index;
    }
    tails_[slot] = index;
    ++near_;
  }

  void clear(std::size_t slot) {
    tails_[slot] = kNil;
    occupied_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63));
  }

  Pool<Event> events_;
  std::vector<std::uint32_t> tails_;  // per slot the last event; its `next` is the first
  std::vector<std::uint64_t> occupied_;
  std::priority_queue<Far, std::vector<Far>, std::greater<Far>> far_;
  TimeNs far_next_ = kNever;  // time of the heap's first
  TimeNs now_ = 0;
  TimeNs size_ = 0;
  std::size_t mask_ = 0;
  std::uint64_t near_ = 0;  // events in the wheel and in the running batch
  std::uint64_t far_sequence_ = 0;
  std::uint32_t free_ = kNil;
  std::uint32_t live_ = 0;
};

}  // namespace hpcmoe
