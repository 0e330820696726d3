// A device port: the sending side of one link direction and the receiving side of the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/event_chunks.hh"
#include "core/types.hh"

namespace hpcmoe {

struct alignas(64) Port {
  // First cache line: what forwarding a packet touches.
  EventQueue queue;                      // switch: class 3
  const std::uint32_t* tx_ns = nullptr;  // serialization time by bytes on the wire
  std::uint64_t tx_bytes = 0;            // all that was ever sent
  std::uint32_t delay_ns = 0;
  std::uint32_t queued_bytes = 0;  // on this port, all classes
  std::uint32_t peak_queue_bytes = 0;
  std::uint32_t egress_bytes = 0;   // class 3, as the switch's buffer accounts it
  std::uint32_t ingress_bytes = 0;  // as the switch's buffer accounts what came in by this port
  std::uint32_t headroom_used = 0;
  std::uint32_t owner = 0;  // switch: index of its shared buffer; host: index of its NIC
  std::uint8_t alpha_shift = 0;
  bool busy = false;
  bool is_host : 1 = false;
  bool paused : 1 = false;        // class 3, by the neighbour
  bool paused_by_us : 1 = false;  // we paused the neighbour's class 3

  // Second line: what every transmission counts; a host's ACKs.
  EventQueue priority;            // switch: class 0 (PFC frames); host: ACKs and PFC frames
  std::uint64_t packets[4] = {};  // by EventKind: data, ACK, NACK, PFC
  TimeNs busy_ns = 0;
  std::uint64_t ecn_packets = 0;  // packets sent since the network was last empty

  // Third line: the rest.
  std::uint32_t kmin_bytes = 0;
  std::uint32_t kmax_bytes = 0;
  double pmax = 0;
  std::uint64_t identity = 0;        // node and peer node: keys this port's random numbers
  std::uint64_t int_base_bytes = 0;  // tx_bytes when the counters were last restarted
  std::uint64_t ecn_marks = 0;
  TimeNs pause_ns = 0, paused_since = 0;
  std::uint32_t headroom = 0;
  std::uint32_t node = 0;

  std::uint32_t peer_node() const { return static_cast<std::uint32_t>(identity); }
};
static_assert(sizeof(Port) == 192 && offsetof(Port, priority) == 64 && offsetof(Port, kmin_bytes) == 128);

}  // namespace hpcmoe
