// An event as it stands in the wheel and, while a packet waits in a port, in that port's queue: by
// value, so that whoever runs through a slot or a queue reads memory in order.
#pragma once

#include <cstdint>

namespace hpcmoe {

enum class EventKind : std::uint8_t {
  // packets: the event is the arrival at `port`
  data,
  ack,
  nack,
  pfc,
  // everything else
  tx_done,          // `port` has sent its packet
  flow_initialise,  // first of the two zero-delay steps of a flow's start
  flow_begin,
  wake_up,        // host `port`, generation `seq`
  rank_timer,     // system layer, rank `port`
  control_alpha,  // queue pair timers: `flow`, generation `seq`
  control_decrease,
  control_increase,
  nic_resume,
  nic_rearm,
  queue_monitor,
};

struct Event {
  std::uint32_t port =
      0;  // receiving port; while queued in a switch, the port it came in by; a timer's subject
  std::uint32_t flow = 0;   // queue pair
  std::uint32_t seq = 0;    // data: first byte; ACK: next byte expected; timers: generation
  std::uint32_t wire = 0;   // bytes on the wire
  std::uint32_t extra = 0;  // packets whose INT is kept: index of their records; others: build time
  EventKind kind = EventKind::data;
  std::uint8_t flags = 0;
  std::uint8_t hop = 0;  // switches passed so far
  std::uint8_t int_hops = 0;
};
static_assert(sizeof(Event) == 24);

// Packet flags.
constexpr std::uint8_t kEcnMarked = 1;   // congestion experienced
constexpr std::uint8_t kEcnEcho = 2;     // ACK: the data packet was marked
constexpr std::uint8_t kCarriesInt = 4;  // the packet has an INT field
constexpr std::uint8_t kPfcPause = 8;    // PFC: pause, else resume

}  // namespace hpcmoe
