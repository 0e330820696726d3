#include "backends/ns3/ns3_network.hh"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/ns3/recorder.hh"
#include "ns3/callback.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"

namespace hpcmoe {
namespace {

constexpr std::uint16_t kFirstSourcePort = 10000;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 31) - 1;
constexpr TimeNs kMonitorIntervalNs = 100;
constexpr TimeNs kLatestNs = TimeNs{1} << 62;

ns3::Time nanoseconds(TimeNs ns) {
  return ns3::NanoSeconds(static_cast<std::int64_t>(std::min(ns, kLatestNs)));
}

// From here on the global simulator of ns-3 belongs to one network; afterwards it is as new.
class Session {
 public:
  explicit Session(std::uint64_t seed) {
    if (taken().exchange(true)) {
      throw SimulationError("ns-3 has room for one simulation at a time in a process, and one is going on");
    }
    ns3::RngSeedManager::SetSeed(static_cast<std::uint32_t>(seed));
    ns3::RngSeedManager::SetRun(1);
    ns3::Simulator::SetScheduler(ns3::ObjectFactory("ns3::PriorityQueueScheduler"));
  }
  ~Session() {
    ns3::Simulator::Destroy();
    taken() = false;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  static std::atomic<bool>& taken() {
    static std::atomic<bool> flag{false};
    return flag;
  }
};

class Ns3Network final : public PacketNetwork {
 public:
  Ns3Network(const NetworkParams& params, TopologySpec topology)
      : p_(params),
        topology_(std::move(topology)),
        routes_(topology_, params.payload_bytes, params.neighbor_order == kDescending),
        session_((check_ns3_parameters(params, topology_), params.random_seed)),
        objects_(build_ns3_objects(params, topology_, routes_)),
        recorder_(p_, topology_, routes_, objects_) {
    for (const auto& port : objects_.ports) {
      port->TraceConnectWithoutContext("Receive", ns3::MakeCallback(&Ns3Network::on_receive, this));
      port->TraceConnectWithoutContext("Pause", ns3::MakeCallback(&Ns3Network::on_pause, this));
    }
    for (const auto& host : objects_.hosts) {
      if (!host) continue;
      host->TraceConnectWithoutContext("Finished", ns3::MakeCallback(&Ns3Network::on_finished, this));
    }
    if (p_.qlen_monitor_start_ns != kNever) {
      ns3::Simulator::Schedule(nanoseconds(p_.qlen_monitor_start_ns), &Ns3Network::monitor, this);
    }
  }

  TimeNs now() const override { return static_cast<TimeNs>(ns3::Simulator::Now().GetNanoSeconds()); }
  bool is_host(std::uint32_t node) const override {
    return node < topology_.nodes() && topology_.is_host(node);
  }
  void set_client(NetworkClient* client) override { client_ = client; }

  void schedule_timer(std::uint32_t id, TimeNs delay_ns) override {
    ++timers_;
    ns3::Simulator::Schedule(nanoseconds(delay_ns), &Ns3Network::on_timer, this, id);
  }

  void start_flow(const FlowRequest& request) override {
    check(request);
    if (p_.restart_counters_when_idle && live_ == 0 && is_empty()) restart_counters();
    const std::uint64_t token = started_++;
    Flow& flow = flows_[token];
    flow.request = request;
    flow.source_port = ports_.try_emplace({request.src, request.dst}, kFirstSourcePort).first->second++;
    ++live_;
    note_progress();
    ns3::Simulator::ScheduleNow(&Ns3Network::open, this, token);
    start_sampling();
  }

  void stop() override { end(RunStatus::stopped); }

  RunStatus run(std::uint64_t max_events, TimeNs until_ns) override {
    if (status_ == RunStatus::stopped) return status_;
    if (until_ns < now()) return RunStatus::reached;
    status_ = RunStatus::drained;
    steps_left_ = std::max<std::uint64_t>(max_events, 1);
    set_limit(until_ns);
    if (watchdog_.IsExpired()) watch();
    ns3::Simulator::Run();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return status_;
  }

  // Nothing here is known to repeat.
  bool is_at_rest() const override { return false; }
  void offset_records(TimeNs) override {}

