#include "network/routing.hh"

#include <algorithm>

#include "core/hash.hh"

namespace hpcmoe {
namespace {

constexpr std::uint32_t kHostHashSeed = 0x8BADF00D;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint32_t kUnseen = ~std::uint32_t{0};

}  // namespace

std::uint32_t host_address(std::uint32_t node) {
  return 0x0b000001U + (node / 256) * 65536 + (node % 256) * 256;
}

Routing::Routing(const Topology& topology, std::uint32_t payload_bytes, bool descending)
    : topology_(&topology), hosts_(topology.hosts().size()) {
  // One entry per neighbour; of parallel links the last one is used.
  std::vector<std::vector<Neighbor>> neighbors(topology.nodes());
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    auto& list = neighbors[node];
    for (std::uint32_t port : topology.ports_of(node)) {
      const std::uint32_t to = topology.node_of(Topology::peer_of(port));
      auto same = std::find_if(list.begin(), list.end(), [&](auto& n) { return n.node == to; });
      if (same != list.end()) {
        same->port = port;
      } else {
        list.push_back({to, port});
      }
    }
    std::sort(list.begin(), list.end(), [&](const Neighbor& a, const Neighbor& b) {
      const bool host_a = topology.is_host(a.node), host_b = topology.is_host(b.node);
      if (host_a != host_b) return host_a;
      return descending ? a.node > b.node : a.node < b.node;
    });
  }
  pairs_.resize(hosts_ * hosts_);
  std::vector<std::vector<std::uint32_t>> hops(topology.nodes() * hosts_);
  for (std::uint32_t host : topology.hosts()) {
    search_from(host, neighbors, payload_bytes, hops);
  }
  begin_.reserve(hops.size() + 1);
  begin_.push_back(0);
  for (const auto& list : hops) {
    hops_.insert(hops_.end(), list.begin(), list.end());
    begin_.push_back(hops_.size());
  }
  find_maxima();
}

// Breadth first from `host`; only switches are expanded further. Path quantities of a node come
// from the neighbour that finds it first.
void Routing::search_from(std::uint32_t host, const std::vector<std::vector<Neighbor>>& neighbors,
                          std::uint32_t payload_bytes, std::vector<std::vector<std::uint32_t>>& hops) {
  std::vector<std::uint32_t> distance(topology_->nodes(), kUnseen);
  std::vector<PairPath> path(topology_->nodes());
  std::vector<std::uint32_t> queue{host};
  distance[host] = 0;
  const std::size_t column = topology_->host_index(host);
  path[host].bw_bps = ~RateBps{0};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const std::uint32_t x = queue[at];
    for (const Neighbor& n : neighbors[x]) {
      const LinkSpec& link = topology_->link_of(n.port);
      if (distance[n.node] == kUnseen) {
        distance[n.node] = distance[x] + 1;
        path[n.node] = {path[x].delay_ns + link.delay_ns,
                        path[x].tx_ns + payload_bytes * kNsPerSecond * 8 / link.rate_bps,
                        std::min(path[x].bw_bps, link.rate_bps)};
        if (!topology_->is_host(n.node)) queue.push_back(n.node);
      }
      if (distance[n.node] == distance[x] + 1) {
        hops[std::size_t{n.node} * hosts_ + column].push_back(Topology::peer_of(n.port));
      }
    }
  }
  for (std::uint32_t src : topology_->hosts()) {
    if (src == host || distance[src] == kUnseen) continue;
    pairs_[topology_->host_index(src) * hosts_ + column] = path[src];
    max_switch_hops_ = std::max(max_switch_hops_, distance[src] - 1);
  }
}

TimeNs Routing::rtt_ns(std::uint32_t src, std::uint32_t dst) const {
  const PairPath& p = pair(src, dst);
  return p.delay_ns * 2 + p.tx_ns;
}

std::uint64_t Routing::bdp_bytes(std::uint32_t src, std::uint32_t dst) const {
  return rtt_ns(src, dst) * pair(src, dst).bw_bps / kNsPerSecond / 8;
}

void Routing::find_maxima() {
  for (std::uint32_t src : topology_->hosts()) {
    for (std::uint32_t dst : topology_->hosts()) {
      if (pair(src, dst).bw_bps == 0) continue;
      max_rtt_ = std::max(max_rtt_, rtt_ns(src, dst));
      max_bdp_ = std::max(max_bdp_, bdp_bytes(src, dst));
    }
  }
}

bool Routing::walk(const FlowKey& key, std::vector<std::uint32_t>& ports) const {
  const std::uint32_t w0 = host_address(key.src), w1 = host_address(key.dst);
  const std::uint32_t w2 = key.sport | (std::uint32_t{key.dport} << 16);
  std::uint32_t node = key.src;
  while (node != key.dst) {
    const auto choices = next_hops(node, key.dst);
    if (choices.empty()) return false;
    const std::uint32_t seed = topology_->is_host(node) ? kHostHashSeed : node;
    const std::uint32_t port =
        choices.size() == 1 ? choices[0] : choices[murmur3_words(w0, w1, w2, seed) % choices.size()];
    ports.push_back(port);
    node = topology_->node_of(Topology::peer_of(port));
  }
  return true;
}

}  // namespace hpcmoe
