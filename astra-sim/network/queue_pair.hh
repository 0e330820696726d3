// One RDMA message in flight: sender and receiver state of a queue pair.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.hh"
#include "system/network_api.hh"

namespace hpcmoe {

struct alignas(64) QueuePair {
  // First cache line: all that a packet or an ACK touches, controllers apart. With many messages under way
  // each of them comes from memory, so there is one line for both ends.
  std::uint32_t size = 0;
  std::uint32_t snd_nxt = 0, snd_una = 0;
  std::uint32_t window_now = 0;  // bytes, scaled by the current rate where configured; 0 unlimited
  std::uint32_t nic_port = 0;
  std::uint32_t list_position = kNil;  // in the NIC's list, while it is there
  RateBps rate = 0;
  TimeNs last_tx_ns = 0;        // the last packet's time at the rate, kept for change_rate()
  std::uint32_t last_wire = 0;  // bytes of the last packet sent
  std::uint32_t expected = 0;   // receiver: next byte
  std::uint32_t last_nack = 0;
  std::uint32_t ack_port = 0;      // the receiver's
  std::uint16_t header_bytes = 0;  // data packet without payload
  std::uint16_t ack_bytes = 0;
  bool done = false;   // the last ACK has been processed
  bool local = false;  // no feedback control
  bool carries_int = false;
  bool throttled = false;  // rate != max_rate, which sending would have to fetch

  // Second line. The time at which pacing allows the next packet stands in the NIC's list.
  RateBps max_rate = 0;
  TimeNs nack_until = 0;
  TimeNs start_ns = 0;
  TimeNs base_rtt_ns = 0;
  std::uint64_t token = 0;
  FlowLabel label;
  std::uint32_t window = 0;  // bytes at full rate
  std::uint16_t sport = 0;

  std::uint32_t bytes_left() const { return size > snd_nxt ? size - snd_nxt : 0; }
  bool finished() const { return snd_una >= size; }
  // After a NACK sending starts again further back than what is acknowledged meanwhile: then it waits.
  bool window_bound() const {
    return window_now != 0 && (snd_una > snd_nxt || snd_nxt - snd_una >= window_now);
  }
};
static_assert(sizeof(QueuePair) == 128 && offsetof(QueuePair, max_rate) == 64);

}  // namespace hpcmoe
