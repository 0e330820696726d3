// Device numbering, shortest paths, equal-cost choice and what a pair's path implies.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "network/routing.hh"
#include "network_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

constexpr std::uint32_t kPayload = 1000;

// Nodes that the next hops of `node` towards `host` lead to, in the order that hashes index.
std::vector<std::uint32_t> next_nodes(const Topology& topology, const Routing& routing, std::uint32_t node,
                                      std::uint32_t host) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t port : routing.next_hops(node, host)) {
    nodes.push_back(topology.node_of(Topology::peer_of(port)));
  }
  return nodes;
}

std::vector<std::uint32_t> walk_nodes(const Topology& topology, const Routing& routing, const FlowKey& key) {
  std::vector<std::uint32_t> ports, nodes;
  REQUIRE(routing.walk(key, ports));
  for (std::uint32_t port : ports) nodes.push_back(topology.node_of(Topology::peer_of(port)));
  return nodes;
}

// Four pods of two leaves and two spines, four cores; 100 Gbit/s and 1 us below, 400 Gbit/s and 2 us
// above: hosts 0-15, leaves 16-23 with two hosts each, spines 24-31, cores 32-35.
TopologySpec three_tiers() {
  TopologySpec spec{36, {}, {}};
  for (std::uint32_t s = 16; s < 36; ++s) spec.switches.push_back(s);
  for (std::uint32_t h = 0; h < 16; ++h) spec.links.push_back({h, 16 + h / 2, 100 * kGbps, 1000, 0});
  for (std::uint32_t pod = 0; pod < 4; ++pod) {
    for (std::uint32_t leaf = 0; leaf < 2; ++leaf) {
      for (std::uint32_t spine = 0; spine < 2; ++spine) {
        spec.links.push_back({16 + pod * 2 + leaf, 24 + pod * 2 + spine, 100 * kGbps, 1000, 0});
      }
    }
    for (std::uint32_t spine = 0; spine < 2; ++spine) {
      for (std::uint32_t core = 0; core < 2; ++core) {
        spec.links.push_back({24 + pod * 2 + spine, 32 + spine * 2 + core, 400 * kGbps, 2000, 0});
      }
    }
  }
  return spec;
}