  NetworkTotals totals() const override {
    NetworkTotals totals;
    totals.events = ns3::Simulator::GetEventCount();
    totals.flows_started = started_;
    totals.flows_finished = started_ - live_;
    totals.bytes_sent = finished_bytes_;
    totals.ignored_int_flows = ignored_int_flows_;
    recorder_.add_device_totals(totals);
    return totals;
  }
  NetworkRecords& records() override { return recorder_.records; }
  std::vector<LinkCounters> link_counters() const override { return recorder_.link_counters(last_progress_); }
  TimeNs max_rtt_ns() const override { return routes_.max_rtt_ns(); }
  std::uint64_t max_bdp_bytes() const override { return routes_.max_bdp_bytes(); }

  std::string broken_invariant() const override {
    for (const auto& fabric : objects_.switches) {
      if (fabric && !fabric->BufferIsEmpty()) {
        return "the buffer of switch " + std::to_string(fabric->GetId()) + " is not empty";
      }
    }
    return live_ == 0 ? "" : std::to_string(live_) + " flows are not finished";
  }

  std::string describe_unfinished(std::size_t most) const override {
    std::map<std::uint64_t, std::string> lines;
    for (const auto& host : objects_.hosts) {
      if (!host) continue;
      for (const auto& qp : host->LiveQueuePairs()) {
        const FlowRequest& request = flows_.at(qp->Request().token).request;
        lines[qp->Request().token] = std::to_string(request.src) + " -> " + std::to_string(request.dst) +
                                     " (" + std::to_string(qp->acknowledged) + " of " +
                                     std::to_string(request.bytes) + " bytes acknowledged)";
      }
    }
    std::string text;
    std::size_t named = 0;
    for (const auto& [token, line] : lines) {
      if (named++ == most) return text + " and " + std::to_string(lines.size() - most) + " more";
      text += (text.empty() ? "" : ", ") + line;
    }
    return text;
  }

 private:
  struct Flow {
    FlowRequest request;
    std::uint16_t source_port = 0;
  };

  void check(const FlowRequest& r) const {
    const std::string name = "flow " + std::to_string(r.src) + " -> " + std::to_string(r.dst) + ": ";
    if (r.bytes == 0 || r.bytes > kMostBytes) {
      throw InputError(name + std::to_string(r.bytes) + " bytes; allowed are 1 .. " +
                       std::to_string(kMostBytes));
    }
    if (!is_host(r.src) || !is_host(r.dst)) throw InputError(name + "both ends must be hosts");
    if (r.src == r.dst) throw InputError(name + "the ends must differ");
    if (!routes_.reachable(r.src, r.dst)) throw InputError(name + "no path joins the hosts");
  }

  bool is_local(const FlowRequest& r) const {
    if (p_.local_pairs.empty()) return false;
    const std::size_t row = topology_.host_index(r.src);
    return p_.local_pairs[row * topology_.hosts().size() + topology_.host_index(r.dst)] != 0;
  }

  bool is_empty() const {
    const auto quiet = [](const ns3::Ptr<rdma::Link>& link) { return link->InFlight() == 0; };
    const auto idle = [](const ns3::Ptr<rdma::Device>& port) { return port->QueuedBytes() == 0; };
    return std::all_of(objects_.links.begin(), objects_.links.end(), quiet) &&
           std::all_of(objects_.ports.begin(), objects_.ports.end(), idle);
  }

  void restart_counters() {
    ports_.clear();
    for (const auto& fabric : objects_.switches) {
      if (fabric) fabric->RestartCounters();
    }
    for (const auto& host : objects_.hosts) {
      for (std::uint32_t port = 0; host && port < host->GetNPorts(); ++port) {
        host->GetPort(port)->ForgetQueuePairs();
      }
    }
  }

  // A flow enters the network two rounds of this nanosecond after it was asked for: an application is
  // started, and then opens its queue pair.
  void open(std::uint64_t token) { ns3::Simulator::ScheduleNow(&Ns3Network::send, this, token); }

  void send(std::uint64_t token) {
    const Flow& flow = flows_.at(token);
    const FlowRequest& r = flow.request;
    rdma::QueuePairRequest request;
    request.tuple = {Routes::address(r.src), Routes::address(r.dst), flow.source_port, rdma::kServicePort};
    request.bytes = r.bytes;
    request.local = is_local(r);
    request.telemetry = p_.local_int || !request.local;
    request.token = token;
    request.base_rtt = nanoseconds(p_.global_t ? routes_.max_rtt_ns() : routes_.rtt_ns(r.src, r.dst));
    if (p_.has_window || (request.local && p_.local_window)) {
      request.window_bytes =
          static_cast<std::uint32_t>(p_.global_t ? routes_.max_bdp_bytes() : routes_.bdp_bytes(r.src, r.dst));
    }
    if (p_.cc_mode == kHpcc && !request.local && routes_.switches_between(r.src, r.dst) > p_.int_max_hops) {
      ++ignored_int_flows_;
    }
    objects_.hosts[r.src]->Send(request);
  }

