// One RDMA message in flight: sender and receiver state of a queue pair.
#pragma once

#include <cstdint>

#include "system/network_api.hh"

namespace hpcmoe {

struct alignas(64) QueuePair {
  // Sender. The time at which pacing allows the next packet stands in the NIC's list.
  std::uint64_t size = 0;
  std::uint64_t snd_nxt = 0, snd_una = 0;
  std::uint64_t window_now = 0;  // bytes, scaled by the current rate where configured; 0 unlimited
  RateBps rate = 0, max_rate = 0;
  std::uint32_t nic_port = 0;
  std::uint32_t list_position = 0;  // in the NIC's list
  std::uint32_t last_wire = 0;      // bytes of the last packet sent
  TimeNs last_tx_ns = 0;            // that packet's time at the rate, kept for change_rate()
  bool done = false;                // the last ACK has been processed
  bool local = false;               // no feedback control
  bool carries_int = false;

  // Receiver, and what both ends know.
  std::uint32_t expected = 0;
  std::uint32_t last_nack = 0;
  TimeNs nack_until = 0;
  std::uint32_t ack_port = 0;
  std::uint32_t header_bytes = 0;  // data packet without payload
  std::uint32_t ack_bytes = 0;
  std::uint32_t src = 0, dst = 0;
  std::uint16_t sport = 0;
  TimeNs start_ns = 0;
  std::uint64_t window = 0;  // bytes at full rate

  TimeNs base_rtt_ns = 0;
  std::uint64_t token = 0;
  FlowLabel label;

  std::uint64_t bytes_left() const { return size > snd_nxt ? size - snd_nxt : 0; }
  bool finished() const { return snd_una >= size; }
  bool window_bound() const { return window_now != 0 && snd_nxt - snd_una >= window_now; }
};

}  // namespace hpcmoe
