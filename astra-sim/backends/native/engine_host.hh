// Engine: hosts, their NICs and queue pairs.
#pragma once

#include <algorithm>

#include "backends/native/engine.hh"
#include "backends/native/engine_setup.hh"

namespace hpcmoe {

constexpr TimeNs kNackIntervalNs = 500'000;
constexpr TimeNs kNicPauseNs = 10'000;
constexpr TimeNs kNicRearmNs = 1'000'000;

template <class Control>
void Engine<Control>::begin_flow(std::uint32_t flow) {
  QueuePair& qp = flows_[flow];
  const RateBps line_rate = topology_.link_of(qp.nic_port).rate_bps;
  qp.start_ns = now();
  qp.rate = qp.max_rate = line_rate;
  qp.window_now = qp.window;
  if (!qp.local) control_.on_begin(*this, flow);
  Nic& nic = nics_[ports_[qp.nic_port].owner];
  qp.list_position = static_cast<std::uint32_t>(nic.flows.size());
  nic.flows.push_back(flow);
  nic.next_avail.push_back(now());
  nic.sendable.resize(nic.flows.size());
  nic.finished.resize(nic.flows.size());
  refresh(flow);
  last_progress_ = now();
  host_try_send(qp.nic_port);
}

// Keeps the NIC's bits in step with the queue pair's state.
template <class Control>
inline void Engine<Control>::refresh(std::uint32_t flow) {
  const QueuePair& qp = flows_[flow];
  if (qp.list_position == kNil) return;
  Nic& nic = nics_[ports_[qp.nic_port].owner];
  nic.sendable.set(qp.list_position, qp.bytes_left() > 0 && !qp.window_bound());
  nic.finished.set(qp.list_position, qp.finished());
}

template <class Control>
void Engine<Control>::host_try_send(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (port.busy) return;
  const bool acks_paused = port.paused && !params_.ack_high_prio;
  if (!acks_paused && !port.priority.empty()) {
    transmit_first(port_index, port.priority);
    return;
  }
  Nic& nic = nics_[port.owner];
  if (nic.flows.empty()) return;
  if (const auto flow = pick_flow(nic, port.paused)) {
    send_data(port_index, *flow);
  } else {
    plan_wake_up(nic);
  }
}

// Round robin over the list, starting after the last flow served. Finished flows seen on the way
// leave the list, with all finished ones behind the first of them; the round robin's position is
// not corrected for that.
template <class Control>
inline std::optional<std::uint32_t> Engine<Control>::pick_flow(Nic& nic, bool paused) {
  const std::size_t n = nic.flows.size();
  std::size_t start = nic.last_served + std::size_t{1};
  if (start >= n) start %= n;
  std::optional<std::size_t> chosen;
  bool wrapped = false;
  if (!paused) {
    chosen = find_sendable(nic, start, n);
    if (!chosen) {
      chosen = find_sendable(nic, 0, start);
      wrapped = chosen.has_value();
    }
  }
  std::size_t removed_from = n;  // smallest finished position among those looked at
  if (!chosen) {
    removed_from = nic.finished.find(0, n);
  } else if (!wrapped) {
    removed_from = nic.finished.find(start, *chosen);
    if (removed_from == *chosen) removed_from = n;
  } else {
    removed_from = nic.finished.find(0, *chosen);
    if (removed_from == *chosen) removed_from = nic.finished.find(start, n);
  }
  if (removed_from != n) {
    const std::size_t position = remove_finished(nic, removed_from, chosen.value_or(0));
    if (chosen) chosen = position;
  }
  if (!chosen) return std::nullopt;
  nic.last_served = static_cast<std::uint32_t>(*chosen);
  return nic.flows[*chosen];
}

template <class Control>
inline std::optional<std::size_t> Engine<Control>::find_sendable(const Nic& nic, std::size_t from,
                                                                 std::size_t to) const {
  for (std::size_t i = nic.sendable.find(from, to); i < to; i = nic.sendable.find(i + 1, to)) {
    if (nic.next_avail[i] <= now()) return i;
  }
  return std::nullopt;
}

// Removes the finished flows at or above `from`; returns where position `chosen` has moved.
template <class Control>
std::size_t Engine<Control>::remove_finished(Nic& nic, std::size_t from, std::size_t chosen) {
  std::size_t to = from, moved = chosen;
  for (std::size_t i = from; i < nic.flows.size(); ++i) {
    const std::uint32_t flow = nic.flows[i];
    if (flows_[flow].finished()) {
      flows_[flow].list_position = kNil;
      // Without loss the last ACK was the flow's last packet, so nothing refers to it any more.
      if (flow == acked_flow_) {
        acked_next_avail_ = nic.next_avail[i];
      } else if (!lossy_) {
        free_flows_.push_back(flow);
      }
      if (i < chosen) --moved;
      continue;
    }
    nic.flows[to] = flow;
    nic.next_avail[to] = nic.next_avail[i];
    flows_[flow].list_position = static_cast<std::uint32_t>(to++);
  }
  const std::size_t n = nic.flows.size();
  nic.flows.resize(to);
  nic.next_avail.resize(to);
  for (std::size_t i = from; i < to; ++i) refresh(nic.flows[i]);
  for (std::size_t i = to; i < n; ++i) {
    nic.sendable.set(i, false);
    nic.finished.set(i, false);
  }
  return moved;
}

// All have finished; a wake-up that is still planned is void.
template <class Control>
void Engine<Control>::forget_queue_pairs(Nic& nic) {
  remove_finished(nic, 0, 0);
  nic.last_served = 0;
  nic.wake_pending = false;
  ++nic.wake_generation;
}

template <class Control>
inline void Engine<Control>::send_data(std::uint32_t port_index, std::uint32_t flow) {
  QueuePair& qp = flows_[flow];
  const std::uint32_t payload = std::min(params_.payload_bytes, qp.bytes_left());
  const std::uint32_t wire = payload + qp.header_bytes;
  auto extra = static_cast<std::uint32_t>(now());
  if constexpr (Control::kReadsInt) {
    if (qp.carries_int) extra = int_records_.take();
  }
  ++packets_;
  static constexpr Event kData{.kind = EventKind::data};
  transmit(port_index, EventKind::data, wire, kData, [&](Event& packet) {
    packet.flow = flow;
    packet.seq = qp.snd_nxt;
    packet.wire = wire;
    packet.extra = extra;
    packet.flags = qp.carries_int ? kCarriesInt : std::uint8_t{0};
  });
  qp.snd_nxt += payload;
  qp.last_wire = wire;
  const TimeNs line_tx_ns = ports_[port_index].tx_ns[wire];
  qp.last_tx_ns = qp.throttled ? tx_time_ns(wire, qp.rate) : line_tx_ns;
  const TimeNs gap = params_.rate_bound ? qp.last_tx_ns : line_tx_ns;
  Nic& nic = nics_[ports_[port_index].owner];
  nic.next_avail[qp.list_position] = now() + gap;
  refresh(flow);
}

// A wake-up for the earliest flow of the list, whatever holds that flow back. One that is pending
// is not moved, and a flow whose time has passed suppresses it.
template <class Control>
void Engine<Control>::plan_wake_up(Nic& nic) {
  if (nic.wake_pending) return;
  if (nic.flows.empty()) return;
  TimeNs earliest = kNever;
  for (TimeNs time : nic.next_avail) {
    if (time <= now()) return;  // mostly the first one
    earliest = std::min(earliest, time);
  }
  schedule_wake_up(nic, earliest);
}

template <class Control>
void Engine<Control>::schedule_wake_up(Nic& nic, TimeNs time) {
  nic.wake_pending = true;
  nic.wake_time = time;
  wheel_.schedule({.port = nic.port, .seq = ++nic.wake_generation, .kind = EventKind::wake_up}, time);
}

template <class Control>
void Engine<Control>::on_wake_up(const Event& event) {
  Nic& nic = nics_[ports_[event.port].owner];
  if (!nic.wake_pending || event.seq != nic.wake_generation) return;  // cancelled
  nic.wake_pending = false;
  host_try_send(event.port);
}

// Time of the flow's last packet at a rate.
template <class Control>
inline TimeNs Engine<Control>::tx_time_at(const QueuePair& qp, RateBps rate) const {
  return rate == qp.max_rate ? ports_[qp.nic_port].tx_ns[qp.last_wire] : tx_time_ns(qp.last_wire, rate);
}

template <class Control>
void Engine<Control>::set_rate(std::uint32_t flow, RateBps rate) {
  QueuePair& qp = flows_[flow];
  qp.rate = rate;
  qp.throttled = rate != qp.max_rate;
  if (params_.var_window && qp.window != 0) {
    // The least rate may exceed the link's; a message has at most 2 GiB in flight anyway.
    constexpr std::uint64_t kUnbounded = ~std::uint32_t{0};
    qp.window_now =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(qp.window * rate / qp.max_rate, 1, kUnbounded));
  }
  refresh(flow);
}

