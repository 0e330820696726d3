#include "system/message_matcher.hh"

#include <algorithm>
#include <array>
#include <utility>

namespace hpcmoe {

bool MessageMatcher::receive(const MessageKey& key, std::uint64_t bytes, const Completion& completion) {
  const std::size_t slot = find(key);
  Entry& entry = table_[slot];
  if (!entry.used) {
    insert(slot, {key, true, true, bytes, completion});
    return false;
  }
  if (entry.waiting) {
    entry.bytes += bytes;
    entry.completion = completion;
    return false;
  }
  if (entry.bytes < bytes) {
    entry = {key, true, true, bytes - entry.bytes, completion};
    return false;
  }
  entry.bytes -= bytes;
  if (entry.bytes == 0) erase(slot);
  return true;
}

Completion MessageMatcher::arrive(const MessageKey& key, std::uint64_t bytes) {
  const std::size_t slot = find(key);
  Entry& entry = table_[slot];
  if (!entry.used) {
    insert(slot, {key, true, false, bytes, {}});
    return {};
  }
  if (!entry.waiting) {
    entry.bytes += bytes;
    return {};
  }
  if (bytes < entry.bytes) {
    entry.bytes -= bytes;
    return {};
  }
  const Completion completion = entry.completion;
  if (bytes == entry.bytes) {
    erase(slot);
  } else {
    entry = {key, true, false, bytes - entry.bytes, {}};
  }
  return completion;
}

std::size_t MessageMatcher::home(const MessageKey& key) const {
  std::uint64_t hash = (std::uint64_t{key.tag} << 32 | key.dst) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ (hash >> 29) ^ key.src) * 0xBF58476D1CE4E5B9u;
  return static_cast<std::size_t>(hash ^ (hash >> 32)) & (table_.size() - 1);
}

std::size_t MessageMatcher::find(const MessageKey& key) const {
  std::size_t slot = home(key);
  while (table_[slot].used && !(table_[slot].key == key)) slot = (slot + 1) & (table_.size() - 1);
  return slot;
}

void MessageMatcher::insert(std::size_t slot, const Entry& entry) {
  if (2 * (used_ + 1) > table_.size()) {
    grow();
    slot = find(entry.key);
  }
  table_[slot] = entry;
  ++used_;
}

void MessageMatcher::erase(std::size_t slot) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = slot;
  for (std::size_t next = (hole + 1) & mask; table_[next].used; next = (next + 1) & mask) {
    const std::size_t distance = (next - home(table_[next].key)) & mask;
    if (distance < ((next - hole) & mask)) continue;  // it would land before its home
    table_[hole] = table_[next];
    hole = next;
  }
  table_[hole].used = false;
  --used_;
}

void MessageMatcher::grow() {
  const std::vector<Entry> old = std::exchange(table_, std::vector<Entry>(2 * table_.size()));
  for (const Entry& entry : old) {
    if (entry.used) table_[find(entry.key)] = entry;
  }
}

void MessageMatcher::append_signature(std::vector<std::uint64_t>& signature, std::uint32_t base) const {
  using Row = std::array<std::uint64_t, 6>;
  std::vector<Row> rows;
  for (const Entry& e : table_) {
    if (!e.used) continue;
    rows.push_back({e.key.dst, e.key.src, e.key.tag - base, e.waiting ? 1u : 0u, e.bytes,
                    static_cast<std::uint64_t>(e.completion.kind)});
  }
  std::sort(rows.begin(), rows.end());
  for (const Row& row : rows) signature.insert(signature.end(), row.begin(), row.end());
}

}  // namespace hpcmoe
