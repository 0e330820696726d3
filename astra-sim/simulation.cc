#include "simulation.hh"

#include "backends/packet_network.hh"
#include "fast_forward.hh"

namespace hpcmoe {
namespace {

constexpr std::size_t kMostNamed = 8;  // ranks or flows listed in a message

// The invariants hold only where nothing may be lost.
void check_invariants(const PacketNetwork& network) {
  if (network.totals().drops != 0) return;
  const std::string broken = network.broken_invariant();
  if (!broken.empty()) throw SimulationError("internal invariant broken at the end of the run: " + broken);
}

Progress progress_of(const PacketNetwork& network, bool finished, std::uint32_t finished_ranks) {
  const NetworkTotals totals = network.totals();
  return {finished, network.now(), totals.events, totals.packet_hops, finished_ranks};
}

}  // namespace

class Simulation::Impl {
 public:
  Impl(const NetworkParams& network, const TopologySpec& topology, const SystemParams& system,
       std::vector<RankTrace> traces, Backend backend)
      : network_(create_network(backend, network, topology)), system_(system, std::move(traces), *network_) {
    for (std::uint32_t rank = 0; rank < system_.ranks(); ++rank) {
      if (!network_->is_host(rank)) {
        throw InputError("the workload has " + std::to_string(system_.ranks()) + " ranks, but node " +
                         std::to_string(rank) + " of the topology is no host; rank r runs on node r");
      }
    }
    network_->set_client(&system_);
  }

  Progress run(std::uint64_t max_events) {
    if (!started_) {
      started_ = true;
      system_.start();
      if (system_.wants_quiet_stop()) fast_forward_.on_quiet();
    }
    const RunStatus status = network_->run(max_events, kNever);
    if (status == RunStatus::quiet) fast_forward_.on_quiet();
    const bool finished = system_.finished_ranks() == system_.ranks();
    if (finished) check_invariants(*network_);
    const bool goes_on = status == RunStatus::running || status == RunStatus::quiet;
    if (!finished && !goes_on) throw SimulationError(stuck_message());
    Progress progress = progress_of(*network_, finished, system_.finished_ranks());
    progress.simulated_ns += fast_forward_.added_ns();
    return progress;
  }

  std::string stuck_message() const {
    std::string text = "no progress is possible after " + std::to_string(system_.last_activity_ns()) + " ns:";
    const auto stuck = system_.stuck();
    std::size_t named = 0;
    for (const StuckNode& node : stuck) {
      if (++named > kMostNamed) break;
      text += (named == 1 ? " rank " : "; rank ") + std::to_string(node.rank) + ": node " +
              std::to_string(node.node_id) + " waits for " + node.waits_for;
    }
    if (stuck.size() > kMostNamed) text += "; and " + std::to_string(stuck.size() - kMostNamed) + " more";
    const std::string flows = network_->describe_unfinished(kMostNamed);
    if (!flows.empty()) text += ". Unfinished flows: " + flows;
    return text;
  }

  std::unique_ptr<PacketNetwork> network_;
  SystemLayer system_;
  FastForward fast_forward_{*network_, system_};
  bool started_ = false;
};

Simulation::Simulation(const NetworkParams& network, const TopologySpec& topology, const SystemParams& system,
                       std::vector<RankTrace> traces, Backend backend)
    : impl_(std::make_unique<Impl>(network, topology, system, std::move(traces), backend)) {}
Simulation::~Simulation() = default;

NetworkRecords& Simulation::records() { return impl_->network_->records(); }
Progress Simulation::run(std::uint64_t max_events) { return impl_->run(max_events); }
std::uint32_t Simulation::ranks() const { return impl_->system_.ranks(); }
RankReport Simulation::rank_report(std::uint32_t rank) const { return impl_->system_.report(rank); }
NetworkTotals Simulation::totals() const {
  NetworkTotals totals = impl_->network_->totals();
  impl_->fast_forward_.add_to(totals);
  return totals;
}
std::vector<LinkCounters> Simulation::link_counters() const {
  auto links = impl_->network_->link_counters();
  impl_->fast_forward_.add_to(links);
  return links;
}
void Simulation::enable_fast_forward() { impl_->system_.watch_quiet_moments(); }
std::uint64_t Simulation::added_layers() const { return impl_->fast_forward_.added_layers(); }
std::uint64_t Simulation::quiet_moments() const { return impl_->fast_forward_.quiet_moments(); }
std::vector<RecordRepeat> Simulation::record_repeats() const { return impl_->fast_forward_.repeats(); }
TimeNs Simulation::max_rtt_ns() const { return impl_->network_->max_rtt_ns(); }
std::uint64_t Simulation::max_bdp_bytes() const { return impl_->network_->max_bdp_bytes(); }

// Starts each flow at its time: those of time zero before the clock runs, in list order, the others
// by a timer.
class FlowSimulation::Impl final : public NetworkClient {
 public:
  Impl(const NetworkParams& network, const TopologySpec& topology, std::vector<FlowSpec> flows,
       TimeNs until_ns, Backend backend)
      : network_(create_network(backend, network, topology)), flows_(std::move(flows)), until_(until_ns) {
    network_->set_client(this);
  }

  void on_timer(std::uint32_t index) override { begin(index); }
  void on_flow_finished(std::uint64_t) override {
    if (++finished_ == flows_.size()) network_->stop();
  }

  Progress run(std::uint64_t max_events) {
    if (!started_) start();
    if (flows_.empty()) return progress_of(*network_, true, 0);
    const RunStatus status = network_->run(max_events, until_);
    if (status == RunStatus::stopped) check_invariants(*network_);
    const bool ended_unfinished = status == RunStatus::drained || status == RunStatus::stalled;
    if (ended_unfinished && until_ == kNever) {
      throw SimulationError(std::to_string(flows_.size() - finished_) + " of " +
                            std::to_string(flows_.size()) +
                            " flows never finish: " + network_->describe_unfinished(kMostNamed));
    }
    return progress_of(*network_, status != RunStatus::running, 0);
  }

  std::unique_ptr<PacketNetwork> network_;

 private:
  void start() {
    started_ = true;
    for (std::uint32_t i = 0; i < flows_.size(); ++i) {
      if (flows_[i].start_ns == 0) {
        begin(i);
      } else {
        network_->schedule_timer(i, flows_[i].start_ns);
      }
    }
  }

  void begin(std::uint32_t index) {
    const FlowSpec& f = flows_[index];
    network_->start_flow({f.src, f.dst, f.bytes, index, {index, -1, 0, 0}});
  }

  std::vector<FlowSpec> flows_;
  TimeNs until_;
  std::size_t finished_ = 0;
  bool started_ = false;
};

FlowSimulation::FlowSimulation(const NetworkParams& network, const TopologySpec& topology,
                               std::vector<FlowSpec> flows, TimeNs until_ns, Backend backend)
    : impl_(std::make_unique<Impl>(network, topology, std::move(flows), until_ns, backend)) {}
FlowSimulation::~FlowSimulation() = default;

NetworkRecords& FlowSimulation::records() { return impl_->network_->records(); }
Progress FlowSimulation::run(std::uint64_t max_events) { return impl_->run(max_events); }
NetworkTotals FlowSimulation::totals() const { return impl_->network_->totals(); }
std::vector<LinkCounters> FlowSimulation::link_counters() const { return impl_->network_->link_counters(); }
TimeNs FlowSimulation::max_rtt_ns() const { return impl_->network_->max_rtt_ns(); }
std::uint64_t FlowSimulation::max_bdp_bytes() const { return impl_->network_->max_bdp_bytes(); }

}  // namespace hpcmoe
