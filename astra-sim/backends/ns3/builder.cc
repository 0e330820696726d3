#include "backends/ns3/builder.hh"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "backends/ns3/dcqcn.hh"
#include "backends/ns3/dctcp.hh"
#include "backends/ns3/hpcc.hh"
#include "backends/ns3/timely.hh"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/pointer.h"
#include "ns3/random-variable-stream.h"
#include "ns3/uinteger.h"

namespace hpcmoe {
namespace {

using ns3::BooleanValue;
using ns3::DataRate;
using ns3::DataRateValue;
using ns3::DoubleValue;
using ns3::MicroSeconds;
using ns3::PointerValue;
using ns3::TimeValue;
using ns3::UintegerValue;

constexpr std::int64_t kErrorStream = 50;
// Streams that the protocol stacks of ns-3 take per node and at set-up. The model has no such stacks, but
// its draws are those of a network that has them.
constexpr std::uint64_t kStreamsPerNode = 9, kStreamsOfSetup = 2, kStreamsPerErrorModel = 2;

std::set<RateBps> switch_port_rates(const Topology& topology) {
  std::set<RateBps> rates;
  for (std::uint32_t port = 0; port < topology.ports(); ++port) {
    if (!topology.is_host(topology.node_of(port))) rates.insert(topology.link_of(port).rate_bps);
  }
  return rates;
}

void check_controller(const NetworkParams& p) {
  if (p.cc_mode == kPint) {
    throw InputError(
        "CC_MODE 10 (HPCC-PINT) is not available; allowed are 0, 12 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), "
        "8 (DCTCP)");
  }
  if (p.cc_mode == kDcqcn &&
      (p.alpha_resume_interval_us == 0 || p.rate_decrease_interval_us == 0 || p.rp_timer_us == 0)) {
    throw InputError(
        "DCQCN needs alpha_resume_interval_us, rate_decrease_interval_us and rp_timer_us of at least 1");
  }
  if (p.cc_mode == kHpcc && (p.int_max_hops == 0 || p.int_max_hops > rdma::kIntSlots)) {
    throw InputError("int_max_hops " + std::to_string(p.int_max_hops) + " is not within 1 .. " +
                     std::to_string(rdma::kIntSlots));
  }
}

void check_rates(const NetworkParams& p, const Topology& topology) {
  const std::set<RateBps> rates = switch_port_rates(topology);
  const auto known = [&p](RateBps rate) {
    return std::any_of(p.ecn.begin(), p.ecn.end(),
                       [rate](const EcnThreshold& t) { return t.rate_bps == rate; });
  };
  for (const RateBps rate : rates) {
    if (p.ecn_enabled && !known(rate)) {
      throw InputError("no ECN threshold is given for switch ports of " + std::to_string(rate) + " bit/s");
    }
  }
  if (p.int_exact_rates && rates.size() > rdma::IntRates::kMost) {
    throw InputError("int_exact_rates: the backend ns3 has " + std::to_string(rdma::IntRates::kMost) +
                     " codes for link rates, but the switches have " + std::to_string(rates.size()) +
                     " rates");
  }
}

class Builder {
 public:
  Builder(const NetworkParams& params, const Topology& topology, const Routes& routes)
      : p_(params), topology_(topology), routes_(routes) {}

  Ns3Objects build() {
    draws_ = make_draws();
    int_rates_ = ns3::CreateObject<rdma::IntRates>();
    if (p_.int_exact_rates) {
      const std::set<RateBps> rates = switch_port_rates(topology_);
      if (!rates.empty()) int_rates_->SetRates({rates.begin(), rates.end()});
    }
    make_nodes();
    for (std::uint32_t link = 0; link < topology_.spec().links.size(); ++link) make_link(link);
    add_routes();
    return std::move(objects_);
  }

 private:
  ns3::Ptr<rdma::Draws> make_draws() const {
    std::uint64_t lossy = 0;
    for (const LinkSpec& link : topology_.spec().links) lossy += link.error_rate > 0 ? 1 : 0;
    const std::uint64_t first =
        kStreamsPerNode * topology_.nodes() + kStreamsOfSetup + kStreamsPerErrorModel * lossy;
    return ns3::CreateObjectWithAttributes<rdma::Draws>("Keyed", BooleanValue(p_.ecn_random == kKeyed),
                                                        "Seed", UintegerValue(p_.random_seed), "FirstStream",
                                                        UintegerValue(first));
  }

