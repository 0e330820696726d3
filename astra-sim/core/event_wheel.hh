// Event queue: a timing wheel of one-nanosecond slots in front of a heap for far events.
//
// Order is total: by time, then by order of scheduling. Within the wheel's horizon a slot is a chain
// of chunks that events are appended to, which keeps that order for free. An event beyond the horizon
// waits in the heap and moves into its slot when time has come close enough, which is before anything
// can be scheduled there directly; so the heap's events, scheduled earlier, stand first.
//
// Events are values: a packet in flight *is* its arrival event. Packets of one size on links of one
// kind land in few slots at a time, so appending writes to lines that are in the cache, and a slot is
// read in order. Nothing is allocated per packet once the chunks have grown to the run's working set.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <queue>
#include <vector>

#include "core/event.hh"
#include "core/event_chunks.hh"
#include "core/types.hh"

namespace hpcmoe {

class EventWheel {
 public:
  // `horizon_ns`: events nearer than this cost O(1); rounded up to a power of two.
  explicit EventWheel(TimeNs horizon_ns);

  TimeNs now() const { return now_; }
  bool empty() const { return occupied_slots_ == 0 && far_.empty(); }
  ChunkPool& chunks() { return chunks_; }
  const ChunkPool& chunks() const { return chunks_; }

  HPCMOE_INLINE void schedule(const Event& event, TimeNs time) {
    schedule(event, time, [](Event&) {});
  }

  // Schedules a copy that `amend` changes in its place. An event that was changed just before it is copied
  // would make the copy wait for the narrow writes to arrive.
  template <class Amend>
  HPCMOE_INLINE void schedule(const Event& event, TimeNs time, Amend amend) {
    assert(time >= now_);
    if (time - now_ < size_) [[likely]] {
      amend(append(event, time));
    } else {
      Event amended = event;
      amend(amended);
      schedule_far(amended, time);
    }
  }

  // Time of the earliest event, or kNever.
  HPCMOE_INLINE TimeNs next_time() const {
    if (occupied_slots_ == 0) return far_next_;
    return now_ + ((first_occupied(now_ & mask_) - now_) & mask_);
  }

  // Moves the clock to `time`, which must be next_time().
  HPCMOE_INLINE void advance(TimeNs time) {
    assert(time >= now_ && time != kNever);
    now_ = time;
    if (far_next_ - now_ < size_) [[unlikely]]
      admit_far();
  }

  // Runs all events of the current instant, also those that `handle` schedules for it: one batch after
  // the other. If `ahead`, `prepare` sees the events of the next chunk before those of this one are handled:
  // time for what they will touch to arrive from memory.
  template <class Handle, class Prepare>
  HPCMOE_INLINE std::uint64_t run_instant(Handle handle, bool ahead, Prepare prepare) {
    std::uint64_t count = 0;
    while (true) {
      const Slot batch = slots_[now_ & mask_];
      if (batch.tail == nullptr) return count;
      clear(now_ & mask_);
      for (EventChunk* chunk = batch.first; chunk != nullptr;) {
        EventChunk* const following = chunk->next;
        const Event* const end = following != nullptr ? chunk->events + kChunkEvents : batch.tail;
        if (ahead) look_ahead({chunk, batch.tail, (now_ - 1) & mask_}, prepare);
        count += static_cast<std::uint64_t>(end - chunk->events);
        for (const Event* event = chunk->events; event != end; ++event) handle(*event);
        chunks_.give(chunk);
        chunk = following;
      }
    }
  }

 private:
  struct Slot {
    Event* tail = nullptr;  // where the next event goes
    EventChunk* first = nullptr;
  };
  struct Far {
    TimeNs time;
    std::uint64_t sequence;
    Event event;
    bool operator>(const Far& o) const { return time != o.time ? time > o.time : sequence > o.sequence; }
  };

  // A chunk of the slot `slot`, whose last event ends at `tail`. The running batch counts as the slot before.
  struct Place {
    const EventChunk* chunk;
    const Event* tail;
    std::size_t slot;
  };

  template <class Prepare>
  HPCMOE_INLINE void look_ahead(Place place, Prepare prepare) const {
    if (!step(place)) return;
    const Event* const end = place.chunk->next != nullptr ? place.chunk->events + kChunkEvents : place.tail;
    for (const Event* event = place.chunk->events; event != end; ++event) prepare(*event);
    if (step(place)) prefetch(place.chunk);
  }

  // To the chunk whose turn is next, as things stand.
  HPCMOE_INLINE bool step(Place& place) const {
    if (place.chunk->next != nullptr) {
      place.chunk = place.chunk->next;
      return true;
    }
    if (occupied_slots_ == 0) return false;
    const std::size_t slot = first_occupied((place.slot + 1) & mask_);
    place = {slots_[slot].first, slots_[slot].tail, slot};
    return true;
  }

  // The first occupied slot from `start` on, round the wheel; there is one.
  HPCMOE_INLINE std::size_t first_occupied(std::size_t start) const {
    std::size_t word = start >> 6;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start & 63));
    while (bits == 0) {
      word = (word + 1) & (occupied_.size() - 1);
      bits = occupied_[word];
    }
    return (word << 6) + static_cast<std::size_t>(std::countr_zero(bits));
  }

  HPCMOE_INLINE static void prefetch(const EventChunk* chunk) {
    for (std::size_t line = 0; line < kChunkBytes; line += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(chunk) + line);
    }
  }

  void schedule_far(const Event& event, TimeNs time);
  void admit_far();

  HPCMOE_INLINE Event& append(const Event& event, TimeNs time) {
    Slot& slot = slots_[time & mask_];
    if (needs_chunk(slot.tail)) extend(time & mask_);
    *slot.tail = event;
    return *slot.tail++;
  }

  HPCMOE_INLINE void extend(std::size_t index) {
    Slot& slot = slots_[index];
    EventChunk* const chunk = chunks_.take();
    if (slot.tail == nullptr) {
      slot.first = chunk;
      occupied_[index >> 6] |= std::uint64_t{1} << (index & 63);
      ++occupied_slots_;
    } else {
      chunk_of(slot.tail - 1)->next = chunk;
    }
    slot.tail = chunk->events;
  }

  void clear(std::size_t index) {
    slots_[index].tail = nullptr;
    occupied_[index >> 6] &= ~(std::uint64_t{1} << (index & 63));
    --occupied_slots_;
  }

  ChunkPool chunks_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> occupied_;
  std::priority_queue<Far, std::vector<Far>, std::greater<Far>> far_;
  TimeNs far_next_ = kNever;  // time of the heap's first
  TimeNs now_ = 0;
  TimeNs size_ = 0;
  std::size_t mask_ = 0;
  std::size_t occupied_slots_ = 0;
  std::uint64_t far_sequence_ = 0;
};

}  // namespace hpcmoe
