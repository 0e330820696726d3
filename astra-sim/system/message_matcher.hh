// Matches arrivals with posted receives by (tag, source, destination) and by byte count alone:
// message boundaries do not exist here. A second receive for a key that already waits replaces the
// first and adds its bytes; the first is never told (upstream behaves so, and traces that rely on
// it stall there as well).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpcmoe {

class Phase;

// Whom to tell when a send or a receive has completed.
struct Completion {
  enum class Kind : std::uint8_t { none, receipt, node, deferred };
  Kind kind = Kind::none;
  std::uint32_t rank = 0;   // node: the rank it belongs to
  std::uint32_t index = 0;  // node: its index in the trace; deferred: the record
  Phase* phase = nullptr;   // receipt: the phase that posted the receive
};

struct MessageKey {
  std::uint32_t tag = 0;
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  bool operator==(const MessageKey&) const = default;
};

class MessageMatcher {
 public:
  struct Entry {
    MessageKey key;
    bool used = false;
    bool waiting = false;  // a receive waits for `bytes`; else `bytes` have arrived unclaimed
    std::uint64_t bytes = 0;
    Completion completion;
  };

  MessageMatcher() : table_(64) {}

  // True when enough bytes stand by already: the caller completes the receive at once.
  bool receive(const MessageKey& key, std::uint64_t bytes, const Completion& completion);
  // The receive that the arrival completes, or one of kind none.
  Completion arrive(const MessageKey& key, std::uint64_t bytes);

  // Everything that waits or stands by, in an order of its own, with tags counted from `base`.
  void append_signature(std::vector<std::uint64_t>& signature, std::uint32_t base) const;

  template <class Visit>
  void for_each_waiting(Visit&& visit) const {
    for (const Entry& entry : table_) {
      if (entry.used && entry.waiting) visit(entry);
    }
  }

 private:
  // Open addressing with linear probing; removal shifts followers back, so there are no tombstones.
  std::size_t home(const MessageKey& key) const;
  std::size_t find(const MessageKey& key) const;  // its slot, or the empty slot where it would go
  void insert(std::size_t slot, const Entry& entry);
  void erase(std::size_t slot);
  void grow();

  std::vector<Entry> table_;  // size is a power of two, at most half full
  std::size_t used_ = 0;
};

}  // namespace hpcmoe
