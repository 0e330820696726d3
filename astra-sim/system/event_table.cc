#include "system/event_table.hh"

namespace hpcmoe {

std::uint32_t Timers::take(const RankEvent& event) {
  if (spare_ == kNone) {
    links_.push_back({event, kNone});
    return static_cast<std::uint32_t>(links_.size() - 1);
  }
  const std::uint32_t link = spare_;
  spare_ = links_[link].next;
  links_[link] = {event, kNone};
  return link;
}

void Timers::release(std::uint32_t link) {
  links_[link].next = spare_;
  spare_ = link;
}

void EventTable::schedule(TimeNs delay_ns, const RankEvent& event) {
  const TimeNs tick = now() + delay_ns;
  const std::uint32_t link = timers_.take(event);
  auto slot = slots_.end();
  while (slot != slots_.begin() && (slot - 1)->tick < tick) --slot;
  if (slot != slots_.begin() && (slot - 1)->tick == tick) {
    --slot;
    if (slot->tail == Timers::kNone) {  // the list is being drained and was empty for a moment
      slot->head = link;
    } else {
      timers_.links_[slot->tail].next = link;
    }
    slot->tail = link;
    return;
  }
  slots_.insert(slot, {tick, link, link});
  timers_.ask(rank_, delay_ns);
}

RankEvent EventTable::pop() {
  Slot& slot = slots_.back();
  const std::uint32_t link = slot.head;
  const RankEvent event = timers_.links_[link].event;
  slot.head = timers_.links_[link].next;
  if (slot.head == Timers::kNone) slot.tail = Timers::kNone;
  timers_.release(link);
  return event;
}

}  // namespace hpcmoe
