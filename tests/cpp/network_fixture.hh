// Small networks, and whole runs on the packet engine that log what finished when.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backends/native/native_network.hh"

namespace hpcmoe::testing {

constexpr RateBps kGbps = 1'000'000'000;

// No congestion control, no marking, kilobyte packets, every packet acknowledged, a window of one
// bandwidth-delay product per pair. Tests change single fields.
inline NetworkParams plain_params() {
  NetworkParams p;
  p.cc_mode = 12;
  p.payload_bytes = 1000;
  p.l2_chunk_bytes = 4000;
  p.l2_ack_interval_bytes = 1;
  p.pause_time_us = 5;
  p.alpha_resume_interval_us = 1;
  p.rate_decrease_interval_us = 4;
  p.rp_timer_us = 900;
  p.ewma_gain = 0.00390625;
  p.fast_recovery_times = 1;
  p.rate_ai_bps = 50'000'000;
  p.rate_hai_bps = 100'000'000;
  p.min_rate_bps = 100'000'000;
  p.dctcp_rate_ai_bps = kGbps;
  p.has_window = true;
  p.var_window = true;
  p.fast_react = true;
  p.u_target = 0.95;
  p.int_multi = 1;
  p.rate_bound = true;
  p.buffer_bytes = 32 << 20;
  p.headroom_factor = 3;
  p.qlen_monitor_start_ns = kNever;
  p.int_max_hops = 5;
  p.local_int = true;
  p.random_seed = 1;
  p.watchdog_ns = 100'000'000;
  return p;
}

// Hosts 0 .. hosts-1 on one switch, whose id is `hosts`.
inline TopologySpec star(std::uint32_t hosts, RateBps rate_bps, TimeNs delay_ns) {
  TopologySpec spec{hosts + 1, {hosts}, {}};
  for (std::uint32_t h = 0; h < hosts; ++h) spec.links.push_back({hosts, h, rate_bps, delay_ns, 0});
  return spec;
}

// Host 0 at 400 Gbit/s, host 1 at 100 Gbit/s, switch 2, 500 ns: the switch's output to host 1 queues.
inline TopologySpec fast_to_slow() {
  return {3, {2}, {{2, 0, 400 * kGbps, 500, 0}, {2, 1, 100 * kGbps, 500, 0}}};
}

// Hosts 0-15, leaves 16-19 with four hosts each, spines 20-23; 100 Gbit/s and 1 us everywhere.
inline TopologySpec leaf_spine() {
  TopologySpec spec{24, {16, 17, 18, 19, 20, 21, 22, 23}, {}};
  for (std::uint32_t h = 0; h < 16; ++h) spec.links.push_back({h, 16 + h / 4, 100 * kGbps, 1000, 0});
  for (std::uint32_t leaf = 16; leaf < 20; ++leaf) {
    for (std::uint32_t spine = 20; spine < 24; ++spine) {
      spec.links.push_back({leaf, spine, 100 * kGbps, 1000, 0});
    }
  }
  return spec;
}

struct Flow {
  TimeNs start_ns;
  std::uint32_t src, dst;
  std::uint64_t bytes;
};

// (time, what): `flow` is a position in the list of flows.
struct Finished {
  TimeNs time_ns;
  std::uint64_t flow;
  friend bool operator==(const Finished&, const Finished&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Finished& f) {
    return out << "flow " << f.flow << " at " << f.time_ns;
  }
};

struct PauseSeen {
  TimeNs time_ns;
  std::uint32_t node;
  bool pause;
  friend bool operator==(const PauseSeen&, const PauseSeen&) = default;
};

// Runs a list of flows until nothing is left to happen, or until `until_ns`.
class NetworkRun final : public NetworkClient {
 public:
  NetworkRun(const NetworkParams& params, const TopologySpec& topology, std::vector<Flow> flows,
             TimeNs until_ns = kNever)
      : network(NativeNetwork::create(params, topology)), flows_(std::move(flows)) {
    network->set_client(this);
    for (std::uint32_t i = 0; i < flows_.size(); ++i) {
      if (flows_[i].start_ns == 0) {
        on_timer(i);
      } else {
        network->schedule_timer(i, flows_[i].start_ns);
      }
    }
    do {
      status = network->run(1'000'000, until_ns);
    } while (status == RunStatus::running);
  }

  void on_timer(std::uint32_t index) override {
    const Flow& f = flows_[index];
    network->start_flow({f.src, f.dst, f.bytes, index, {}});
  }
  void on_flow_finished(std::uint64_t token) override { finished.push_back({network->now(), token}); }

  LinkCounters link(std::uint32_t src, std::uint32_t dst) const {
    for (const LinkCounters& row : network->link_counters()) {
      if (row.src == src && row.dst == dst) return row;
    }
    return {};
  }
  std::vector<PauseSeen> pauses() const {
    std::vector<PauseSeen> seen;
    for (const PauseRecord& r : network->records().pauses) seen.push_back({r.time_ns, r.node, r.pause});
    return seen;
  }

  std::unique_ptr<NativeNetwork> network;
  std::vector<Finished> finished;
  RunStatus status = RunStatus::running;

 private:
  std::vector<Flow> flows_;
};

}  // namespace hpcmoe::testing