  void make_nodes() {
    const ns3::ObjectFactory host = host_factory(), fabric = switch_factory();
    const ns3::ObjectFactory control = control_factory();
    objects_.hosts.resize(topology_.nodes());
    objects_.switches.resize(topology_.nodes());
    objects_.ports.resize(topology_.ports());
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {  // ns-3 numbers them in this order
      if (topology_.is_host(node)) {
        objects_.hosts[node] = host.Create<rdma::Host>();
        objects_.hosts[node]->SetCongestionControl(control);
      } else {
        objects_.switches[node] = fabric.Create<rdma::Switch>();
        for (const EcnThreshold& t : p_.ecn) {
          objects_.switches[node]->SetMarkingThreshold(t.rate_bps, {t.kmin_bytes, t.kmax_bytes, t.pmax});
        }
      }
    }
  }

  ns3::ObjectFactory host_factory() const {
    ns3::ObjectFactory factory = factory_of<rdma::Host>();
    factory.Set("PayloadBytes", UintegerValue(p_.payload_bytes));
    factory.Set("AckInterval", UintegerValue(p_.l2_ack_interval_bytes));
    factory.Set("ChunkBytes", UintegerValue(p_.l2_chunk_bytes));
    factory.Set("BackToZero", BooleanValue(p_.l2_back_to_zero));
    factory.Set("VarWindow", BooleanValue(p_.var_window));
    factory.Set("PaceAtRate", BooleanValue(p_.rate_bound));
    factory.Set("ReplyHighPriority", BooleanValue(p_.ack_high_prio));
    factory.Set("StampBuildTime", BooleanValue(p_.timely_stamp == kStampBuildTime));
    factory.Set("PauseTime", UintegerValue(p_.pause_time_us));
    factory.Set("OwnPauses", UintegerValue(p_.nic_total_pause_count));
    factory.Set("Draws", PointerValue(draws_));
    return factory;
  }

  ns3::ObjectFactory switch_factory() const {
    ns3::ObjectFactory factory = factory_of<rdma::Switch>();
    factory.Set("BufferBytes", UintegerValue(static_cast<std::uint32_t>(p_.buffer_bytes)));
    factory.Set("HeadroomFactor", DoubleValue(p_.headroom_factor));
    factory.Set("PauseTime", UintegerValue(p_.pause_time_us));
    factory.Set("Marking", BooleanValue(p_.ecn_enabled));
    factory.Set("IntMultiplier", UintegerValue(p_.int_multi));
    factory.Set("IntRates", PointerValue(int_rates_));
    factory.Set("Draws", PointerValue(draws_));
    return factory;
  }

  ns3::ObjectFactory control_factory() const {
    switch (p_.cc_mode) {
      case kDcqcn:
        return dcqcn_factory();
      case kHpcc:
        return hpcc_factory();
      case kTimely:
        return stepping_factory<rdma::Timely>(p_.rate_ai_bps);
      case kDctcp: {
        ns3::ObjectFactory factory = stepping_factory<rdma::Dctcp>(p_.dctcp_rate_ai_bps, false);
        factory.Set("Gain", DoubleValue(p_.ewma_gain));
        factory.Set("PayloadBytes", UintegerValue(p_.payload_bytes));
        return factory;
      }
      default:
        return factory_of<rdma::CongestionControl>();
    }
  }

  // By type and not by name, so that the linker knows that the class is used.
  template <class Type>
  static ns3::ObjectFactory factory_of() {
    ns3::ObjectFactory factory;
    factory.SetTypeId(Type::GetTypeId());
    return factory;
  }

  template <class Controller>
  ns3::ObjectFactory stepping_factory(RateBps additive, bool hyper = true) const {
    ns3::ObjectFactory factory = factory_of<Controller>();
    factory.Set("AdditiveIncrease", DataRateValue(DataRate(additive)));
    if (hyper) factory.Set("HyperIncrease", DataRateValue(DataRate(p_.rate_hai_bps)));
    factory.Set("MinRate", DataRateValue(DataRate(p_.min_rate_bps)));
    return factory;
  }

  ns3::ObjectFactory dcqcn_factory() const {
    ns3::ObjectFactory factory = stepping_factory<rdma::Dcqcn>(p_.rate_ai_bps);
    factory.Set("AlphaInterval", TimeValue(MicroSeconds(p_.alpha_resume_interval_us)));
    factory.Set("DecreaseInterval", TimeValue(MicroSeconds(p_.rate_decrease_interval_us)));
    factory.Set("IncreaseInterval", TimeValue(MicroSeconds(p_.rp_timer_us)));
    factory.Set("Gain", DoubleValue(p_.ewma_gain));
    factory.Set("ClampTarget", BooleanValue(p_.clamp_target_rate));
    factory.Set("FastRecoveries", UintegerValue(p_.fast_recovery_times));
    return factory;
  }