template <class Control>
void Engine<Control>::change_rate(std::uint32_t flow, RateBps rate) {
  QueuePair& qp = flows_[flow];
  Nic& nic = nics_[ports_[qp.nic_port].owner];
  // A flow may have left the list while its own last ACK is processed.
  TimeNs& next_avail = qp.list_position == kNil ? acked_next_avail_ : nic.next_avail[qp.list_position];
  if (rate != qp.rate) {
    const TimeNs tx_ns = tx_time_at(qp, rate);
    next_avail += tx_ns - qp.last_tx_ns;
    qp.last_tx_ns = tx_ns;
  }
  if (nic.wake_pending && nic.wake_time > next_avail) {
    schedule_wake_up(nic, std::max(now(), next_avail));  // the old one's generation is void
  }
  set_rate(flow, rate);
}

template <class Control>
RateBps Engine<Control>::int_rate(std::uint32_t flow, std::uint32_t hop) const {
  return int_rates_[paths_.port(flow, false, hop + 1)];
}

template <class Control>
void Engine<Control>::schedule_control(EventKind kind, std::uint32_t flow, std::uint32_t generation,
                                       TimeNs delay) {
  wheel_.schedule({.flow = flow, .seq = generation, .kind = kind}, now() + delay);
}

// In-order data is acknowledged once the flow has passed the ACK interval, before that at multiples
// of the chunk size; a gap asks for the missing byte; a duplicate is ignored.
template <class Control>
inline void Engine<Control>::receive_data(const Event& packet) {
  last_progress_ = now();
  if (params_.nic_total_pause_count != 0) maybe_pause_nic(packet.flow);
  QueuePair& qp = flows_[packet.flow];
  if (packet.seq == qp.expected) {
    const std::uint32_t payload = packet.wire - qp.header_bytes;
    qp.expected += payload;
    totals_.bytes_received += payload;
    if (qp.expected >= params_.l2_ack_interval_bytes || qp.expected % params_.l2_chunk_bytes == 0) {
      reply(packet, EventKind::ack, qp.expected);
      return;
    }
  } else if (packet.seq > qp.expected && (now() >= qp.nack_until || qp.last_nack != qp.expected)) {
    qp.nack_until = now() + kNackIntervalNs;
    qp.last_nack = qp.expected;
    if (params_.l2_back_to_zero) {
      const std::uint32_t kept = qp.expected / params_.l2_chunk_bytes * params_.l2_chunk_bytes;
      totals_.bytes_received -= qp.expected - kept;
      qp.expected = kept;
    }
    lossy_ = true;
    reply(packet, EventKind::nack, qp.expected);
    return;
  }
  end_packet(packet);
}