bool refuses(const TopologySpec& spec, const std::string& what) {
  try {
    Topology topology(spec);
  } catch (const InputError& error) {
    return std::string(error.what()).find(what) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("topology: devices are numbered from 1 in link order") {
  const Topology topology(leaf_spine());
  CHECK(topology.hosts().size() == 16);
  CHECK(topology.is_host(15));
  CHECK_FALSE(topology.is_host(16));
  CHECK(topology.ports() == 64);
  const auto& leaf = topology.ports_of(17);  // hosts 4-7, then spines 20-23
  REQUIRE(leaf.size() == 8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    CHECK(topology.device_index(leaf[i]) == i + 1);
    CHECK(topology.node_of(leaf[i]) == 17);
    CHECK(topology.node_of(Topology::peer_of(leaf[i])) == (i < 4 ? 4 + i : 16 + i));
  }
}

TEST_CASE("topology: hosts need not come first") {
  const Topology topology({3, {0}, {{0, 1, kGbps, 1, 0}, {0, 2, kGbps, 1, 0}}});
  CHECK(topology.hosts() == std::vector<std::uint32_t>{1, 2});
  CHECK(topology.host_index(2) == 1);
}

TEST_CASE("topology: faults are refused with what is wrong") {
  CHECK(refuses({0, {}, {}}, "node count 0"));
  CHECK(refuses({2, {2}, {}}, "switch id 2"));
  CHECK(refuses({2, {0, 1}, {}}, "every node is a switch"));
  CHECK(refuses({2, {}, {{0, 2, kGbps, 1, 0}}}, "link 0: node id"));
  CHECK(refuses({2, {}, {{0, 1, kGbps, 1, 0}, {1, 1, kGbps, 1, 0}}}, "link 1: connects node 1 to itself"));
  CHECK(refuses({2, {}, {{0, 1, 0, 1, 0}}}, "rate is zero"));
  CHECK(refuses({2, {}, {{0, 1, kGbps, 5'000'000'000, 0}}}, "delay"));
  CHECK(refuses({2, {}, {{0, 1, kGbps, 1, 1.5}}}, "error rate"));
}

TEST_CASE("routing: order of equal-cost next hops follows the switch ids") {
  const Topology topology(leaf_spine());
  const Routing descending(topology, kPayload, true), ascending(topology, kPayload, false);
  using Nodes = std::vector<std::uint32_t>;
  CHECK(next_nodes(topology, descending, 16, 4) == Nodes{23, 22, 21, 20});
  CHECK(next_nodes(topology, ascending, 16, 4) == Nodes{20, 21, 22, 23});
  CHECK(next_nodes(topology, descending, 16, 2) == Nodes{2});
  CHECK(next_nodes(topology, descending, 22, 9) == Nodes{18});
  CHECK(next_nodes(topology, descending, 0, 15) == Nodes{16});
}

TEST_CASE("routing: a path is a host port, then one port per switch, chosen by the switch's hash") {
  const Topology topology(leaf_spine());
  const Routing routing(topology, kPayload, true);
  using Nodes = std::vector<std::uint32_t>;
  // 4162883797 % 4 = 1, 1767552784 % 4 = 0, 1922962854 % 4 = 2 in the list 23, 22, 21, 20.
  CHECK(walk_nodes(topology, routing, {0, 4, 10000, 100}) == Nodes{16, 22, 17, 4});
  CHECK(walk_nodes(topology, routing, {0, 4, 10001, 100}) == Nodes{16, 23, 17, 4});
  CHECK(walk_nodes(topology, routing, {0, 15, 10000, 100}) == Nodes{16, 21, 19, 15});
  // The ACK is hashed by itself: 2622064476 % 4 = 0.
  CHECK(walk_nodes(topology, routing, {4, 0, 100, 10000}) == Nodes{17, 23, 16, 0});
  const Routing ascending(topology, kPayload, false);
  CHECK(walk_nodes(topology, ascending, {0, 4, 10000, 100}) == Nodes{16, 21, 17, 4});
}

TEST_CASE("routing: a host with two links chooses its port by hash") {
  // Hosts 0 and 1, switches 2 and 3, everything joined; both ways are two hops.
  const Topology topology(
      {4, {2, 3}, {{0, 2, kGbps, 1, 0}, {0, 3, kGbps, 1, 0}, {1, 2, kGbps, 1, 0}, {1, 3, kGbps, 1, 0}}});
  const Routing routing(topology, kPayload, true);
  using Nodes = std::vector<std::uint32_t>;
  REQUIRE(next_nodes(topology, routing, 0, 1) == Nodes{3, 2});
  // 3887419479 % 2 = 1 for the data, 2689491449 % 2 = 1 for its ACK.
  CHECK(walk_nodes(topology, routing, {0, 1, 10000, 100}) == Nodes{2, 1});
  CHECK(walk_nodes(topology, routing, {1, 0, 100, 10000}) == Nodes{2, 0});
}

TEST_CASE("routing: hops count, not rates") {
  // A slow path of two hops beside a fast one of three.
  const Topology topology({5,
                           {2, 3, 4},
                           {{0, 2, kGbps, 9000, 0},
                            {1, 2, kGbps, 9000, 0},
                            {0, 3, 400 * kGbps, 1, 0},
                            {3, 4, 400 * kGbps, 1, 0},
                            {4, 1, 400 * kGbps, 1, 0}}});
  const Routing routing(topology, kPayload, true);
  CHECK(next_nodes(topology, routing, 0, 1) == std::vector<std::uint32_t>{2});
  CHECK(routing.pair(0, 1).bw_bps == kGbps);
}

TEST_CASE("routing: hosts do not forward") {
  const Topology topology({3, {}, {{0, 1, kGbps, 10, 0}, {1, 2, kGbps, 10, 0}}});
  const Routing routing(topology, kPayload, true);
  CHECK(routing.reachable(0, 1));
  CHECK_FALSE(routing.reachable(0, 2));
  CHECK(routing.next_hops(0, 2).empty());
  std::vector<std::uint32_t> ports;
  CHECK_FALSE(routing.walk({0, 2, 10000, 100}, ports));
}

TEST_CASE("routing: of parallel links the last one is used") {
  const Topology topology({2, {}, {{0, 1, kGbps, 10, 0}, {0, 1, 2 * kGbps, 20, 0}}});
  const Routing routing(topology, kPayload, true);
  REQUIRE(routing.next_hops(0, 1).size() == 1);
  CHECK(topology.device_index(routing.next_hops(0, 1)[0]) == 2);
  CHECK(routing.pair(0, 1).delay_ns == 20);
}

// Two links of 1 us and 80 ns per payload: 2 * 2000 + 2 * 80 ns; 4160 ns * 100 Gbit/s = 52000 bytes.
TEST_CASE("routing: round trip and bandwidth-delay product of a pair") {
  const Topology topology(leaf_spine());
  const Routing routing(topology, kPayload, true);
  CHECK(routing.pair(0, 1).delay_ns == 2000);
  CHECK(routing.pair(0, 1).tx_ns == 160);
  CHECK(routing.rtt_ns(0, 1) == 4160);
  CHECK(routing.bdp_bytes(0, 1) == 52000);
  CHECK(routing.rtt_ns(0, 4) == 8320);
  CHECK(routing.bdp_bytes(0, 4) == 104000);
  CHECK(routing.max_switch_hops() == 3);
}

TEST_CASE("routing: largest round trips that the ns-3 program prints") {
  const auto check = [](const TopologySpec& spec, TimeNs rtt, std::uint64_t bdp) {
    const Topology topology(spec);
    const Routing routing(topology, kPayload, true);
    CHECK(routing.max_rtt_ns() == rtt);
    CHECK(routing.max_bdp_bytes() == bdp);
  };
  check(star(8, 400 * kGbps, 500), 2040, 102000);
  check(leaf_spine(), 8320, 104000);
  check(three_tiers(), 16360, 204500);
}

TEST_CASE("routing: the slowest link of a path sets its bandwidth, the payload its serialization") {
  const Topology topology(fast_to_slow());
  const Routing routing(topology, 1500, true);
  CHECK(routing.pair(0, 1).bw_bps == 100 * kGbps);
  CHECK(routing.pair(0, 1).tx_ns == 30 + 120);
  CHECK(routing.rtt_ns(0, 1) == 2150);
  CHECK(routing.bdp_bytes(0, 1) == 2150 * 100 / 8);
  CHECK(routing.bdp_bytes(0, 1) == routing.bdp_bytes(1, 0));
}
