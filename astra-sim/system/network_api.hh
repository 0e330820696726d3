// The seam between the system layer and a network backend. The system layer posts messages and
// timers; the backend owns the clock and reports what became of them. It is crossed once per
// message or timer, never per packet, so virtual calls are fine here.
#pragma once

#include <cstdint>

#include "core/types.hh"

namespace hpcmoe {

// Where a message comes from in the workload. Recorded with the flow, never read by the network.
struct FlowLabel {
  std::uint64_t node_id = 0;  // trace node that caused it
  std::int32_t layer = -1;    // model layer, -1 when the trace does not say
  std::uint16_t chunk = 0;    // chunk of the collective, in creation order
  std::uint16_t step = 0;     // message number within the chunk's phases at the sending rank
};

struct FlowRequest {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint64_t bytes = 0;  // 1 .. 2^31 - 1
  std::uint64_t token = 0;  // handed back on completion
  FlowLabel label;
};

// What a backend calls back. Both calls come from inside an event of the backend's clock.
class NetworkClient {
 public:
  virtual ~NetworkClient() = default;
  virtual void on_timer(std::uint32_t id) = 0;
  // The sender's cumulative ACK covers the whole message (both ends learn of it at this instant).
  virtual void on_flow_finished(std::uint64_t token) = 0;
  // Asked between instants while the network is empty: true makes the backend's run return, so that
  // the owner can look at the state.
  virtual bool wants_quiet_stop() { return false; }
};

class NetworkBackend {
 public:
  virtual ~NetworkBackend() = default;
  virtual TimeNs now() const = 0;
  // One callback on_timer(id) at now() + delay; equal times run in order of scheduling. The id is a
  // rank, or the number of ranks for what the system layer does for all of them.
  virtual void schedule_timer(std::uint32_t id, TimeNs delay_ns) = 0;
  // Starts a flow; it enters the network at this time stamp, two zero-delay events later.
  virtual void start_flow(const FlowRequest& request) = 0;
  // Every rank has finished: no later event runs.
  virtual void stop() = 0;
};

}  // namespace hpcmoe
