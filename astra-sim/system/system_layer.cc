#include "system/system_layer.hh"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "system/input_check.hh"
#include "system/rank.hh"
#include "system/stall_report.hh"
#include "workload/chain.hh"
#include "workload/statistics.hh"

namespace hpcmoe {

class SystemLayer::Impl final : private NodeSink, private RankObserver {
 public:
  Impl(const SystemParams& params, std::vector<RankTrace> traces, NetworkBackend& network)
      : params_(checked(params, traces.size())),
        network_(network),
        layouts_(params_, static_cast<std::uint32_t>(traces.size())),
        timers_(network),
        clock_(timers_, layouts_.ranks()),
        barrier_(timers_, params_.logical_dims, layouts_.ranks()),
        messenger_(network, *this, layouts_.ranks(), params_.rendezvous_protocol),
        memory_(params_, layouts_.ranks()) {
    check_traces(params_, layouts_, traces);
    const RankEnvironment environment{params_, layouts_, timers_, clock_, barrier_, messenger_, memory_};
    RankObserver& observer = *this;
    for (std::uint32_t rank = 0; rank < traces.size(); ++rank) {
      ranks_.emplace_back(rank, std::move(traces[rank]), environment, observer);
    }
  }

  void start() {
    for (Rank& rank : ranks_) rank.start();
  }
  void on_timer(std::uint32_t rank) {
    timers_.called_back();
    last_activity_ = network_.now();
    const auto complete = [this](std::uint32_t done, std::uint32_t node) { ranks_[done].complete(node); };
    if (rank == clock_.id()) {
      clock_.drain(complete);
    } else if (rank == barrier_.id()) {
      barrier_.drain(complete);
    } else {
      ranks_[rank].on_timer();
    }
  }
  void on_flow_finished(std::uint64_t token) {
    last_activity_ = network_.now();
    messenger_.on_flow_finished(token);
  }

  bool watch_quiet_moments();
  bool wants_quiet_stop();
  QuietState quiet_state();
  std::uint64_t repeats_after(const QuietState& first, const QuietState& second) const;
  bool ends_as_repeat(const QuietState& first, const QuietState& second) const;
  LabelStep label_step(const QuietState& first, const QuietState& second) const;
  void skip(const QuietState& first, const QuietState& second, const Jump& jump);
  void skip_to_end(const QuietState& first, const QuietState& second, const Jump& repeats);

  std::uint32_t ranks() const { return layouts_.ranks(); }
  std::uint32_t finished() const { return finished_; }
  std::uint64_t pending_timers() const { return timers_.pending(); }
  TimeNs last_activity_ns() const { return last_activity_; }
  std::vector<StuckNode> stuck() const { return stuck_nodes(ranks_, params_, messenger_.matcher()); }
  RankReport report(std::uint32_t rank) const;

 private:
  static const SystemParams& checked(const SystemParams& params, std::size_t ranks) {
    check_parameters(params, ranks);
    return params;
  }

  void node_completed(std::uint32_t rank, std::uint32_t node) override { ranks_[rank].complete(node); }
  void rank_finished() override {
    if (++finished_ == ranks_.size()) network_.stop();
  }

  SystemParams params_;
  NetworkBackend& network_;
  CollectiveLayouts layouts_;
  Timers timers_;
  ComputeClock clock_;
  Barrier barrier_;
  Messenger messenger_;
  RemoteMemory memory_;
  std::deque<Rank> ranks_;  // a deque: ranks refer to their own parts and must not move
  std::uint32_t finished_ = 0;
  TimeNs last_activity_ = 0;
  bool watching_ = false;
  std::uint32_t last_position_ = ~std::uint32_t{0};  // of rank 0 at the last quiet stop
};

bool SystemLayer::Impl::watch_quiet_moments() {
  watching_ = params_.compute_ties == kByRank && !params_.model_shared_bus && !params_.rendezvous_protocol &&
              !params_.replay_only && params_.groups.empty() &&
              std::all_of(ranks_.begin(), ranks_.end(),
                          [](const Rank& rank) { return is_chain(rank.workload().trace()); });
  return watching_;
}

// With the network empty and no timer but those of computations, every rank computes or waits for a
// message that is yet to be sent.
bool SystemLayer::Impl::wants_quiet_stop() {
  if (!watching_ || finished_ != 0 || clock_.computing() == 0) return false;
  if (timers_.pending() != clock_.pending_timers()) return false;
  const std::uint32_t position = ranks_.front().position();
  if (position == last_position_) return false;
  last_position_ = position;
  return true;
}

QuietState SystemLayer::Impl::quiet_state() {
  QuietState state;
  const std::vector<TimeNs> remaining = clock_.remaining_ns();
  const std::uint64_t base = ranks_.front().engine().world_streams();
  for (const Rank& rank : ranks_) {
    state.positions.push_back(rank.position());
    state.signature.push_back(rank.position() - state.positions.front());
    state.signature.push_back(remaining[rank.rank()]);
    rank.engine().append_signature(state.signature, base);
    state.bytes_sent.push_back(messenger_.bytes_sent(rank.rank()));
    state.bytes_received.push_back(messenger_.bytes_received(rank.rank()));
  }
  messenger_.matcher().append_signature(state.signature, static_cast<std::uint32_t>(base));
  return state;
}

std::uint64_t SystemLayer::Impl::repeats_after(const QuietState& first, const QuietState& second) const {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (second.positions[i] <= first.positions[i]) return 0;
    const RankTrace& trace = ranks_[i].workload().trace();
    count = std::min(count, hpcmoe::repeats_after(trace, first.positions[i], second.positions[i]));
  }
  return count;
}

