// Shortest paths for code that is compiled as C++17, which older releases of ns-3 need.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/topology.hh"

namespace hpcmoe {

class Routing;

class Routes {
 public:
  Routes(const Topology& topology, std::uint32_t payload_bytes, bool descending);
  ~Routes();

  std::vector<std::uint32_t> next_hops(std::uint32_t node, std::uint32_t host) const;
  bool reachable(std::uint32_t src, std::uint32_t dst) const;
  TimeNs rtt_ns(std::uint32_t src, std::uint32_t dst) const;
  std::uint64_t bdp_bytes(std::uint32_t src, std::uint32_t dst) const;
  RateBps slowest_bps(std::uint32_t src, std::uint32_t dst) const;
  TimeNs max_rtt_ns() const;
  std::uint64_t max_bdp_bytes() const;
  // Switches that the flow passes; all shortest paths have equally many.
  std::size_t switches_between(std::uint32_t src, std::uint32_t dst) const;

  static std::uint32_t address(std::uint32_t host);

 private:
  std::unique_ptr<const Routing> routing_;
};

}  // namespace hpcmoe
