// Shortest paths by hop count, equal-cost choice by hash, and what a host pair's path implies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/topology.hh"

namespace hpcmoe {

struct PairPath {
  TimeNs delay_ns = 0;  // sum of link delays, one way
  TimeNs tx_ns = 0;     // sum of serialization times of one payload, one way
  RateBps bw_bps = 0;   // slowest link; 0: unreachable
};

// The four fields that choose among equal-cost next hops.
struct FlowKey {
  std::uint32_t src = 0, dst = 0;
  std::uint16_t sport = 0, dport = 0;
};

class Routing {
 public:
  // `descending`: order in which switches at equal distance are visited by node id. It decides
  // which equal-cost hop a hash value means.
  Routing(const Topology& topology, std::uint32_t payload_bytes, bool descending);

  // Output ports of `node` on shortest paths to `host`, in the order that hashes index.
  std::span<const std::uint32_t> next_hops(std::uint32_t node, std::uint32_t host) const {
    const std::size_t row = std::size_t{node} * hosts_ + topology_->host_index(host);
    return {hops_.data() + begin_[row], hops_.data() + begin_[row + 1]};
  }
  const PairPath& pair(std::uint32_t src, std::uint32_t dst) const {
    return pairs_[std::size_t{topology_->host_index(src)} * hosts_ + topology_->host_index(dst)];
  }
  bool reachable(std::uint32_t src, std::uint32_t dst) const {
    return src == dst || pair(src, dst).bw_bps != 0;
  }

  TimeNs rtt_ns(std::uint32_t src, std::uint32_t dst) const;
  std::uint64_t bdp_bytes(std::uint32_t src, std::uint32_t dst) const;
  TimeNs max_rtt_ns() const { return max_rtt_; }
  std::uint64_t max_bdp_bytes() const { return max_bdp_; }
  std::uint32_t max_switch_hops() const { return max_switch_hops_; }

  // Appends the output ports that the flow takes, host port first, then one per switch. Returns
  // false when there is no path.
  bool walk(const FlowKey& key, std::vector<std::uint32_t>& ports) const;

 private:
  struct Neighbor {
    std::uint32_t node, port;  // port of this node that leads there
  };
  void search_from(std::uint32_t host, const std::vector<std::vector<Neighbor>>& neighbors,
                   std::uint32_t payload_bytes, std::vector<std::vector<std::uint32_t>>& hops);
  void find_maxima();

  const Topology* topology_;
  std::size_t hosts_;
  std::vector<std::size_t> begin_;
  std::vector<std::uint32_t> hops_;
  std::vector<PairPath> pairs_;
  TimeNs max_rtt_ = 0;
  std::uint64_t max_bdp_ = 0;
  std::uint32_t max_switch_hops_ = 0;
};

std::uint32_t host_address(std::uint32_t node);

}  // namespace hpcmoe