  ns3::ObjectFactory hpcc_factory() const {
    ns3::ObjectFactory factory = stepping_factory<rdma::Hpcc>(p_.rate_ai_bps, false);
    factory.Set("TargetUtilisation", DoubleValue(p_.u_target));
    factory.Set("AdditiveStages", UintegerValue(p_.mi_thresh));
    factory.Set("FastReact", BooleanValue(p_.fast_react));
    factory.Set("MultiRate", BooleanValue(p_.multi_rate));
    factory.Set("SampleFeedback", BooleanValue(p_.sample_feedback));
    factory.Set("IntMultiplier", UintegerValue(p_.int_multi));
    factory.Set("Slots", UintegerValue(p_.int_max_hops));
    factory.Set("IntRates", PointerValue(int_rates_));
    return factory;
  }

  void make_link(std::uint32_t index) {
    const LinkSpec& spec = topology_.spec().links[index];
    const auto link = ns3::CreateObjectWithAttributes<rdma::Link>(
        "Delay", TimeValue(ns3::NanoSeconds(static_cast<std::int64_t>(spec.delay_ns))));
    const ns3::Ptr<ns3::ErrorModel> errors = error_model(spec.error_rate);
    for (const std::uint32_t port : {2 * index, 2 * index + 1}) {
      const std::uint32_t node = topology_.node_of(port);
      if (topology_.is_host(node)) {
        const auto device = make_device<rdma::HostPort>(spec, errors, *link);
        objects_.hosts[node]->AddPort(device);
        objects_.ports[port] = device;
      } else {
        const auto device = make_device<rdma::SwitchPort>(spec, errors, *link);
        objects_.switches[node]->AddPort(device, nic_rate());
        objects_.ports[port] = device;
      }
    }
    objects_.links.push_back(link);
  }

  template <class Port>
  static ns3::Ptr<Port> make_device(const LinkSpec& spec, ns3::Ptr<ns3::ErrorModel> errors,
                                    rdma::Link& link) {
    const auto device = ns3::CreateObjectWithAttributes<Port>(
        "DataRate", DataRateValue(DataRate(spec.rate_bps)), "ReceiveErrorModel", PointerValue(errors));
    link.Attach(device);
    return device;
  }

  // One model for each lossy link, and one for all the others together. All draw the same sequence.
  ns3::Ptr<ns3::ErrorModel> error_model(double link_rate) {
    if (link_rate > 0) return make_error_model(link_rate);
    if (p_.error_rate_per_link <= 0) return nullptr;  // draws that lose nothing change nothing
    if (!shared_errors_) shared_errors_ = make_error_model(p_.error_rate_per_link);
    return shared_errors_;
  }

  static ns3::Ptr<ns3::ErrorModel> make_error_model(double rate) {
    const auto random = ns3::CreateObject<ns3::UniformRandomVariable>();
    random->SetStream(kErrorStream);
    const auto model = ns3::CreateObject<ns3::RateErrorModel>();
    model->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRandomVariable(random);
    model->SetRate(rate);
    return model;
  }

  RateBps nic_rate() const {
    const auto& ports = topology_.ports_of(topology_.hosts().front());
    return ports.empty() ? 0 : topology_.link_of(ports.front()).rate_bps;
  }

  void add_routes() {
    for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
      for (const std::uint32_t host : topology_.hosts()) {
        const ns3::Ipv4Address address(Routes::address(host));
        for (const std::uint32_t port : routes_.next_hops(node, host)) {
          const std::uint32_t index = objects_.ports[port]->GetIfIndex();
          if (topology_.is_host(node)) {
            objects_.hosts[node]->AddRoute(address, index);
          } else {
            objects_.switches[node]->AddRoute(address, index);
          }
        }
      }
    }
  }

  const NetworkParams& p_;
  const Topology& topology_;
  const Routes& routes_;
  Ns3Objects objects_;
  ns3::Ptr<rdma::Draws> draws_;
  ns3::Ptr<rdma::IntRates> int_rates_;
  ns3::Ptr<ns3::ErrorModel> shared_errors_;
};

}  // namespace

void check_ns3_parameters(const NetworkParams& p, const Topology& topology) {
  check_parameters(p);
  check_controller(p);
  check_rates(p, topology);
}

Ns3Objects build_ns3_objects(const NetworkParams& params, const Topology& topology, const Routes& routes) {
  return Builder(params, topology, routes).build();
}

}  // namespace hpcmoe
