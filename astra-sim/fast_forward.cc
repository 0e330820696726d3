#include "fast_forward.hh"

#include <algorithm>
#include <utility>

namespace hpcmoe {
namespace {

// Counters that grow with the work done; a peak is not one of them.
constexpr std::uint64_t NetworkTotals::* kTotals[] = {
    &NetworkTotals::events,           &NetworkTotals::packet_hops, &NetworkTotals::ecn_marks,
    &NetworkTotals::pfc_pauses,       &NetworkTotals::drops,       &NetworkTotals::flows_started,
    &NetworkTotals::flows_finished,   &NetworkTotals::bytes_sent,  &NetworkTotals::bytes_received,
    &NetworkTotals::ignored_int_flows};
constexpr std::uint64_t LinkCounters::* kLinks[] = {&LinkCounters::bytes,       &LinkCounters::data_packets,
                                                    &LinkCounters::ack_packets, &LinkCounters::pfc_frames,
                                                    &LinkCounters::ecn_marks,   &LinkCounters::pause_ns,
                                                    &LinkCounters::busy_ns};

// sum += count * (late - early), field by field.
template <class T, class Fields>
void add_difference(T& sum, const T& early, const T& late, std::uint64_t count, const Fields& fields) {
  for (const auto field : fields) sum.*field += count * (late.*field - early.*field);
}

}  // namespace

bool FastForward::make_mark(Mark& mark) const {
  if (!network_.is_at_rest()) return false;
  mark.ranks = system_.quiet_state();
  mark.time = network_.now();
  mark.totals = network_.totals();
  mark.links = network_.link_counters();
  mark.flows = network_.records().flows.size();
  mark.pauses = network_.records().pauses.size();
  mark.queues = network_.records().queues.size();
  return true;
}

void FastForward::on_quiet() {
  ++quiet_moments_;
  Mark now;
  if (!make_mark(now)) return;
  const auto seen = std::find_if(marks_.rbegin(), marks_.rend(), [&](const Mark& mark) {
    return mark.ranks.signature == now.ranks.signature && (system_.repeats_after(mark.ranks, now.ranks) > 0 ||
                                                           system_.ends_as_repeat(mark.ranks, now.ranks));
  });
  if (seen == marks_.rend()) {
    marks_.push_back(std::move(now));
    return;
  }
  jump(*seen, now);
  marks_.clear();  // positions have moved on
}

void FastForward::jump(const Mark& first, const Mark& second) {
  const Jump jump{system_.repeats_after(first.ranks, second.ranks), second.time - first.time};
  const bool to_end = system_.ends_as_repeat(first.ranks, second.ranks);
  const std::uint64_t count = jump.count + to_end;
  const LabelStep step = system_.label_step(first.ranks, second.ranks);
  repeats_.push_back({first.flows, second.flows, first.pauses, second.pauses, first.queues, second.queues,
                      count, jump.period_ns, step.layer, step.node_id});
  add_difference(added_totals_, first.totals, second.totals, count, kTotals);
  added_links_.resize(second.links.size());
  for (std::size_t i = 0; i < second.links.size(); ++i) {
    add_difference(added_links_[i], first.links[i], second.links[i], count, kLinks);
  }
  if (to_end) {
    --added_totals_.events;  // the last copy ends before the barrier and has not its event
    system_.skip_to_end(first.ranks, second.ranks, jump);
  } else {
    system_.skip(first.ranks, second.ranks, jump);
  }
  added_ns_ += count * jump.period_ns;
  added_layers_ += count * static_cast<std::uint64_t>(std::max<std::int64_t>(step.layer, 0));
  network_.offset_records(added_ns_);
}

void FastForward::add_to(NetworkTotals& totals) const {
  add_difference(totals, NetworkTotals{}, added_totals_, 1, kTotals);
}

void FastForward::add_to(std::vector<LinkCounters>& links) const {
  for (std::size_t i = 0; i < added_links_.size(); ++i) {
    add_difference(links[i], LinkCounters{}, added_links_[i], 1, kLinks);
  }
}

}  // namespace hpcmoe
