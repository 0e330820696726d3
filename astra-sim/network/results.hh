// What a network run leaves behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hh"

namespace hpcmoe {

struct FlowRecord {
  std::uint32_t src = 0, dst = 0;
  std::uint32_t sport = 0;
  std::int32_t layer = -1;
  std::uint64_t bytes = 0;
  TimeNs start_ns = 0, fct_ns = 0, standalone_ns = 0;
  std::uint64_t node_id = 0;
  std::uint16_t chunk = 0, step = 0;
};

// A PFC frame as the device at `node` received it.
struct PauseRecord {
  TimeNs time_ns = 0;
  std::uint32_t node = 0, peer = 0, device = 0;
  bool is_switch = false, pause = false;
};

// Bytes waiting at the sending end of a link at a sampling instant.
struct QueueSample {
  TimeNs time_ns = 0;
  std::uint32_t src = 0, dst = 0;
  std::uint64_t bytes = 0;
};

// One direction of one link.
struct LinkCounters {
  std::uint32_t src = 0, dst = 0;
  RateBps rate_bps = 0;
  std::uint64_t bytes = 0, data_packets = 0, ack_packets = 0, pfc_frames = 0, ecn_marks = 0;
  TimeNs pause_ns = 0;  // the sending end was paused
  std::uint64_t peak_queue_bytes = 0;
  TimeNs busy_ns = 0;
};

struct NetworkTotals {
  std::uint64_t events = 0;
  std::uint64_t packet_hops = 0;  // a data packet, ACK or NACK crossing one link
  std::uint64_t ecn_marks = 0, pfc_pauses = 0, drops = 0;
  std::uint64_t flows_started = 0, flows_finished = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // payload of finished flows, new bytes only
  std::uint64_t ignored_int_flows = 0;               // path longer than the INT field has slots
};

// Records [begin, end) stand for themselves and for `count` more copies, each `period_ns` later than
// the one before, with layers and node ids raised by the steps.
struct RecordRepeat {
  std::uint64_t flow_begin = 0, flow_end = 0;
  std::uint64_t pause_begin = 0, pause_end = 0;
  std::uint64_t queue_begin = 0, queue_end = 0;
  std::uint64_t count = 0;
  TimeNs period_ns = 0;
  std::int64_t layer_step = 0;
  std::uint64_t node_step = 0;
};

struct NetworkRecords {
  bool keep_flows = true, keep_pauses = true, keep_queues = true;
  std::vector<FlowRecord> flows;
  std::vector<PauseRecord> pauses;
  std::vector<QueueSample> queues;
  std::vector<std::string> qlen_lines;  // the upstream-format monitor
};

}  // namespace hpcmoe
