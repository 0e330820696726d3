// Engine: building ports, switches and hosts; results at the end.
#pragma once

#include <algorithm>
#include <string>

#include "backends/native/engine.hh"
#include "core/tx_time.hh"

namespace hpcmoe {

constexpr std::uint32_t kBaseHeaderBytes = 36;  // link 2, IPv4 20, UDP 8, sequence 6
constexpr std::uint32_t kPfcBytes = 31;
constexpr std::uint32_t kAckFieldBytes = 12;
constexpr std::uint32_t kAckPadTo = 26;
constexpr std::uint32_t kAckHeaderBytes = 34;

// ACK or NACK on the wire, padded to the smallest Ethernet payload as the model reckons it.
constexpr std::uint32_t ack_wire_bytes(std::uint32_t int_bytes) {
  const std::uint32_t fields = kAckFieldBytes + int_bytes;
  return (fields < kAckPadTo ? kAckPadTo - fields : 0) + kAckHeaderBytes + int_bytes;
}

// Random streams that node set-up uses before the first draw.
inline std::uint64_t first_ecn_stream(const TopologySpec& spec) {
  const auto lossy =
      std::count_if(spec.links.begin(), spec.links.end(), [](const LinkSpec& l) { return l.error_rate > 0; });
  return 9 * std::uint64_t{spec.nodes} + 2 + 2 * static_cast<std::uint64_t>(lossy);
}

inline TimeNs wheel_horizon(const TopologySpec& spec, std::uint32_t max_wire) {
  TimeNs longest = 0;
  for (const LinkSpec& l : spec.links) {
    longest = std::max(longest, l.delay_ns + tx_time_ns(max_wire, l.rate_bps));
  }
  return longest + 1;
}

template <class Control>
Engine<Control>::Engine(const NetworkParams& params, TopologySpec spec)
    : params_(params),
      topology_(std::move(spec)),
      routing_(topology_, params_.payload_bytes, params_.neighbor_order == kDescending),
      control_(params_),
      wheel_(wheel_horizon(topology_.spec(),
                           params_.payload_bytes + kBaseHeaderBytes + Control::int_bytes(params_))),
      paths_(topology_.ports(), routing_.max_switch_hops() + 1),
      ecn_streams_(first_ecn_stream(topology_.spec()), params_.random_seed) {
  make_ports();
  make_tx_tables(std::max(params_.payload_bytes + kBaseHeaderBytes + Control::int_bytes(params_),
                          ack_wire_bytes(Control::int_bytes(params_))));
  make_hosts();
  make_switches();
  make_error_models();
  source_ports_.resize(topology_.hosts().size() * topology_.hosts().size());
  if (params_.queue_sample_ns != 0) next_sample_ = params_.queue_sample_ns;
  if (params_.qlen_monitor_start_ns != kNever) {
    wheel_.schedule({.kind = EventKind::queue_monitor}, params_.qlen_monitor_start_ns);
  }
}

template <class Control>
void Engine<Control>::make_ports() {
  ports_.resize(topology_.ports());
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    port.node = topology_.node_of(i);
    port.is_host = topology_.is_host(port.node);
    port.delay_ns = static_cast<std::uint32_t>(topology_.link_of(i).delay_ns);
    port.identity = (std::uint64_t{port.node} << 32) | topology_.node_of(Topology::peer_of(i));
  }
}

template <class Control>
void Engine<Control>::make_tx_tables(std::uint32_t max_wire) {
  constexpr TimeNs kLongest = ~std::uint32_t{0};
  std::vector<RateBps> rates;
  tx_tables_.reserve(ports_.size());  // ports keep pointers into the tables
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    const RateBps rate = topology_.link_of(i).rate_bps;
    const auto known = std::find(rates.begin(), rates.end(), rate);
    const auto at = static_cast<std::size_t>(known - rates.begin());
    if (known == rates.end()) {
      rates.push_back(rate);
      if (tx_time_ns(max_wire, rate) >= kLongest) {
        throw InputError("link rate " + std::to_string(rate) +
                         " bit/s is too slow: a packet would take longer than 4 s");
      }
      auto& table = tx_tables_.emplace_back(max_wire + 1);
      for (std::uint32_t bytes = 0; bytes <= max_wire; ++bytes) {
        table[bytes] = static_cast<std::uint32_t>(tx_time_ns(bytes, rate));
      }
    }
    ports_[i].tx_ns = tx_tables_[at].data();
  }
}

template <class Control>
void Engine<Control>::make_hosts() {
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    if (!ports_[i].is_host) continue;
    ports_[i].owner = static_cast<std::uint32_t>(nics_.size());
    nics_.emplace_back().port = i;
  }
  host_pauses_.resize(topology_.nodes());
  for (HostPause& h : host_pauses_) h.armed = params_.nic_total_pause_count > 0;
}