bool SystemLayer::Impl::ends_as_repeat(const QuietState& first, const QuietState& second) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (second.positions[i] <= first.positions[i]) return false;
    const Workload& workload = ranks_[i].workload();
    if (!hpcmoe::ends_as_repeat(workload.trace(), first.positions[i], second.positions[i])) return false;
    const TimeNs barrier_end = workload.times().span(second.positions[i] - 1).second;
    if (barrier_end != timers_.reported_now()) return false;  // something was still under way at its end
  }
  return true;
}

LabelStep SystemLayer::Impl::label_step(const QuietState& first, const QuietState& second) const {
  const auto& nodes = ranks_.front().workload().trace().nodes;
  const TraceNode &early = nodes[first.positions.front()], &late = nodes[second.positions.front()];
  return {late.layer - early.layer, late.id - early.id};
}

void SystemLayer::Impl::skip(const QuietState& first, const QuietState& second, const Jump& jump) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].skip(first.positions[i], second.positions[i], jump);
    messenger_.add_traffic(i, jump.count * (second.bytes_sent[i] - first.bytes_sent[i]),
                           jump.count * (second.bytes_received[i] - first.bytes_received[i]));
  }
  timers_.add(jump.total_ns());
}

void SystemLayer::Impl::skip_to_end(const QuietState& first, const QuietState& second, const Jump& repeats) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    const std::uint32_t period = second.positions[i] - first.positions[i];
    if (repeats.count > 0) ranks_[i].skip(first.positions[i], second.positions[i], repeats);
    messenger_.add_traffic(i, (repeats.count + 1) * (second.bytes_sent[i] - first.bytes_sent[i]),
                           (repeats.count + 1) * (second.bytes_received[i] - first.bytes_received[i]));
    ranks_[i].skip_rest(period, repeats.period_ns);
  }
}

RankReport SystemLayer::Impl::report(std::uint32_t rank) const {
  const Workload& workload = ranks_[rank].workload();
  const WorkloadTotals totals = summarize(workload.trace(), workload.times(), params_);
  RankReport report;
  report.finished = workload.finished();
  report.finish_ns = workload.finish_ns();
  report.wall_ns = totals.wall_ns;
  report.cpu_ns = totals.cpu_ns;
  report.gpu_ns = totals.gpu_ns;
  report.comm_ns = totals.comm_ns;
  report.remote_mem_ns = totals.remote_mem_ns;
  report.modelled_compute_ns = workload.times().modelled_ns();
  report.bytes_sent = messenger_.bytes_sent(rank);
  report.bytes_received = messenger_.bytes_received(rank);
  report.compute_bound_percent = totals.compute_bound_percent;
  report.compute_utilization_percent = totals.compute_utilization_percent;
  report.memory_utilization_percent = totals.memory_utilization_percent;
  report.operation_intensity = totals.operation_intensity;
  return report;
}

SystemLayer::SystemLayer(const SystemParams& params, std::vector<RankTrace> traces, NetworkBackend& network)
    : impl_(std::make_unique<Impl>(params, std::move(traces), network)) {}
SystemLayer::~SystemLayer() = default;

void SystemLayer::start() { impl_->start(); }
void SystemLayer::on_timer(std::uint32_t rank) { impl_->on_timer(rank); }
void SystemLayer::on_flow_finished(std::uint64_t token) { impl_->on_flow_finished(token); }
bool SystemLayer::watch_quiet_moments() { return impl_->watch_quiet_moments(); }
bool SystemLayer::wants_quiet_stop() { return impl_->wants_quiet_stop(); }
QuietState SystemLayer::quiet_state() { return impl_->quiet_state(); }
std::uint64_t SystemLayer::repeats_after(const QuietState& first, const QuietState& second) const {
  return impl_->repeats_after(first, second);
}
LabelStep SystemLayer::label_step(const QuietState& first, const QuietState& second) const {
  return impl_->label_step(first, second);
}
bool SystemLayer::ends_as_repeat(const QuietState& first, const QuietState& second) const {
  return impl_->ends_as_repeat(first, second);
}
void SystemLayer::skip(const QuietState& first, const QuietState& second, const Jump& jump) {
  impl_->skip(first, second, jump);
}
void SystemLayer::skip_to_end(const QuietState& first, const QuietState& second, const Jump& repeats) {
  impl_->skip_to_end(first, second, repeats);
}
std::uint32_t SystemLayer::ranks() const { return impl_->ranks(); }
std::uint32_t SystemLayer::finished_ranks() const { return impl_->finished(); }
TimeNs SystemLayer::last_activity_ns() const { return impl_->last_activity_ns(); }
std::uint64_t SystemLayer::pending_timers() const { return impl_->pending_timers(); }
RankReport SystemLayer::report(std::uint32_t rank) const { return impl_->report(rank); }
std::vector<StuckNode> SystemLayer::stuck() const { return impl_->stuck(); }

}  // namespace hpcmoe