  void on_finished(ns3::Ptr<rdma::QueuePair> qp) {
    const auto found = flows_.find(qp->Request().token);
    const FlowRequest request = found->second.request;
    recorder_.note_flow(*qp, request);
    flows_.erase(found);
    objects_.hosts[request.dst]->ForgetSender(ns3::Ipv4Address(qp->Request().tuple.source),
                                              qp->Request().tuple.source_port);
    --live_;
    finished_bytes_ += request.bytes;
    note_progress();
    guarded([&] { client_->on_flow_finished(request.token); });
  }

  void on_timer(std::uint32_t id) {
    --timers_;
    note_progress();
    guarded([&] { client_->on_timer(id); });
    count_step();
  }

  void on_receive(ns3::Ptr<const rdma::Device>) {
    note_progress();
    count_step();
  }

  void on_pause(ns3::Ptr<const rdma::Device> device, const rdma::PauseHeader& pause) {
    recorder_.note_pause(*device, pause);
  }

  // An exception must not cross ns-3.
  template <class Call>
  void guarded(Call call) {
    try {
      call();
    } catch (...) {
      failure_ = std::current_exception();
      end(RunStatus::stopped);
    }
  }

  void end(RunStatus status) {
    status_ = status;
    ns3::Simulator::Stop();
  }

  void count_step() {
    if (--steps_left_ == 0 && status_ == RunStatus::drained) end(RunStatus::running);
    if (steps_left_ == 0) steps_left_ = 1;
  }

  void set_limit(TimeNs until_ns) {
    if (until_ns == limit_) return;
    limit_event_.Cancel();
    limit_ = until_ns;
    if (until_ns == kNever) return;
    limit_event_ = ns3::Simulator::Schedule(nanoseconds(until_ns + 1 - now()), &Ns3Network::end, this,
                                            RunStatus::reached);
  }

  void note_progress() { last_progress_ = now(); }

  // Timers of controllers may run for ever after everything else has ended.
  void watch() {
    if (timers_ == 0 && now() - last_progress_ >= p_.watchdog_ns) {
      end(RunStatus::stalled);
      return;
    }
    const TimeNs rest = p_.watchdog_ns - std::min(p_.watchdog_ns, now() - last_progress_);
    watchdog_ = ns3::Simulator::Schedule(nanoseconds(std::max<TimeNs>(rest, 1)), &Ns3Network::watch, this);
  }

  void monitor() {
    recorder_.write_monitor_line();
    ns3::Simulator::Schedule(nanoseconds(kMonitorIntervalNs), &Ns3Network::monitor, this);
  }

  void start_sampling() {
    if (p_.queue_sample_ns == 0 || !recorder_.records.keep_queues || !sampler_.IsExpired()) return;
    const TimeNs rest = p_.queue_sample_ns - now() % p_.queue_sample_ns;
    sampler_ = ns3::Simulator::Schedule(nanoseconds(rest), &Ns3Network::sample, this);
  }

  void sample() {
    recorder_.sample_queues();
    if (live_ == 0 && is_empty()) return;
    sampler_ = ns3::Simulator::Schedule(nanoseconds(p_.queue_sample_ns), &Ns3Network::sample, this);
  }

  const NetworkParams p_;
  const Topology topology_;
  const Routes routes_;
  Session session_;
  Ns3Objects objects_;
  Ns3Recorder recorder_;

  NetworkClient* client_ = nullptr;
  RunStatus status_ = RunStatus::drained;
  std::exception_ptr failure_;
  std::unordered_map<std::uint64_t, Flow> flows_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> ports_;  // next source port of a pair
  std::uint64_t started_ = 0, live_ = 0, finished_bytes_ = 0, ignored_int_flows_ = 0;
  std::uint64_t timers_ = 0;
  std::uint64_t steps_left_ = 0;
  TimeNs last_progress_ = 0;
  TimeNs limit_ = kNever;
  ns3::EventId limit_event_, watchdog_, sampler_;
};

}  // namespace

std::unique_ptr<PacketNetwork> create_ns3_network(const NetworkParams& params, TopologySpec topology) {
  return std::make_unique<Ns3Network>(params, std::move(topology));
}

}  // namespace hpcmoe