template <class Control>
void Engine<Control>::make_switches() {
  // The rate that PFC thresholds are scaled by is that of the first host's first device.
  RateBps nic_rate = 0;
  const auto& own = topology_.ports_of(topology_.hosts().front());
  if (!own.empty()) {
    const bool by_id = params_.neighbor_order == kAscending;  // independent of the file's order
    const std::uint32_t first =
        by_id ? *std::min_element(own.begin(), own.end(),
                                  [&](std::uint32_t a, std::uint32_t b) {
                                    return ports_[a].peer_node() < ports_[b].peer_node();
                                  })
              : own.front();
    nic_rate = topology_.link_of(first).rate_bps;
  }
  for (std::uint32_t node = 0; node < topology_.nodes(); ++node) {
    if (topology_.is_host(node)) continue;
    std::uint32_t reserved = 0;
    for (std::uint32_t i : topology_.ports_of(node)) {
      Port& port = ports_[i];
      const LinkSpec& link = topology_.link_of(i);
      const auto bdp = static_cast<double>(link.rate_bps * link.delay_ns / 8 / 1'000'000'000);
      port.headroom = static_cast<std::uint32_t>(static_cast<std::uint64_t>(bdp * params_.headroom_factor));
      port.owner = static_cast<std::uint32_t>(buffers_.size());
      port.alpha_shift = 3;
      for (RateBps rate = link.rate_bps; rate > nic_rate && port.alpha_shift > 0; rate /= 2) {
        --port.alpha_shift;
      }
      reserved += port.headroom + kReserveBytes;
    }
    SharedBuffer& buffer = buffers_.emplace_back();
    buffer.node = node;
    buffer.available = static_cast<std::uint32_t>(params_.buffer_bytes) - reserved;
  }
  set_ecn_thresholds();
}

template <class Control>
void Engine<Control>::set_ecn_thresholds() {
  constexpr RateBps kKnown[] = {25'000'000'000,  50'000'000'000,    100'000'000'000,  200'000'000'000,
                                400'000'000'000, 2'400'000'000'000, 1'200'000'000'000};
  int_rates_.resize(ports_.size());
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    const RateBps rate = topology_.link_of(i).rate_bps;
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), rate) != std::end(kKnown);
    int_rates_[i] = known || params_.int_exact_rates ? rate : kKnown[0];
    if (port.is_host || !params_.ecn_enabled) continue;
    const auto entry = std::find_if(params_.ecn.begin(), params_.ecn.end(),
                                    [&](const EcnThreshold& e) { return e.rate_bps == rate; });
    if (entry == params_.ecn.end()) {
      throw InputError("ECN marking is on, but no threshold (KMIN_MAP, KMAX_MAP, PMAX_MAP) is given for " +
                       std::to_string(rate) + " bit/s, the rate of a port of switch " +
                       std::to_string(port.node));
    }
    port.kmin_bytes = static_cast<std::uint32_t>(entry->kmin_bytes);
    port.kmax_bytes = static_cast<std::uint32_t>(entry->kmax_bytes);
    port.pmax = entry->pmax;
  }
}

template <class Control>
void Engine<Control>::make_error_models() {
  constexpr std::uint64_t kErrorStream = (std::uint64_t{1} << 63) + 50;  // the same for all of them
  link_errors_.resize(topology_.spec().links.size());
  if (params_.error_rate_per_link > 0) {
    common_errors_.emplace(kErrorStream, params_.random_seed);
    has_errors_ = true;
  }
  for (std::size_t l = 0; l < link_errors_.size(); ++l) {
    if (topology_.spec().links[l].error_rate <= 0) continue;
    link_errors_[l].emplace(kErrorStream, params_.random_seed);
    has_errors_ = true;
  }
}

template <class Control>
NetworkTotals Engine<Control>::totals() const {
  NetworkTotals t = totals_;
  for (const Port& port : ports_) {
    t.packet_hops += port.packets[0] + port.packets[1] + port.packets[2];
    t.ecn_marks += port.ecn_marks;
  }
  return t;
}

template <class Control>
std::vector<LinkCounters> Engine<Control>::link_counters() const {
  std::vector<LinkCounters> rows;
  rows.reserve(ports_.size());
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    const Port& p = ports_[i];
    const TimeNs pause = p.pause_ns + (p.paused ? now() - p.paused_since : 0);
    rows.push_back({p.node, p.peer_node(), topology_.link_of(i).rate_bps, p.tx_bytes, p.packets[0],
                    p.packets[1] + p.packets[2], p.packets[3], p.ecn_marks, pause, p.peak_queue_bytes,
                    p.busy_ns});
  }
  return rows;
}

template <class Control>
std::string Engine<Control>::broken_invariant() const {
  if (live_flows_ != 0) return std::to_string(live_flows_) + " flows have not finished";
  if (totals_.bytes_sent != totals_.bytes_received) {
    return "bytes sent (" + std::to_string(totals_.bytes_sent) + ") differ from bytes received (" +
           std::to_string(totals_.bytes_received) + ")";
  }
  for (const Port& p : ports_) {
    const bool empty = p.queue.empty() && p.queued_bytes == 0 && p.egress_bytes == 0 &&
                       p.ingress_bytes == 0 && p.headroom_used == 0;
    if (!empty) {
      return "the port of node " + std::to_string(p.node) + " towards node " + std::to_string(p.peer_node()) +
             " still holds packets";
    }
  }
  for (const SharedBuffer& b : buffers_) {
    if (b.shared_used != 0) return "switch " + std::to_string(b.node) + " still accounts buffered bytes";
  }
  return "";
}

template <class Control>
std::string Engine<Control>::describe_unfinished(std::size_t most) const {
  std::string text;
  std::size_t found = 0;
  for (const QueuePair& qp : flows_) {
    if (qp.done || qp.size == 0) continue;
    if (++found > most) continue;
    if (!text.empty()) text += "; ";
    text += std::to_string(source_of(qp)) + " -> " + std::to_string(destination_of(qp)) + " port " +
            std::to_string(qp.sport) + ": " + std::to_string(qp.snd_una) + " of " + std::to_string(qp.size) +
            " bytes acknowledged";
  }
  if (found > most) text += "; and " + std::to_string(found - most) + " more";
  if (totals_.drops != 0) {
    text += " (" + std::to_string(totals_.drops) +
            " packets were lost; there is no retransmission timer, so a lost last packet is never repaired)";
  }
  return text;
}

}  // namespace hpcmoe
