#include "network/topology.hh"

#include <string>

namespace hpcmoe {
namespace {

constexpr std::uint32_t kMaxNodes = 65536;        // node ids are part of 32-bit addresses
constexpr TimeNs kMaxDelayNs = 4'000'000'000ULL;  // port records keep delays in 32 bits

[[noreturn]] void refuse(std::size_t link, const std::string& what) {
  throw InputError("topology: link " + std::to_string(link) + ": " + what);
}

}  // namespace

Topology::Topology(TopologySpec spec) : spec_(std::move(spec)) {
  check();
  number_hosts();
  device_index_.resize(ports());
  node_ports_.resize(nodes());
  for (std::uint32_t port = 0; port < ports(); ++port) {
    auto& of_node = node_ports_[node_of(port)];
    of_node.push_back(port);
    device_index_[port] = static_cast<std::uint32_t>(of_node.size());
  }
}

void Topology::check() const {
  if (spec_.nodes == 0 || spec_.nodes > kMaxNodes) {
    throw InputError("topology: node count " + std::to_string(spec_.nodes) + " is not within 1 .. " +
                     std::to_string(kMaxNodes));
  }
  for (std::uint32_t id : spec_.switches) {
    if (id >= spec_.nodes) {
      throw InputError("topology: switch id " + std::to_string(id) + " is not within 0 .. " +
                       std::to_string(spec_.nodes - 1));
    }
  }
  for (std::size_t l = 0; l < spec_.links.size(); ++l) {
    const LinkSpec& link = spec_.links[l];
    if (link.src >= spec_.nodes || link.dst >= spec_.nodes) refuse(l, "node id out of range");
    if (link.src == link.dst) refuse(l, "connects node " + std::to_string(link.src) + " to itself");
    if (link.rate_bps == 0) refuse(l, "rate is zero");
    if (link.delay_ns > kMaxDelayNs) refuse(l, "delay is above 4 s");
    if (!(link.error_rate >= 0 && link.error_rate <= 1)) refuse(l, "error rate is not within 0 .. 1");
  }
}

void Topology::number_hosts() {
  host_index_.assign(nodes(), 0);
  for (std::uint32_t id : spec_.switches) host_index_[id] = kNotAHost;
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    if (host_index_[node] == kNotAHost) continue;
    host_index_[node] = static_cast<std::uint32_t>(hosts_.size());
    hosts_.push_back(node);
  }
  if (hosts_.empty()) throw InputError("topology: every node is a switch; at least one host is needed");
}

}  // namespace hpcmoe
