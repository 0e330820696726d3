#include "system/shared_bus.hh"

namespace hpcmoe {

namespace {

constexpr float kInnerGapPerByte = 0.0038f;
constexpr std::uint64_t kTurnLimit = 8;  // sends in a row before the other end may have its turn
constexpr TimeNs kReductionStartNs = 50;

}  // namespace

SharedBus::SharedBus(const SystemParams& params, EventTable& events, BusClient& client)
    : events_(events),
      client_(client),
      latency_(static_cast<TimeNs>(params.bus_latency)),
      overhead_(static_cast<TimeNs>(params.bus_overhead)),
      gap_(static_cast<TimeNs>(params.bus_gap)),
      outer_gap_per_byte_(static_cast<float>(params.bus_gap_per_byte)),
      reduction_ns_per_100_bytes_(params.local_reduction_delay) {}

void SharedBus::carry(Phase& phase, std::uint64_t bytes, bool reduce, BundleRoute route) {
  const std::uint32_t index = take_job();
  Job& job = jobs_[index];
  job = {&phase, bytes, reduce, {}, 0};
  std::size_t count = 0;
  const auto add = [&job, &count](Hop hop) { job.hops[count++] = hop; };
  if (route == BundleRoute::outbound) {
    add(Hop::memory);
    add(Hop::npu);
  } else {
    add(Hop::interface);
    add(Hop::inner_npu);
    if (reduce) {
      add(Hop::memory);
      add(Hop::reduction);
      add(Hop::inner_npu);
    }
    if (route == BundleRoute::turnaround) {
      add(Hop::memory);
      add(Hop::npu);
    }
  }
  add(Hop::done);
  advance(index);
}

void SharedBus::on_event(const RankEvent& event) {
  const auto end = static_cast<std::size_t>(event.value);
  if (event.kind == RankEventKind::bus_sent) return sent(end);
  if (event.kind == RankEventKind::bus_received) return received(end);
  const std::uint32_t job = reductions_.front();
  reductions_.pop_front();
  if (!reductions_.empty()) start_reduction();
  advance(job);
}

std::uint32_t SharedBus::take_job() {
  if (spare_jobs_.empty()) {
    jobs_.emplace_back();
    return static_cast<std::uint32_t>(jobs_.size() - 1);
  }
  const std::uint32_t job = spare_jobs_.back();
  spare_jobs_.pop_back();
  return job;
}

void SharedBus::advance(std::uint32_t index) {
  Job& job = jobs_[index];
  const Hop hop = job.hops[job.next++];
  if (hop == Hop::done) {
    const Job finished = job;
    spare_jobs_.push_back(index);
    client_.on_carried(*finished.phase, finished.bytes, finished.reduce);
  } else if (hop == Hop::reduction) {
    reductions_.push_back(index);
    if (reductions_.size() == 1) start_reduction();
  } else {
    const auto end = static_cast<std::size_t>(hop);
    ends_[end].sends.push_back(index);
    try_send(end);
  }
}

void SharedBus::try_send(std::size_t index) {
  const End& end = ends_[index];
  if (end.state != State::free || end.sends.empty()) return;
  const End& partner = ends_[partner_of(index)];
  if (end.sent_in_a_row > kTurnLimit && !partner.sends.empty() && partner.sent_in_a_row <= kTurnLimit) {
    if (partner.state == State::free) try_send(partner_of(index));
    return;
  }
  transmit(index);
}

void SharedBus::transmit(std::size_t index) {
  End& end = ends_[index];
  End& partner = ends_[partner_of(index)];
  const std::uint32_t job = end.sends.front();
  end.sends.pop_front();
  const bool outer = index <= static_cast<std::size_t>(Hop::interface);
  const float per_byte = outer ? outer_gap_per_byte_ : kInnerGapPerByte;
  const float occupied =
      static_cast<float>(start_offset(end)) + static_cast<float>(jobs_[job].bytes - 1) * per_byte;
  partner.previous = partner.state;
  partner.state = State::receiving;
  partner.sent_in_a_row = 0;
  partner.receives.push_back(job);
  events_.schedule(
      static_cast<TimeNs>(occupied + static_cast<float>(latency_) + static_cast<float>(overhead_)),
      {RankEventKind::bus_received, partner_of(index)});
  end.state = State::sending;
  events_.schedule(static_cast<TimeNs>(occupied), {RankEventKind::bus_sent, index});
}

TimeNs SharedBus::start_offset(const End& end) const {
  const TimeNs since = events_.now() - end.last_change;
  if (end.previous != State::sending || overhead_ + since > gap_) return overhead_;
  return gap_ - since;
}

void SharedBus::sent(std::size_t index) {
  End& end = ends_[index];
  end.last_change = events_.now();
  end.previous = end.state;
  end.state = State::free;
  ++end.sent_in_a_row;
  try_send(index);
}

void SharedBus::received(std::size_t index) {
  End& end = ends_[index];
  end.last_change = events_.now();
  end.previous = end.state;
  if (end.receives.size() < 2) end.state = State::free;
  const std::uint32_t job = end.receives.front();
  end.receives.pop_front();
  advance(job);
  try_send(index);
}

void SharedBus::start_reduction() {
  const std::uint64_t bytes = jobs_[reductions_.front()].bytes;
  events_.schedule(bytes / 100 * reduction_ns_per_100_bytes_ + kReductionStartNs,
                   {RankEventKind::bus_reduced});
}

}  // namespace hpcmoe
