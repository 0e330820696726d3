// Engine: the clock, flows and monitors.
#pragma once

#include <string>

#include "backends/native/engine_host.hh"
#include "backends/native/engine_setup.hh"

namespace hpcmoe {

constexpr std::uint16_t kFirstSourcePort = 10000;
constexpr std::uint16_t kDestinationPort = 100;
constexpr std::uint32_t kStandaloneHeaderBytes = 48;  // per packet in the ideal time
constexpr TimeNs kMonitorPeriodNs = 100;
constexpr std::uint32_t kMonitorSmallestBytes = 1000;

template <class Control>
void Engine<Control>::schedule_timer(std::uint32_t rank, TimeNs delay_ns) {
  ++pending_rank_timers_;
  wheel_.schedule({.port = rank, .kind = EventKind::rank_timer}, now() + delay_ns);
}

template <class Control>
RunStatus Engine<Control>::run(std::uint64_t max_events, TimeNs until_ns) {
  std::uint64_t done = 0;
  while (done < max_events) {
    if (stopped_) return RunStatus::stopped;
    if (stalled_) return RunStatus::stalled;
    const TimeNs time = wheel_.next_time();
    if (time == kNever) return RunStatus::drained;
    if (time > until_ns) return RunStatus::reached;
    if (time >= next_sample_) sample_queues(time);
    wheel_.advance(time);
    const std::uint64_t handled =
        wheel_.run_instant([this](const Event& event) { dispatch(event); }, outgrows_cache(),
                           [this](const Event& event) { prepare(event); });
    done += handled;
    totals_.events += handled;
    if (monitor_parked_) [[unlikely]]
      resume_monitor();
    if (live_flows_ == 0 && packets_ == 0 && !stopped_ && client_->wants_quiet_stop()) {
      return RunStatus::quiet;
    }
  }
  return stopped_ ? RunStatus::stopped : RunStatus::running;
}

template <class Control>
inline void Engine<Control>::dispatch(const Event& event) {
  switch (event.kind) {
    case EventKind::data:
    case EventKind::ack:
    case EventKind::nack:
    case EventKind::pfc:
      arrive(event);
      break;
    case EventKind::tx_done:
      on_tx_done(event.port);
      break;
    case EventKind::flow_initialise:
      wheel_.schedule({.flow = event.flow, .kind = EventKind::flow_begin}, now());
      break;
    case EventKind::flow_begin:
      begin_flow(event.flow);
      break;
    case EventKind::wake_up:
      on_wake_up(event);
      break;
    case EventKind::rank_timer:
      --pending_rank_timers_;
      last_progress_ = now();
      client_->on_timer(event.port);
      break;
    case EventKind::control_alpha:
    case EventKind::control_decrease:
    case EventKind::control_increase:
      stalled_ = pending_rank_timers_ == 0 && now() - last_progress_ > params_.watchdog_ns;
      if (!control_.on_timer(*this, event)) --totals_.events;  // it stands for nothing that happens
      break;
    case EventKind::nic_resume:
      wheel_.schedule({.port = event.port, .kind = EventKind::nic_rearm}, now() + kNicRearmNs);
      send_host_pfc(event.port, false);
      break;
    case EventKind::nic_rearm:
      host_pauses_[ports_[event.port].node].armed = true;
      break;
    case EventKind::queue_monitor:
      stalled_ = pending_rank_timers_ == 0 && now() - last_progress_ > params_.watchdog_ns;
      if (live_flows_ == 0 && packets_ == 0) {
        monitor_parked_ = true;  // there is nothing to see until something else happens
        parked_at_ = now();
        break;
      }
      wheel_.schedule(event, now() + kMonitorPeriodNs);
      monitor_queues();
      break;
  }
}

// What is under way does not fit a second-level cache. Fetching ahead pays from there on; before, it costs
// about a tenth.
template <class Control>
inline bool Engine<Control>::outgrows_cache() const {
  constexpr std::size_t kCacheBytes = std::size_t{2} << 20;
  return wheel_.chunks().most_taken() * kChunkBytes + flows_.size() * sizeof(QueuePair) > kCacheBytes;
}

// Fetches what the event will touch.
template <class Control>
HPCMOE_INLINE void Engine<Control>::prepare(const Event& event) const {
  const bool is_packet = event.kind <= EventKind::nack;
  if (!is_packet && event.kind != EventKind::tx_done) return;
  const Port& port = ports_[event.port];
  if (is_packet && port.is_host) {
    __builtin_prefetch(&flows_[event.flow]);
  } else if (is_packet) {
    paths_.prefetch(event.flow, event.kind != EventKind::data, event.hop + 1u);
  } else if (port.is_host) {
    nics_[port.owner].prefetch_next(flows_.data());
  } else {
    port.queue.prefetch_front();
  }
}

template <class Control>
std::uint32_t Engine<Control>::new_flow() {
  if (!free_flows_.empty()) {
    const std::uint32_t flow = free_flows_.back();
    free_flows_.pop_back();
    flows_[flow] = QueuePair{};
    return flow;
  }
  flows_.emplace_back();
  paths_.resize(flows_.size());
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

template <class Control>
std::size_t Engine<Control>::pair_index(std::uint32_t src, std::uint32_t dst) const {
  return std::size_t{topology_.host_index(src)} * topology_.hosts().size() + topology_.host_index(dst);
}

template <class Control>
std::uint16_t Engine<Control>::next_source_port(std::uint32_t src, std::uint32_t dst) {
  PortCounter& counter = source_ports_[pair_index(src, dst)];
  if (counter.epoch != epoch_) counter = {kFirstSourcePort, epoch_};
  return counter.next++;
}

// What makes equal work behave differently later: clocks, counters and streams that run on.
template <class Control>
bool Engine<Control>::depends_on_absolute_state() const {
  const bool streams = params_.ecn_enabled && params_.ecn_random == kStreams;
  const bool absolute_rtt = params_.cc_mode == kTimely && params_.timely_stamp == kStampZero;
  return !params_.restart_counters_when_idle || streams || absolute_rtt || has_errors_ ||
         params_.nic_total_pause_count != 0 || params_.qlen_monitor_start_ns != kNever;
}

// With no packet and no live queue pair nothing is left that the next flow would not start anew.
template <class Control>
bool Engine<Control>::is_at_rest() const {
  if (depends_on_absolute_state() || live_flows_ != 0 || packets_ != 0) return false;
  for (const Port& port : ports_) {
    if (port.busy || port.paused || port.paused_by_us) return false;
  }
  return true;
}

// An empty network: absolute counters and the NICs' round robins start anew, so that equal work behaves
// equally.
template <class Control>
void Engine<Control>::restart_counters() {
  ++epoch_;
  epoch_start_ = now();
  for (Port& port : ports_) {
    port.int_base_bytes = port.tx_bytes;
    port.ecn_packets = 0;
  }
  for (Nic& nic : nics_) forget_queue_pairs(nic);
  if (params_.queue_sample_ns != 0) next_sample_ = epoch_start_ + params_.queue_sample_ns;
}

template <class Control>
void Engine<Control>::start_flow(const FlowRequest& request) {
  const bool is_pair = is_host(request.src) && is_host(request.dst) && request.src != request.dst;
  if (!is_pair || !routing_.reachable(request.src, request.dst)) {
    throw InputError("no path from host " + std::to_string(request.src) + " to host " +
                     std::to_string(request.dst) + " in the topology (hosts never forward)");
  }
  if (request.bytes == 0 || request.bytes > 0x7FFFFFFF) {
    throw InputError("message of " + std::to_string(request.bytes) + " bytes from host " +
                     std::to_string(request.src) + " to host " + std::to_string(request.dst) +
                     ": allowed are 1 to 2147483647");
  }
  if (params_.restart_counters_when_idle && live_flows_ == 0 && packets_ == 0) restart_counters();
  const std::uint32_t flow = new_flow();
  QueuePair& qp = flows_[flow];
  qp.size = static_cast<std::uint32_t>(request.bytes);
  qp.token = request.token;
  qp.label = request.label;
  qp.sport = next_source_port(request.src, request.dst);
  qp.local = !params_.local_pairs.empty() && params_.local_pairs[pair_index(request.src, request.dst)] != 0;
  qp.carries_int = Control::int_bytes(params_) != 0 && (!qp.local || params_.local_int);
  const std::uint32_t int_bytes = qp.carries_int ? Control::int_bytes(params_) : 0;
  qp.header_bytes = static_cast<std::uint16_t>(kBaseHeaderBytes + int_bytes);
  qp.ack_bytes = static_cast<std::uint16_t>(ack_wire_bytes(int_bytes));
  if (params_.has_window || (qp.local && params_.local_window)) {
    qp.window = static_cast<std::uint32_t>(params_.global_t ? routing_.max_bdp_bytes()
                                                            : routing_.bdp_bytes(request.src, request.dst));
  }
  qp.base_rtt_ns = params_.global_t ? routing_.max_rtt_ns() : routing_.rtt_ns(request.src, request.dst);
  set_path(flow, request.src, request.dst);
  ++live_flows_;
  ++totals_.flows_started;
  wheel_.schedule({.flow = flow, .kind = EventKind::flow_initialise}, now());
}

template <class Control>
void Engine<Control>::set_path(std::uint32_t flow, std::uint32_t src, std::uint32_t dst) {
  QueuePair& qp = flows_[flow];
  walked_.clear();
  routing_.walk({src, dst, qp.sport, kDestinationPort}, walked_);
  paths_.set(flow, false, walked_);
  qp.nic_port = walked_.front();
  if (Control::kReadsInt && !qp.local && walked_.size() - 1 > params_.int_max_hops) {
    ++totals_.ignored_int_flows;
  }
  walked_.clear();
  routing_.walk({dst, src, kDestinationPort, qp.sport}, walked_);
  paths_.set(flow, true, walked_);
  qp.ack_port = walked_.front();
}

template <class Control>
void Engine<Control>::record_flow(const QueuePair& qp) {
  const std::uint64_t packets = (qp.size - 1) / params_.payload_bytes + 1;
  const auto total = static_cast<std::uint32_t>(qp.size + packets * kStandaloneHeaderBytes);
  const std::uint32_t src = source_of(qp), dst = destination_of(qp);
  const TimeNs standalone =
      routing_.rtt_ns(src, dst) + std::uint64_t{total} * 8'000'000'000ULL / routing_.pair(src, dst).bw_bps;
  records_.flows.push_back({src, dst, qp.sport, qp.label.layer, qp.size, qp.start_ns + record_offset_,
                            now() - qp.start_ns, standalone, qp.label.node_id, qp.label.chunk,
                            qp.label.step});
}

// The monitor's next tick is the first one that does not come before the next event.
template <class Control>
void Engine<Control>::resume_monitor() {
  const TimeNs next = wheel_.next_time();
  if (next == kNever) return;
  const TimeNs ticks = std::max<TimeNs>((next - parked_at_ + kMonitorPeriodNs - 1) / kMonitorPeriodNs, 1);
  wheel_.schedule({.kind = EventKind::queue_monitor}, parked_at_ + ticks * kMonitorPeriodNs);
  monitor_parked_ = false;
}

// Queues as they stand between events, at every multiple of the sampling period up to `until`,
// counted from the last restart of the counters. In an empty network there is nothing to see.
template <class Control>
void Engine<Control>::sample_queues(TimeNs until) {
  if (records_.keep_queues && packets_ != 0) {
    for (; next_sample_ <= until; next_sample_ += params_.queue_sample_ns) {
      for (const Port& port : ports_) {
        if (port.queued_bytes == 0) continue;
        records_.queues.push_back(
            {next_sample_ + record_offset_, port.node, port.peer_node(), port.queued_bytes});
      }
    }
    return;
  }
  next_sample_ += ((until - next_sample_) / params_.queue_sample_ns + 1) * params_.queue_sample_ns;
}

// The line format of the ns-3 program's queue monitor: switches in id order, ports with at least
// one kilobyte queued; the line ends in a space unless the switch's last port is on it.
template <class Control>
void Engine<Control>::monitor_queues() {
  for (const SharedBuffer& buffer : buffers_) {
    std::string line;
    bool last = false;
    for (std::uint32_t i : topology_.ports_of(buffer.node)) {
      last = ports_[i].egress_bytes >= kMonitorSmallestBytes;
      if (!last) continue;
      line += "j " + std::to_string(topology_.device_index(i)) + " " +
              std::to_string(ports_[i].egress_bytes) + " ";
    }
    if (line.empty()) continue;
    if (last) line.pop_back();
    records_.qlen_lines.push_back("time " + std::to_string(now()) + " " + std::to_string(buffer.node) + " " +
                                  line);
  }
}

}  // namespace hpcmoe
