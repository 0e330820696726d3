// Engine: links and switches.
#pragma once

#include "backends/native/engine.hh"
#include "backends/native/engine_setup.hh"
#include "core/hash.hh"

namespace hpcmoe {

// Occupies the link with the packet, which arrives as `amend` leaves it. The port's own event is
// scheduled before the arrival.
template <class Control>
template <class Amend>
HPCMOE_INLINE void Engine<Control>::transmit(std::uint32_t port_index, EventKind kind, std::uint32_t wire,
                                             const Event& packet, Amend amend) {
  static constexpr Event kTxDone{.kind = EventKind::tx_done};
  Port& port = ports_[port_index];
  const std::uint32_t duration = port.tx_ns[wire];
  port.busy = true;
  port.tx_bytes += wire;
  port.busy_ns += duration;
  ++port.packets[static_cast<std::size_t>(kind)];
  const TimeNs end = now() + duration;
  wheel_.schedule(kTxDone, end, [port_index](Event& done) { done.port = port_index; });
  wheel_.schedule(packet, end + port.delay_ns, [&](Event& sent) {
    sent.port = Topology::peer_of(port_index);
    amend(sent);
  });
}

// The first packet of one of the port's queues, as it is.
template <class Control>
inline void Engine<Control>::transmit_first(std::uint32_t port_index, EventQueue& queue) {
  const Event& packet = queue.front();
  ports_[port_index].queued_bytes -= packet.wire;
  transmit(port_index, packet.kind, packet.wire, packet, [](Event&) {});
  queue.pop(wheel_.chunks());
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
inline void Engine<Control>::arrive(const Event& packet) {
  if (has_errors_ && lost_on_link(packet.port)) {
    drop_packet(packet);
  } else if (packet.kind == EventKind::pfc) {
    receive_pfc(packet);
  } else if (!ports_[packet.port].is_host) {
    switch_receive(packet);
  } else if (packet.kind == EventKind::data) {
    receive_data(packet);
  } else {
    receive_ack(packet);
  }
}

template <class Control>
bool Engine<Control>::lost_on_link(std::uint32_t port_index) {
  auto& own = link_errors_[port_index / 2];
  if (own) return own->next() < topology_.link_of(port_index).error_rate;
  return common_errors_ && common_errors_->next() < params_.error_rate_per_link;
}

template <class Control>
void Engine<Control>::drop_packet(const Event& packet) {
  ++totals_.drops;
  lossy_ = true;
  end_packet(packet);
}

// The packet leaves the network.
template <class Control>
inline void Engine<Control>::end_packet(const Event& packet) {
  --packets_;
  if constexpr (Control::kReadsInt) {
    if ((packet.flags & kCarriesInt) != 0) int_records_.give(packet.extra);
  }
}

template <class Control>
void Engine<Control>::receive_pfc(const Event& packet) {
  const std::uint32_t port_index = packet.port;
  const bool pause = (packet.flags & kPfcPause) != 0;
  end_packet(packet);
  Port& port = ports_[port_index];
  if (records_.keep_pauses) {
    records_.pauses.push_back({now() + record_offset_, port.node, port.peer_node(),
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
Event Engine<Control>::make_pfc(bool pause) {
  Event packet{.wire = kPfcBytes, .kind = EventKind::pfc};
  // A pause frame whose time field is zero is a resume.
  if (pause && params_.pause_time_us != 0) packet.flags = kPfcPause;
  if (pause) ++totals_.pfc_pauses;
  ++packets_;
  ecn_streams_.skip();  // the frame's header uses up a random stream
  return packet;
}

template <class Control>
void Engine<Control>::send_pfc(std::uint32_t port_index, bool pause) {
  const Event packet = make_pfc(pause);
  Port& port = ports_[port_index];
  port.priority.push(wheel_.chunks(), packet);
  port.queued_bytes += kPfcBytes;
  switch_try_send(port_index);
}

template <class Control>
inline void Engine<Control>::switch_receive(const Event& packet) {
  const std::uint32_t in_index = packet.port;
  const std::uint32_t size = packet.wire;
  const auto hop = static_cast<std::uint8_t>(packet.hop + 1);
  const std::uint32_t out_index = paths_.port(packet.flow, packet.kind != EventKind::data, hop);

  Port& in = ports_[in_index];
  SharedBuffer& buffer = buffers_[in.owner];
  Port& out = ports_[out_index];
  if (!out.busy && out.queued_bytes == 0 && !out.paused && buffer.passes_untouched(in, size)) {
    if (size > out.peak_queue_bytes) out.peak_queue_bytes = size;
    ++out.ecn_packets;  // the queue behind it is empty, so it is not marked
    const std::uint8_t int_hops = push_int(out, packet);
    transmit(out_index, packet.kind, size, packet, [=](Event& sent) {
      sent.hop = hop;
      if constexpr (Control::kReadsInt) sent.int_hops = int_hops;
    });
    return;
  }
  if (buffer.rejects(in, size)) {
    drop_packet(packet);
    return;
  }
  buffer.admit(in, size);
  out.egress_bytes += size;
  if (!in.paused_by_us && buffer.wants_pause(in)) {
    in.paused_by_us = true;
    send_pfc(in_index, true);
  }
  out.queue.push(wheel_.chunks(), packet).hop = hop;
  out.queued_bytes += size;
  if (out.queued_bytes > out.peak_queue_bytes) out.peak_queue_bytes = out.queued_bytes;
  if (!out.busy) switch_try_send(out_index);
}

template <class Control>
inline void Engine<Control>::switch_try_send(std::uint32_t port_index) {
  Port& port = ports_[port_index];
  if (port.busy || port.queued_bytes == 0) return;
  if (!port.priority.empty()) {
    transmit_first(port_index, port.priority);
  } else if (!port.queue.empty() && !port.paused) {
    const Event& packet = port.queue.front();
    port.queued_bytes -= packet.wire;
    const bool marked = leave_switch(port_index, packet);
    const std::uint8_t int_hops = push_int(port, packet);
    transmit(port_index, packet.kind, packet.wire, packet, [=](Event& sent) {
      if (marked) sent.flags |= kEcnMarked;
      if constexpr (Control::kReadsInt) sent.int_hops = int_hops;
    });
    port.queue.pop(wheel_.chunks());
  }
}

// What happens to the switch's state when a packet starts its transmission; whether it is marked.
template <class Control>
inline bool Engine<Control>::leave_switch(std::uint32_t port_index, const Event& packet) {
  Port& port = ports_[port_index];
  const std::uint32_t size = packet.wire;
  const std::uint32_t in_index = packet.port;
  Port& in = ports_[in_index];
  SharedBuffer& buffer = buffers_[port.owner];
  buffer.release(in, size);
  port.egress_bytes -= size;
  const bool marked = params_.ecn_enabled && draw_mark(port);
  if (in.paused_by_us && buffer.wants_resume(in)) {
    send_pfc(in_index, false);
    in.paused_by_us = false;
  }
  return marked;
}

// Random early marking on what is left in the queue. ACKs are marked too; nobody reads that.
template <class Control>
inline bool Engine<Control>::draw_mark(Port& port) {
  ++port.ecn_packets;
  const std::uint32_t queued = port.egress_bytes;
  if (queued <= port.kmin_bytes) return false;
  if (queued <= port.kmax_bytes) {
    const double u = params_.ecn_random == kStreams
                         ? ecn_streams_.draw()
                         : keyed_uniform(params_.random_seed, port.identity, port.ecn_packets);
    const double probability = port.pmax * static_cast<double>(queued - port.kmin_bytes) /
                               static_cast<double>(port.kmax_bytes - port.kmin_bytes);
    if (!(u < probability)) return false;
  }
  ++port.ecn_marks;
  return true;
}

// Adds the port's record to a data packet that has an INT field; the number of its records.
template <class Control>
inline std::uint8_t Engine<Control>::push_int(const Port& port, const Event& packet) {
  if (!Control::kReadsInt || packet.kind != EventKind::data || (packet.flags & kCarriesInt) == 0) {
    return packet.int_hops;
  }
  const std::uint32_t slot = packet.int_hops % params_.int_max_hops;
  const std::uint64_t sent = port.tx_bytes - port.int_base_bytes;
  int_records_[packet.extra][slot] =
      IntRecord::make(now() - epoch_start_, sent / (std::uint64_t{128} * params_.int_multi),
                      port.queued_bytes / (80 * params_.int_multi));
  return static_cast<std::uint8_t>(packet.int_hops + 1);
}

}  // namespace hpcmoe
