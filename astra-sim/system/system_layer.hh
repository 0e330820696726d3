// Workload and system layer of all ranks: issues ready trace nodes, turns collectives into
// messages, matches receives, keeps per-rank statistics. Behaviour follows ASTRA-sim.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "system/network_api.hh"
#include "system/parameters.hh"
#include "system/quiet_state.hh"
#include "workload/trace.hh"

namespace hpcmoe {

struct RankReport {
  bool finished = false;
  TimeNs finish_ns = 0;  // tick at which the rank's last node completed
  TimeNs wall_ns = 0;    // largest end tick over the rank's nodes
  TimeNs cpu_ns = 0;     // union of the busy intervals of each class
  TimeNs gpu_ns = 0;
  TimeNs comm_ns = 0;
  TimeNs remote_mem_ns = 0;
  TimeNs modelled_compute_ns = 0;  // sum of modelled run times; exposed = finish - this
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  double compute_bound_percent = 0, compute_utilization_percent = 0;
  double memory_utilization_percent = 0, operation_intensity = 0;
};

struct StuckNode {
  std::uint32_t rank = 0;
  std::uint64_t node_id = 0;
  NodeType type = NodeType::comp;
  std::string waits_for;  // one phrase for the user
};

class SystemLayer final : public NetworkClient {
 public:
  // Throws InputError when traces, groups and dimensions do not fit together. The backend must
  // outlive this object.
  SystemLayer(const SystemParams& params, std::vector<RankTrace> traces, NetworkBackend& network);
  ~SystemLayer() override;

  void start();  // issues what is ready on every rank, in rank order, at time zero

  void on_timer(std::uint32_t rank) override;
  void on_flow_finished(std::uint64_t token) override;

  // Exact fast-forward. Watching is possible where every trace is a chain of compute nodes and
  // collectives; the network's owner is then asked to stop at quiet moments, once per moment.
  bool watch_quiet_moments();
  bool wants_quiet_stop() override;
  QuietState quiet_state();  // at a quiet stop
  // How often every rank's trace repeats the stretch between two states of equal signature.
  std::uint64_t repeats_after(const QuietState& first, const QuietState& second) const;
  // Whether what is left of the traces after those repeats goes like the beginning of the stretch, which
  // came to rest at that point: all ranks at a barrier, which ended at `second`, and the network empty.
  bool ends_as_repeat(const QuietState& first, const QuietState& second) const;
  LabelStep label_step(const QuietState& first, const QuietState& second) const;
  // At `second`: goes on as if the stretch had run `jump.count` more times.
  void skip(const QuietState& first, const QuietState& second, const Jump& jump);
  // Ends every rank, where `ends_as_repeat` holds, as if the repeats and the rest had run.
  void skip_to_end(const QuietState& first, const QuietState& second, const Jump& repeats);

  std::uint32_t ranks() const;
  std::uint32_t finished_ranks() const;
  std::uint64_t pending_timers() const;  // timers the backend still owes; 0 and no packets: stuck
  TimeNs last_activity_ns() const;       // when a timer or a flow last called back
  RankReport report(std::uint32_t rank) const;
  std::vector<StuckNode> stuck() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpcmoe
