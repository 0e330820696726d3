#include "backends/ns3/routes.hh"

#include "network/routing.hh"

namespace hpcmoe {

Routes::Routes(const Topology& topology, std::uint32_t payload_bytes, bool descending)
    : routing_(std::make_unique<const Routing>(topology, payload_bytes, descending)) {}
Routes::~Routes() = default;

std::vector<std::uint32_t> Routes::next_hops(std::uint32_t node, std::uint32_t host) const {
  const auto hops = routing_->next_hops(node, host);
  return {hops.begin(), hops.end()};
}

bool Routes::reachable(std::uint32_t src, std::uint32_t dst) const { return routing_->reachable(src, dst); }
TimeNs Routes::rtt_ns(std::uint32_t src, std::uint32_t dst) const { return routing_->rtt_ns(src, dst); }
std::uint64_t Routes::bdp_bytes(std::uint32_t src, std::uint32_t dst) const {
  return routing_->bdp_bytes(src, dst);
}
RateBps Routes::slowest_bps(std::uint32_t src, std::uint32_t dst) const {
  return routing_->pair(src, dst).bw_bps;
}
TimeNs Routes::max_rtt_ns() const { return routing_->max_rtt_ns(); }
std::uint64_t Routes::max_bdp_bytes() const { return routing_->max_bdp_bytes(); }

std::size_t Routes::switches_between(std::uint32_t src, std::uint32_t dst) const {
  std::vector<std::uint32_t> ports;
  routing_->walk({src, dst, 0, 0}, ports);
  return ports.size() - 1;
}

std::uint32_t Routes::address(std::uint32_t host) { return host_address(host); }

}  // namespace hpcmoe
