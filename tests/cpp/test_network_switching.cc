// PFC, marking and the queue monitors, on a network whose queue is easy to follow.
//
// Host 0 sends at 400 Gbit/s through switch 2 to host 1 at 100 Gbit/s, 500 ns per link, without a
// window. Packet j (1036 bytes, 21 ns) is at the switch at 521 + 21 j; the output starts packet k at
// 521 + 83 k and never runs dry. ACKs come back one by one, 83 ns apart, and never queue.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/mrg32k3a.hh"
#include "network_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

using Log = std::vector<Finished>;
using Pauses = std::vector<PauseSeen>;
constexpr std::uint32_t kWire = 1036;

NetworkParams queueing_params() {
  NetworkParams p = plain_params();
  p.has_window = false;
  return p;
}

// Headroom of the two ports is 3 * 25000 and 3 * 6250 bytes, reserve 4096 each: 16000 bytes remain to
// be shared, so the threshold of an unused port is 2000.
NetworkParams small_buffer() {
  NetworkParams p = queueing_params();
  p.buffer_bytes = 75'000 + 18'750 + 2 * 4096 + 16'000;
  return p;
}

// Packets behind packet k when it starts, of `count` in all.
std::uint32_t left_behind(std::uint32_t k, std::uint32_t count) {
  return std::min(count, 83 * k / 21 + 1) - (k + 1);
}

NetworkParams marking(std::uint64_t kmin, std::uint64_t kmax, double pmax) {
  NetworkParams p = queueing_params();
  p.ecn_enabled = true;
  p.ecn = {{100 * kGbps, kmin, kmax, pmax}, {400 * kGbps, kmin, kmax, pmax}};
  return p;
}

}  // namespace

