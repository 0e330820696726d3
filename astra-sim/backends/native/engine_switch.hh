// Engine: links and switches.
#pragma once

#include "backends/native/engine.hh"
#include "backends/native/engine_setup.hh"
#include "core/hash.hh"

namespace hpcmoe {

// Occupies the link with the packet. The port's own event is scheduled before the arrival.
template <class Control>
HPCMOE_INLINE void Engine<Control>::transmit(std::uint32_t port_index, std::uint32_t packet_index) {
  Port& port = ports_[port_index];
  Event& packet = wheel_[packet_index];
  const std::uint32_t duration = port.tx_ns[packet.wire];
  port.busy = true;
  port.tx_bytes += packet.wire;
  port.busy_ns += duration;
  ++port.packets[static_cast<std::size_t>(packet.kind)];
  packet.target = port.peer;
  const TimeNs end = now() + duration;
  wheel_.schedule_at(port_index, end);
  wheel_.schedule_at(packet_index, end + port.delay_ns);
}

template <class Control>
inline void Engine<Control>::on_tx_done(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  port.busy = false;
  if (port.is_host) {
    host_try_send(port_index);
  } else {
    switch_try_send(port_index);
  }
}

template <class Control>
inline void Engine<Control>::arrive(std::uint32_t packet_index) {
  const std::uint32_t port_index = wheel_[packet_index].target;
  if (has_errors_ && lost_on_link(port_index)) {
    drop_packet(packet_index);
    return;
  }
  const EventKind kind = wheel_[packet_index].kind;
  if (kind == EventKind::pfc) {
    receive_pfc(packet_index);
  } else if (!ports_[port_index].is_host) {
    switch_receive(packet_index);
  } else if (kind == EventKind::data) {
    receive_data(packet_index);
  } else {
    receive_ack(packet_index);
  }
}

template <class Control>
bool Engine<Control>::lost_on_link(std::uint32_t port_index) {
  auto& own = link_errors_[port_index / 2];
  if (own) return own->next() < topology_.link_of(port_index).error_rate;
  return common_errors_ && common_errors_->next() < params_.error_rate_per_link;
}

template <class Control>
void Engine<Control>::drop_packet(std::uint32_t packet_index) {
  ++totals_.drops;
  lossy_ = true;
  free_packet(packet_index);
}

template <class Control>
inline void Engine<Control>::free_packet(std::uint32_t packet_index) {
  --packets_;
  wheel_.release(packet_index);
}

template <class Control>
inline std::uint32_t Engine<Control>::new_packet(EventKind kind) {
  const std::uint32_t index = wheel_.allocate();
  wheel_[index].kind = kind;
  ++packets_;
  if constexpr (Control::kReadsInt) {
    if (index >= int_records_.size()) int_records_.resize(wheel_.capacity() * 2);
  }
  return index;
}

template <class Control>
void Engine<Control>::receive_pfc(std::uint32_t packet_index) {
  const std::uint32_t port_index = wheel_[packet_index].target;
  const bool pause = (wheel_[packet_index].flags & kPfcPause) != 0;
  free_packet(packet_index);
  Port& port = ports_[port_index];
  if (records_.keep_pauses) {
    records_.pauses.push_back({now() + record_offset_, port.node, ports_[port.peer].node,
                               topology_.device_index(port_index), !port.is_host, pause});
  }
  if (pause) {
    if (!port.paused) port.paused_since = now();
    port.paused = true;
    return;
  }
  if (port.paused) port.pause_ns += now() - port.paused_since;
  port.paused = false;
  if (port.is_host) {
    host_try_send(port_index);
  } else {
    switch_try_send(port_index);
  }
}

template <class Control>
std::uint32_t Engine<Control>::make_pfc(bool pause) {
  const std::uint32_t packet = new_packet(EventKind::pfc);
  wheel_[packet].wire = kPfcBytes;
  // A pause frame whose time field is zero is a resume.
  if (pause && params_.pause_time_us != 0) wheel_[packet].flags = kPfcPause;
  if (pause) ++totals_.pfc_pauses;
  ecn_streams_.skip();  // the frame's header uses up a random stream
  return packet;
}

template <class Control>
void Engine<Control>::send_pfc(std::uint32_t port_index, bool pause) {
  const std::uint32_t packet = make_pfc(pause);
  Port& port = ports_[port_index];
  port.priority.push(wheel_, packet);
  port.queued_bytes += kPfcBytes;
  switch_try_send(port_index);
}

template <class Control>
inline void Engine<Control>::switch_receive(std::uint32_t packet_index) {
  Event& packet = wheel_[packet_index];
  const std::uint32_t in_index = packet.target;
  const std::uint32_t size = packet.wire;
  const std::size_t direction = packet.kind == EventKind::data ? 0 : 1;
  ++packet.hop;  // the path's first port is the host's
  const std::uint32_t out_index = paths_[(packet.flow * 2 + direction) * path_stride_ + packet.hop];
  packet.in_port = in_index;

  Port& in = ports_[in_index];
  SharedBuffer& buffer = buffers_[in.owner];
  Port& idle = ports_[out_index];
  if (!idle.busy && idle.queued_bytes == 0 && !idle.paused && buffer.passes_untouched(in, size)) {
    if (size > idle.peak_queue_bytes) idle.peak_queue_bytes = size;
    ++idle.ecn_packets;  // the queue behind it is empty, so it is not marked
    if constexpr (Control::kReadsInt) {
      if (direction == 0 && (packet.flags & kCarriesInt) != 0) push_int(idle, packet_index);
    }
    transmit(out_index, packet_index);
    return;
  }
  if (buffer.rejects(in, size)) {
    drop_packet(packet_index);
    return;
  }
  buffer.admit(in, size);
  Port& out = ports_[out_index];
  out.egress_bytes += size;
  if (!in.paused_by_us && buffer.wants_pause(in)) {
    in.paused_by_us = true;
    send_pfc(in_index, true);
  }
  out.queue.push(wheel_, packet_index);
  out.queued_bytes += size;
  if (out.queued_bytes > out.peak_queue_bytes) out.peak_queue_bytes = out.queued_bytes;
  if (!out.busy) switch_try_send(out_index);
}

template <class Control>
inline void Engine<Control>::switch_try_send(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (port.busy || port.queued_bytes == 0) return;
  std::uint32_t packet;
  if (!port.priority.empty()) {
    packet = port.priority.pop(wheel_);
    port.queued_bytes -= wheel_[packet].wire;
  } else if (!port.queue.empty() && !port.paused) {
    packet = port.queue.pop(wheel_);
    port.queued_bytes -= wheel_[packet].wire;
    leave_switch(port_index, packet);
  } else {
    return;
  }
  transmit(port_index, packet);
}

// What happens to the switch's state when a packet starts its transmission.
template <class Control>
inline void Engine<Control>::leave_switch(std::uint32_t port_index, std::uint32_t packet_index) {
  Port& port = ports_[port_index];
  const std::uint32_t size = wheel_[packet_index].wire;
  const std::uint32_t in_index = wheel_[packet_index].in_port;
  Port& in = ports_[in_index];
  SharedBuffer& buffer = buffers_[port.owner];
  buffer.release(in, size);
  port.egress_bytes -= size;
  if (params_.ecn_enabled) mark_ecn(port, wheel_[packet_index]);
  if (in.paused_by_us && buffer.wants_resume(in)) {
    send_pfc(in_index, false);
    in.paused_by_us = false;
  }
  if constexpr (Control::kReadsInt) {
    const Event& packet = wheel_[packet_index];
    if (packet.kind == EventKind::data && (packet.flags & kCarriesInt) != 0) push_int(port, packet_index);
  }
}

// Random early marking on what is left in the queue. ACKs are marked too; nobody reads that.
template <class Control>
inline void Engine<Control>::mark_ecn(Port& port, Event& packet) {
  ++port.ecn_packets;
  const std::uint32_t queued = port.egress_bytes;
  if (queued <= port.kmin_bytes) return;
  if (queued <= port.kmax_bytes) {
    const double u = params_.ecn_random == kStreams
                         ? ecn_streams_.draw()
                         : keyed_uniform(params_.random_seed, port.identity, port.ecn_packets);
    const double probability = port.pmax * static_cast<double>(queued - port.kmin_bytes) /
                               static_cast<double>(port.kmax_bytes - port.kmin_bytes);
    if (!(u < probability)) return;
  }
  packet.flags |= kEcnMarked;
  ++port.ecn_marks;
}

template <class Control>
inline void Engine<Control>::push_int(const Port& port, std::uint32_t packet_index) {
  Event& packet = wheel_[packet_index];
  const std::uint32_t slot = packet.int_hops % params_.int_max_hops;
  const std::uint64_t sent = port.tx_bytes - port.int_base_bytes;
  int_records_[packet_index][slot] =
      IntRecord::make(now() - epoch_start_, sent / (std::uint64_t{128} * params_.int_multi),
                      port.queued_bytes / (80 * params_.int_multi));
  ++packet.int_hops;
}

}  // namespace hpcmoe