// The data packet becomes its ACK: INT stays, the mark is echoed.
template <class Control>
inline void Engine<Control>::reply(const Event& packet, EventKind kind, std::uint32_t seq) {
  const QueuePair& qp = flows_[packet.flow];
  const bool echo = (packet.flags & kEcnMarked) != 0 && !qp.local;
  const auto flags = static_cast<std::uint8_t>((packet.flags & kCarriesInt) | (echo ? kEcnEcho : 0));
  const std::uint32_t wire = qp.ack_bytes;
  const auto turn_around = [=](Event& ack) {
    ack.kind = kind;
    ack.seq = seq;
    ack.hop = 0;
    ack.wire = wire;
    ack.flags = flags;
  };
  Port& port = ports_[qp.ack_port];
  const std::uint32_t queued = port.queued_bytes + wire;
  if (queued > port.peak_queue_bytes) port.peak_queue_bytes = queued;
  if (!port.busy && port.priority.empty() && (!port.paused || params_.ack_high_prio)) {
    transmit(qp.ack_port, kind, wire, packet, turn_around);  // without the way through the queue
    return;
  }
  turn_around(port.priority.push(wheel_.chunks(), packet));
  port.queued_bytes = queued;
  host_try_send(qp.ack_port);
}

template <class Control>
inline void Engine<Control>::receive_ack(const Event& packet) {
  last_progress_ = now();
  IntRecords records;
  if constexpr (Control::kReadsInt) {
    if ((packet.flags & kCarriesInt) != 0) records = int_records_[packet.extra];
  }
  end_packet(packet);
  if (flows_[packet.flow].done) return;

  std::uint32_t seq = packet.seq;
  if (params_.l2_back_to_zero) seq = seq / params_.l2_chunk_bytes * params_.l2_chunk_bytes;
  flows_[packet.flow].snd_una = std::max(flows_[packet.flow].snd_una, seq);
  // The client may begin flows at once. The round robin then drops finished ones, and the record of
  // this one must not go to a new flow before the controller has seen its last ACK.
  acked_flow_ = packet.flow;
  if (flows_[packet.flow].finished()) complete(packet.flow);
  QueuePair& qp = flows_[packet.flow];
  if (packet.kind == EventKind::nack) qp.snd_nxt = qp.snd_una;
  if (!qp.local) {
    const bool marked = (packet.flags & kEcnEcho) != 0;
    if (marked) control_.on_mark(*this, packet.flow);
    const TimeNs stamp =
        params_.timely_stamp == kStampZero ? 0 : now() - (static_cast<std::uint32_t>(now()) - packet.extra);
    control_.on_ack(*this, packet.flow, AckInfo{packet.seq, marked, packet.int_hops, stamp, &records});
  }
  acked_flow_ = kNil;
  const std::uint32_t port = qp.nic_port;
  if (qp.list_position == kNil && !lossy_) free_flows_.push_back(packet.flow);
  refresh(packet.flow);
  host_try_send(port);
}