// Packet 7 arrives at 668 with 6216 bytes accounted, 2120 above the reserve where 1864 are allowed: it
// goes to headroom and the port pauses its neighbour, who learns of it at 668 + 1 + 500 and has packet
// 55 on the wire. The resume waits until nothing above the reserve is left, which is when packet 52
// starts, at 4837, and three are behind it. Packet 56 leaves at 5338.
TEST_CASE("PFC: a pause and its resume") {
  const NetworkRun run(small_buffer(), fast_to_slow(), {{0, 0, 1, 60'000}});
  CHECK(run.pauses() == Pauses{{1169, 0, true}, {5338, 0, false}});
  CHECK(run.link(0, 2).pause_ns == 5338 - 1169);
  CHECK(run.link(2, 0).pfc_frames == 2);
  CHECK(run.link(2, 1).pause_ns == 0);
  CHECK(run.network->totals().pfc_pauses == 1);
  CHECK(run.network->totals().drops == 0);
  // Packet 59 is at the switch at 5338 + 84 + 500, but the output is at packet 56 from 5859 on.
  CHECK(run.finished == Log{{5859 + 4 * 83 + 500 + 504 + 501, 0}});
  CHECK(run.network->broken_invariant() == "");
  const auto& record = run.network->records().pauses.at(0);
  CHECK(record.peer == 2);
  CHECK(record.device == 1);
  CHECK_FALSE(record.is_switch);
}

// With a pause time of zero a pause frame says resume. Of 60 packets, number 56 leaves three behind.
TEST_CASE("PFC: a pause time of zero stops nobody") {
  NetworkParams p = small_buffer();
  p.pause_time_us = 0;
  const NetworkRun run(p, fast_to_slow(), {{0, 0, 1, 60'000}});
  CHECK(run.pauses() == Pauses{{1169, 0, false}, {521 + 83 * 56 + 501, 0, false}});
  CHECK(run.finished == Log{{521 + 83 * 60 + 500 + 504 + 501, 0}});
}

TEST_CASE("PFC: a buffer smaller than its headroom never pauses and never drops") {
  NetworkParams p = queueing_params();
  p.buffer_bytes = 1000;
  const NetworkRun run(p, fast_to_slow(), {{0, 0, 1, 60'000}});
  CHECK(run.pauses().empty());
  CHECK(run.network->totals().drops == 0);
  CHECK(run.finished == Log{{521 + 83 * 60 + 500 + 504 + 501, 0}});
}

TEST_CASE("PFC: without headroom the packet above the threshold is dropped") {
  NetworkParams p = queueing_params();
  p.headroom_factor = 0;
  p.buffer_bytes = 2 * 4096 + 16'000;
  const NetworkRun seven(p, fast_to_slow(), {{0, 0, 1, 7000}});
  CHECK(seven.network->totals().drops == 0);
  CHECK(seven.finished == Log{{521 + 83 * 7 + 500 + 504 + 501, 0}});
  const NetworkRun eight(p, fast_to_slow(), {{0, 0, 1, 8000}});  // packet 7 is the last
  CHECK(eight.network->totals().drops == 1);
  CHECK(eight.finished.empty());
}

// Host 1 sends one packet at 2000; host 0 has it at 3104, paused since 1169. By default the ACK waits
// for the resume at 5338 and delays packet 56 by 1 ns. With priority it leaves at 3104 and waits at the
// switch, behind packet 55, until 5169.
TEST_CASE("PFC: a paused host also holds its ACKs, unless they have priority") {
  const std::vector<Flow> flows = {{0, 0, 1, 60'000}, {2000, 1, 0, 1000}};
  NetworkParams p = small_buffer();
  CHECK(NetworkRun(p, fast_to_slow(), flows).finished == Log{{5339 + 500 + 504, 1}, {7697, 0}});
  p.ack_high_prio = true;
  CHECK(NetworkRun(p, fast_to_slow(), flows).finished == Log{{5169 + 504, 1}, {7696, 0}});
}

// The first data packet is at host 1 at 1042; the pause frame goes before its ACK.
TEST_CASE("PFC: a host pauses its switch as a slow PCIe bus would") {
  NetworkParams p = queueing_params();
  p.nic_total_pause_count = 1;
  const NetworkRun run(p, star(2, 400 * kGbps, 500), {{0, 0, 1, 100'000}});
  CHECK(run.pauses() == Pauses{{1543, 2, true}, {11543, 2, false}});
  // Packet 48 starts at 521 + 48 * 21 = 1529; packets 49 to 99 from 11543 on.
  CHECK(run.finished == Log{{11543 + 51 * 21 + 500 + 501 + 501, 0}});
}

TEST_CASE("marking: above kmax every packet is marked, by what it leaves behind") {
  const NetworkRun run(marking(5000, 5000, 0.2), fast_to_slow(), {{0, 0, 1, 40'000}});
  std::uint32_t expected = 0;
  for (std::uint32_t k = 0; k < 40; ++k) expected += left_behind(k, 40) * kWire > 5000 ? 1 : 0;
  CHECK(expected == 33);  // packets 2 to 34
  CHECK(run.link(2, 1).ecn_marks == expected);
  CHECK(run.network->totals().ecn_marks == expected);
  CHECK(run.finished == Log{{5346, 0}});  // without control a mark changes nothing
}

TEST_CASE("marking: at or below kmin nothing is marked") {
  const NetworkRun run(marking(29 * kWire, 30 * kWire, 1), fast_to_slow(), {{0, 0, 1, 40'000}});
  CHECK(run.link(2, 1).peak_queue_bytes == 30 * kWire);
  CHECK(run.network->totals().ecn_marks == 0);  // packet 10 leaves 29 behind, the most
}

TEST_CASE("marking: off means off") {
  NetworkParams p = marking(0, 0, 1);
  p.ecn_enabled = false;
  CHECK(NetworkRun(p, fast_to_slow(), {{0, 0, 1, 40'000}}).network->totals().ecn_marks == 0);
}

// One draw for each packet that leaves something behind, each from a stream of its own. Setting up a
// network of three nodes without lossy links uses up 9 * 3 + 2 streams.
TEST_CASE("marking: between the thresholds a draw decides") {
  const NetworkRun run(marking(0, 40'000, 0.9), fast_to_slow(), {{0, 0, 1, 40'000}});
  std::uint32_t expected = 0;
  std::uint64_t stream = 29;
  for (std::uint32_t k = 0; k < 40; ++k) {
    const double queued = left_behind(k, 40) * kWire;
    if (queued > 0 && Mrg32k3a(stream++).next() < 0.9 * queued / 40'000) ++expected;
  }
  CHECK(stream == 29 + 38);
  CHECK(expected > 5);
  CHECK(expected < 33);
  CHECK(run.link(2, 1).ecn_marks == expected);
}

TEST_CASE("marking: keyed draws do not depend on what other ports do") {
  NetworkParams p = marking(0, 40'000, 0.9);
  p.ecn_random = kKeyed;
  TopologySpec topology = fast_to_slow();  // and the same once more on the same switch: hosts 3 and 4
  topology.nodes = 5;
  topology.links.push_back({2, 3, 400 * kGbps, 500, 0});
  topology.links.push_back({2, 4, 100 * kGbps, 500, 0});
  const NetworkRun alone(p, topology, {{0, 0, 1, 40'000}});
  const NetworkRun both(p, topology, {{0, 0, 1, 40'000}, {100, 3, 4, 40'000}});
  CHECK(alone.link(2, 1).ecn_marks > 5);
  CHECK(both.link(2, 1).ecn_marks == alone.link(2, 1).ecn_marks);
  CHECK(both.link(2, 4).ecn_marks != 0);
  p.random_seed = 2;
  CHECK(NetworkRun(p, topology, {{0, 0, 1, 40'000}}).link(2, 1).ecn_marks != alone.link(2, 1).ecn_marks);
}

// At 1000 ns, 23 packets have arrived and 6 have started.
TEST_CASE("monitor: lines of the ns-3 program, and samples") {
  NetworkParams p = queueing_params();
  p.qlen_monitor_start_ns = 1000;
  p.queue_sample_ns = 1000;
  const std::vector<Flow> flows = {{0, 0, 1, 40'000}};
  const NetworkRun run(p, fast_to_slow(), flows, 1000);
  CHECK(run.network->records().qlen_lines == std::vector<std::string>{"time 1000 2 j 2 17612"});
  REQUIRE(run.network->records().queues.size() == 1);
  const QueueSample& sample = run.network->records().queues[0];
  CHECK(sample.time_ns == 1000);
  CHECK(sample.src == 2);
  CHECK(sample.dst == 1);
  CHECK(sample.bytes == 17612);
  // Where the last port is not on the line, the line ends in a space.
  const TopologySpec slow_first{3, {2}, {{2, 1, 100 * kGbps, 500, 0}, {2, 0, 400 * kGbps, 500, 0}}};
  const NetworkRun other(p, slow_first, flows, 1000);
  CHECK(other.network->records().qlen_lines == std::vector<std::string>{"time 1000 2 j 1 17612 "});
}
