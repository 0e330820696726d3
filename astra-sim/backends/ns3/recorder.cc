#include "backends/ns3/recorder.hh"

#include "ns3/simulator.h"

namespace hpcmoe {
namespace {

// The header bytes by which the usual slowdown figures reckon; packets here are twelve bytes shorter.
constexpr std::uint32_t kStandaloneHeaderBytes = 48;
constexpr std::uint32_t kMonitoredBytes = 1000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

TimeNs now_ns() { return static_cast<TimeNs>(ns3::Simulator::Now().GetNanoSeconds()); }
TimeNs to_ns(ns3::Time time) { return static_cast<TimeNs>(time.GetNanoSeconds()); }

}  // namespace

TimeNs Ns3Recorder::standalone_ns(const FlowRequest& request) const {
  const std::uint64_t packets = (request.bytes + p_.payload_bytes - 1) / p_.payload_bytes;
  const auto total = static_cast<std::uint32_t>(request.bytes + packets * kStandaloneHeaderBytes);
  const RateBps slowest_bps = routes_.slowest_bps(request.src, request.dst);
  return routes_.rtt_ns(request.src, request.dst) + std::uint64_t{total} * 8 * kNsPerSecond / slowest_bps;
}

void Ns3Recorder::note_flow(const rdma::QueuePair& qp, const FlowRequest& request) {
  if (!records.keep_flows) return;
  FlowRecord record;
  record.src = request.src;
  record.dst = request.dst;
  record.sport = qp.Request().tuple.source_port;
  record.layer = request.label.layer;
  record.bytes = request.bytes;
  record.start_ns = to_ns(qp.StartTime());
  record.fct_ns = now_ns() - record.start_ns;
  record.standalone_ns = standalone_ns(request);
  record.node_id = request.label.node_id;
  record.chunk = request.label.chunk;
  record.step = request.label.step;
  records.flows.push_back(record);
}

void Ns3Recorder::note_pause(const rdma::Device& device, const rdma::PauseHeader& pause) {
  if (!records.keep_pauses) return;
  PauseRecord record;
  record.time_ns = now_ns();
  record.node = device.GetNode()->GetId();
  record.peer = device.GetLink().PeerOf(device)->GetNode()->GetId();
  record.device = device.GetIfIndex() + 1;  // upstream counts a loopback before it
  record.is_switch = !topology_.is_host(record.node);
  record.pause = pause.time_us != 0;
  records.pauses.push_back(record);
}

void Ns3Recorder::sample_queues() {
  for (std::uint32_t port = 0; port < topology_.ports(); ++port) {
    const std::uint64_t bytes = objects_.ports[port]->QueuedBytes();
    if (bytes == 0) continue;
    const std::uint32_t peer = topology_.node_of(Topology::peer_of(port));
    records.queues.push_back({now_ns(), topology_.node_of(port), peer, bytes});
  }
}

void Ns3Recorder::write_monitor_line() {
  for (const auto& fabric : objects_.switches) {
    if (!fabric) continue;
    std::string ports;
    for (std::uint32_t port = 0; port < fabric->GetNPorts(); ++port) {
      const std::uint32_t bytes = fabric->EgressBytes(port);
      if (bytes < kMonitoredBytes) continue;
      ports += " j " + std::to_string(port + 1) + ' ' + std::to_string(bytes);
      if (port + 1 == fabric->GetNPorts()) continue;
      ports += ' ';
    }
    if (ports.empty()) continue;
    records.qlen_lines.push_back("time " + std::to_string(now_ns()) + ' ' + std::to_string(fabric->GetId()) +
                                 ports);
  }
}

void Ns3Recorder::add_device_totals(NetworkTotals& totals) const {
  for (const auto& port : objects_.ports) {
    const rdma::DeviceCounters counters = port->GetCounters(ns3::Time());
    totals.packet_hops += counters.data_packets + counters.ack_packets;
    totals.ecn_marks += counters.marks;
    totals.drops += counters.losses;
  }
  for (const auto& fabric : objects_.switches) {
    if (!fabric) continue;
    totals.drops += fabric->GetDrops();
    totals.pfc_pauses += fabric->GetPausesSent();
  }
  for (const auto& host : objects_.hosts) {
    if (!host) continue;
    totals.pfc_pauses += host->GetPausesSent();
    totals.bytes_received += host->GetReceivedBytes();
  }
}

std::vector<LinkCounters> Ns3Recorder::link_counters(TimeNs end) const {
  std::vector<LinkCounters> links(topology_.ports());
  for (std::uint32_t port = 0; port < topology_.ports(); ++port) {
    const rdma::DeviceCounters counters =
        objects_.ports[port]->GetCounters(ns3::NanoSeconds(static_cast<std::int64_t>(end)));
    LinkCounters& link = links[port];
    link.src = topology_.node_of(port);
    link.dst = topology_.node_of(Topology::peer_of(port));
    link.rate_bps = topology_.link_of(port).rate_bps;
    link.bytes = counters.bytes;
    link.data_packets = counters.data_packets;
    link.ack_packets = counters.ack_packets;
    link.pfc_frames = counters.pause_frames;
    link.ecn_marks = counters.marks;
    link.pause_ns = to_ns(counters.paused);
    link.peak_queue_bytes = counters.peak_queue_bytes;
    link.busy_ns = to_ns(counters.busy);
  }
  return links;
}

}  // namespace hpcmoe
