#include "system/queue_levels.hh"

#include "system/collective_engine.hh"

namespace hpcmoe {

QueueSelector::QueueSelector(std::uint32_t dims, std::uint32_t per_dim)
    : per_dim_(per_dim), pointers_(dims, Pointers{0, 0, per_dim / 2}) {}

QueueChoice QueueSelector::next(std::uint32_t dim, QueueUse use) {
  const std::uint32_t half = per_dim_ / 2;
  Pointers& pointers = pointers_[dim];
  const std::uint32_t offset = dim * per_dim_;
  if (use == QueueUse::first) {
    const std::uint32_t at = pointers.first;
    pointers.first = at + 1 < half ? at + 1 : 0;
    return {offset + at, true};
  }
  if (use == QueueUse::last) {
    const std::uint32_t at = pointers.last;
    pointers.last = at + 1 < per_dim_ ? at + 1 : half;
    return {offset + at, false};
  }
  const std::uint32_t at = pointers.plain;
  pointers.plain = (at + 1) % per_dim_;
  return {offset + at, per_dim_ == 1 || at < half};
}

void StreamQueue::append_signature(std::vector<std::uint64_t>& signature) const {
  signature.insert(signature.end(), {started_, waiting_.size()});
  for (const Stream* stream : waiting_) signature.push_back(stream->chunk);
}

Stream* StreamQueue::start_next(std::uint64_t limit) {
  if (started_ >= limit || waiting_.empty()) return nullptr;
  Stream* stream = waiting_.front();
  waiting_.pop_front();
  ++started_;
  return stream;
}

}  // namespace hpcmoe
