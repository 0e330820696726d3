// Allocator for the simulator's large pools: asks for huge pages, because random access to tens of
// megabytes spends more time on address translation than on anything else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hpcmoe {

template <class T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : std::max(kCacheLine, alignof(T));
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: may be refused
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  bool operator==(const HugePageAllocator&) const { return true; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kCacheLine = 64;
};

template <class T>
using Pool = std::vector<T, HugePageAllocator<T>>;

}  // namespace hpcmoe