template <class Control>
void Engine<Control>::complete(std::uint32_t flow) {
  QueuePair& qp = flows_[flow];
  qp.done = true;
  qp.expected = qp.last_nack = 0;  // the receiver forgets the flow
  qp.nack_until = 0;
  --live_flows_;
  ++totals_.flows_finished;
  totals_.bytes_sent += qp.size;
  if (!qp.local) control_.on_finish(flow);
  if (records_.keep_flows) record_flow(qp);
  client_->on_flow_finished(qp.token);
}

// A host may pause its switch for a while, as a PCIe bottleneck would make it do.
template <class Control>
void Engine<Control>::maybe_pause_nic(std::uint32_t flow) {
  HostPause& host = host_pauses_[destination_of(flows_[flow])];
  if (!host.armed) return;
  host.armed = false;
  if (host.made >= params_.nic_total_pause_count) return;
  ++host.made;
  const std::uint32_t port = flows_[flow].ack_port;
  send_host_pfc(port, true);
  wheel_.schedule({.port = port, .kind = EventKind::nic_resume}, now() + kNicPauseNs);
}

template <class Control>
void Engine<Control>::send_host_pfc(std::uint32_t port_index, bool pause) {
  const Event packet = make_pfc(pause);
  ports_[port_index].priority.push(wheel_.chunks(), packet);
  ports_[port_index].queued_bytes += kPfcBytes;
  host_try_send(port_index);
}

}  // namespace hpcmoe
