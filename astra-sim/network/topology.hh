// The physical network: hosts, switches, links, and the device ports that links make.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hh"

namespace hpcmoe {

struct LinkSpec {
  std::uint32_t src = 0, dst = 0;
  RateBps rate_bps = 0;
  TimeNs delay_ns = 0;
  double error_rate = 0;
};

// Nodes are 0 .. nodes - 1; those that are no switch are hosts and never forward.
struct TopologySpec {
  std::uint32_t nodes = 0;
  std::vector<std::uint32_t> switches;
  std::vector<LinkSpec> links;
};

// Link l makes port 2l at its src and port 2l + 1 at its dst; a port's peer is its index XOR 1.
// Devices of a node are numbered from 1 in link order (0 is a loopback), as ns-3 numbers them.
class Topology {
 public:
  explicit Topology(TopologySpec spec);  // throws InputError

  const TopologySpec& spec() const { return spec_; }
  std::uint32_t nodes() const { return spec_.nodes; }
  // Hosts in ascending order of id; tables over hosts are indexed by the position in this list.
  const std::vector<std::uint32_t>& hosts() const { return hosts_; }
  std::uint32_t host_index(std::uint32_t node) const { return host_index_[node]; }
  std::uint32_t ports() const { return static_cast<std::uint32_t>(spec_.links.size() * 2); }
  bool is_host(std::uint32_t node) const { return host_index_[node] != kNotAHost; }

  const LinkSpec& link_of(std::uint32_t port) const { return spec_.links[port / 2]; }
  std::uint32_t node_of(std::uint32_t port) const {
    const LinkSpec& link = spec_.links[port / 2];
    return port % 2 == 0 ? link.src : link.dst;
  }
  static std::uint32_t peer_of(std::uint32_t port) { return port ^ 1; }
  std::uint32_t device_index(std::uint32_t port) const { return device_index_[port]; }
  const std::vector<std::uint32_t>& ports_of(std::uint32_t node) const { return node_ports_[node]; }

 private:
  static constexpr std::uint32_t kNotAHost = ~std::uint32_t{0};
  void check() const;
  void number_hosts();

  TopologySpec spec_;
  std::vector<std::uint32_t> hosts_;
  std::vector<std::uint32_t> host_index_;
  std::vector<std::uint32_t> device_index_;
  std::vector<std::vector<std::uint32_t>> node_ports_;
};

}  // namespace hpcmoe
