// Storage of events: chunks of a few cache lines in chains. A pool hands them out, last in first out,
// so that a run's working set is as small as what is in flight; addresses never move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/event.hh"
#include "core/huge_pages.hh"
#include "core/types.hh"

namespace hpcmoe {

constexpr std::size_t kChunkBytes = 256;
constexpr std::size_t kChunkEvents = (kChunkBytes - 2 * sizeof(void*)) / sizeof(Event);

struct alignas(kChunkBytes) EventChunk {
  EventChunk* next;  // in its chain, or in the pool
  std::uint64_t padding;
  Event events[kChunkEvents];
};
static_assert(sizeof(EventChunk) == kChunkBytes && offsetof(EventChunk, events[kChunkEvents]) == kChunkBytes);

// A cursor points at an event of a chunk or just behind the last one, or is null: where nothing can be
// written.
inline bool needs_chunk(const Event* cursor) {
  return reinterpret_cast<std::uintptr_t>(cursor) % kChunkBytes == 0;
}
inline EventChunk* chunk_of(Event* event) {
  return reinterpret_cast<EventChunk*>(reinterpret_cast<std::uintptr_t>(event) & ~(kChunkBytes - 1));
}

class ChunkPool {
 public:
  ChunkPool() = default;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;
  ~ChunkPool() {
    for (const Slab& slab : slabs_) HugePageAllocator<EventChunk>().deallocate(slab.chunks, slab.count);
  }

  HPCMOE_INLINE EventChunk* take() {
    EventChunk* chunk = free_;
    if (chunk != nullptr) {
      free_ = chunk->next;
    } else {
      if (fresh_ == fresh_end_) [[unlikely]]
        grow();
      chunk = fresh_++;
    }
    chunk->next = nullptr;
    return chunk;
  }
  void give(EventChunk* chunk) {
    chunk->next = free_;
    free_ = chunk;
  }
  std::size_t taken() const;  // chunks in use; walks the free ones
  std::size_t most_taken() const { return count_ - static_cast<std::size_t>(fresh_end_ - fresh_); }

 private:
  static constexpr std::size_t kFirstSlab = (std::size_t{256} << 10) / kChunkBytes;
  static constexpr std::size_t kSlab = (std::size_t{4} << 20) / kChunkBytes;  // huge pages

  struct Slab {
    EventChunk* chunks;
    std::size_t count;
  };

  [[gnu::noinline]] void grow() {
    const std::size_t count = slabs_.empty() ? kFirstSlab : kSlab;
    slabs_.reserve(slabs_.size() + 1);
    fresh_ = HugePageAllocator<EventChunk>().allocate(count);
    fresh_end_ = fresh_ + count;
    slabs_.push_back({fresh_, count});
    count_ += count;
  }

  std::vector<Slab> slabs_;
  EventChunk* free_ = nullptr;
  EventChunk* fresh_ = nullptr;  // never handed out so far
  EventChunk* fresh_end_ = nullptr;
  std::size_t count_ = 0;  // in all slabs
};

inline std::size_t ChunkPool::taken() const {
  std::size_t count = most_taken();
  for (const EventChunk* chunk = free_; chunk != nullptr; chunk = chunk->next) --count;
  return count;
}

// First in, first out. Once used it keeps one chunk.
class EventQueue {
 public:
  bool empty() const { return head_ == tail_; }
  const Event& front() const { return *head_; }  // stays in place until it is popped

  HPCMOE_INLINE void prefetch_front() const {
    prefetch_at(0);
    prefetch_at(sizeof(Event) - 1);
  }

  // Returns the copy in the queue.
  HPCMOE_INLINE Event& push(ChunkPool& pool, const Event& event) {
    if (needs_chunk(tail_)) [[unlikely]]
      extend(pool);
    *tail_ = event;
    return *tail_++;
  }

  HPCMOE_INLINE void pop(ChunkPool& pool) {
    if (++head_ == tail_) {
      head_ = tail_ = chunk_of(head_ - 1)->events;
    } else {
      if (needs_chunk(head_)) {
        EventChunk* const spent = chunk_of(head_ - 1);
        head_ = spent->next->events;
        pool.give(spent);
      }
      // What has waited long has left the cache by its turn.
      prefetch_at(2 * sizeof(Event));
    }
  }

 private:
  // An address, not a pointer: there need not be an event.
  HPCMOE_INLINE void prefetch_at(std::size_t bytes) const {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(head_) + bytes));
  }

  void extend(ChunkPool& pool) {
    EventChunk* const chunk = pool.take();
    if (tail_ == nullptr) {
      head_ = chunk->events;
    } else {
      chunk_of(tail_ - 1)->next = chunk;
    }
    tail_ = chunk->events;
  }

  Event* head_ = nullptr;
  Event* tail_ = nullptr;
};

}  // namespace hpcmoe
