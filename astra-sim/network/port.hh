// A device port: the sending side of one link direction and the receiving side of the other.
#pragma once

#include <cstdint>

#include "core/event_wheel.hh"
#include "core/types.hh"

namespace hpcmoe {

// FIFO of packets linked through Event::next.
struct PacketQueue {
  std::uint32_t head = kNil, tail = kNil;

  bool empty() const { return head == kNil; }
  void push(EventWheel& pool, std::uint32_t packet) {
    pool[packet].next = kNil;
    if (head == kNil) {
      head = packet;
    } else {
      pool[tail].next = packet;
    }
    tail = packet;
  }
  std::uint32_t pop(EventWheel& pool) {
    const std::uint32_t packet = head;
    head = pool[packet].next;
    if (head != kNil) pool.prefetch(head);  // a queue's front has often left the cache by its turn
    return packet;
  }
};

struct alignas(64) Port {
  // First cache line: what forwarding a packet touches.
  const std::uint32_t* tx_ns = nullptr;  // serialization time by bytes on the wire
  std::uint32_t peer = 0;
  std::uint32_t delay_ns = 0;
  PacketQueue queue;               // switch: class 3
  PacketQueue priority;            // switch: class 0 (PFC frames); host: ACKs and PFC frames
  std::uint32_t queued_bytes = 0;  // on this port, all classes
  std::uint32_t egress_bytes = 0;  // class 3, as the switch's buffer accounts it
  std::uint32_t owner = 0;         // switch: index of its shared buffer; host: index of its NIC
  bool busy = false;
  bool paused = false;        // class 3, by the neighbour
  bool paused_by_us = false;  // we paused the neighbour's class 3
  std::uint8_t alpha_shift = 0;
  std::uint32_t ingress_bytes = 0;
  std::uint32_t headroom_used = 0;
  std::uint64_t tx_bytes = 0;  // all that was ever sent

  // Second line: what every transmission counts, and ECN.
  std::uint64_t packets[4] = {};  // by EventKind: data, ACK, NACK, PFC
  TimeNs busy_ns = 0;
  std::uint64_t ecn_packets = 0;  // packets sent since the network was last empty
  std::uint32_t kmin_bytes = 0;
  std::uint32_t kmax_bytes = 0;
  std::uint32_t peak_queue_bytes = 0;
  std::uint32_t headroom = 0;

  // Third line: the rest.
  double pmax = 0;
  std::uint64_t identity = 0;        // node and peer node: keys this port's random numbers
  std::uint64_t int_base_bytes = 0;  // tx_bytes when the counters were last restarted
  std::uint64_t ecn_marks = 0;
  TimeNs pause_ns = 0, paused_since = 0;
  std::uint32_t node = 0;
  bool is_host = false;
};
static_assert(sizeof(Port) == 192);

}  // namespace hpcmoe
