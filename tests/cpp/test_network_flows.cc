// Tiny runs on the packet engine: every time is worked out by hand from the rules of the model.
//
// At 400 Gbit/s a full data packet (1000 + 36 bytes) takes 21 ns, an ACK (48 bytes) 1 ns; at
// 100 Gbit/s they take 83 ns and 4 ns.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "network_fixture.hh"
#include "simulation.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

using Log = std::vector<Finished>;

// Hosts 0 and 1 joined directly, 100 Gbit/s and 1 us. With this error rate the second packet that
// arrives on the link is lost and none of the next 23: random numbers of the link are 0.460, 0.057,
// 0.094, ... with all but the second above 0.06 up to the 25th.
TopologySpec pair_of_hosts(double error_rate = 0) { return {2, {}, {{0, 1, 100 * kGbps, 1000, error_rate}}}; }
constexpr double kLosesSecond = 0.06;

NetworkParams without_window() {
  NetworkParams p = plain_params();
  p.has_window = false;
  return p;
}

bool refuses_flow(const TopologySpec& topology, const Flow& flow) {
  try {
    NetworkRun run(plain_params(), topology, {flow});
  } catch (const InputError&) {
    return true;
  }
  return false;
}

}  // namespace

// Both hosts send 0-21, 21-42, 42-63 ns. Packets arrive at the switch in pairs from 521 on and leave
// alternately, 21 ns each, until 647; ACKs come back one by one.
TEST_CASE("flows: two senders to one receiver take turns") {
  const NetworkRun run(plain_params(), star(8, 400 * kGbps, 500), {{0, 0, 2, 3000}, {0, 1, 2, 3000}});
  CHECK(run.finished == Log{{2128, 0}, {2149, 1}});
  CHECK(run.status == RunStatus::drained);
  const NetworkTotals totals = run.network->totals();
  CHECK(totals.packet_hops == 24);
  CHECK(totals.flows_finished == 2);
  CHECK(totals.bytes_sent == 6000);
  CHECK(totals.bytes_received == 6000);
  CHECK(run.network->broken_invariant() == "");
}

TEST_CASE("flows: one packet costs its serialization and delay per link, and its ACK's") {
  const auto one = [](const TopologySpec& topology, std::uint64_t bytes) {
    return NetworkRun(plain_params(), topology, {{0, 0, 1, bytes}}).finished.at(0).time_ns;
  };
  CHECK(one(star(2, 400 * kGbps, 500), 1) == 2 * (1 + 500) + 2 * (1 + 500));
  CHECK(one(star(2, 400 * kGbps, 500), 1000) == 2 * (21 + 500) + 2 * (1 + 500));
  CHECK(one(pair_of_hosts(), 1000) == 83 + 1000 + 4 + 1000);
  // The second packet, 37 bytes, is there 3 ns after the first: its ACK waits 1 ns for the first's.
  CHECK(one(pair_of_hosts(), 1001) == 83 + 1000 + 4 + 4 + 1000);
  CHECK(one({2, {}, {{0, 1, 2400 * kGbps, 100, 0}}}, 1000) == 3 + 100 + 0 + 100);  // the ACK: 0.16 ns
}

TEST_CASE("flows: a megabyte without control and with HPCC") {
  NetworkParams p = plain_params();
  CHECK(NetworkRun(p, star(8, 400 * kGbps, 500), {{0, 0, 1, 1'000'000}}).finished == Log{{23023, 0}});
  p.cc_mode = kHpcc;
  CHECK(NetworkRun(p, star(8, 400 * kGbps, 500), {{0, 0, 1, 1'000'000}}).finished == Log{{24667, 0}});
}

TEST_CASE("flows: two of one host share its link packet by packet") {
  const NetworkRun run(plain_params(), star(3, 400 * kGbps, 500), {{0, 0, 1, 3000}, {0, 0, 2, 3000}});
  // Starts at 0, 42, 84 and at 21, 63, 105; from a start to the ACK 2 * 521 + 2 * 501.
  CHECK(run.finished == Log{{84 + 2044, 0}, {105 + 2044, 1}});
}

TEST_CASE("flows: a longer flow goes on alone when the shorter one is done") {
  const NetworkRun run(plain_params(), star(3, 400 * kGbps, 500),
                       {{0, 0, 1, 1000}, {0, 0, 2, 4000}, {0, 0, 1, 2000}});
  // Order of sending: A B C B C B B.
  CHECK(run.finished == Log{{0 + 2044, 0}, {84 + 2044, 2}, {126 + 2044, 1}});
}

TEST_CASE("flows: a later flow starts at its time") {
  const NetworkRun run(plain_params(), star(2, 400 * kGbps, 500), {{0, 0, 1, 1000}, {777, 1, 0, 1000}});
  CHECK(run.finished == Log{{2044, 0}, {777 + 2044, 1}});
  const auto& records = run.network->records().flows;
  REQUIRE(records.size() == 2);
  CHECK(records[1].start_ns == 777);
  CHECK(records[1].fct_ns == 2044);
  CHECK(records[1].src == 1);
}

// Ideal time: round trip of the pair plus (size + 48 per packet) at the slowest link.
TEST_CASE("flows: the standalone time of the record") {
  const NetworkRun run(plain_params(), star(2, 400 * kGbps, 500), {{0, 0, 1, 1500}});
  CHECK(run.network->records().flows.at(0).standalone_ns == 2040 + (1500 + 2 * 48) * 8 / 400);
}

TEST_CASE("flows: source ports count per ordered pair, from 10000") {
  NetworkParams p = plain_params();
  const std::vector<Flow> flows = {{0, 0, 1, 10}, {0, 0, 1, 10}, {0, 1, 0, 10}, {5000, 0, 1, 10}};
  const auto ports = [&] {
    const NetworkRun run(p, star(2, 400 * kGbps, 500), flows);
    std::vector<std::uint32_t> seen;
    for (const FlowRecord& r : run.network->records().flows) seen.push_back(r.sport);
    return seen;
  };
  CHECK(ports() == std::vector<std::uint32_t>{10000, 10000, 10001, 10002});
  p.restart_counters_when_idle = true;  // at 5000 ns the network has been empty
  CHECK(ports() == std::vector<std::uint32_t>{10000, 10000, 10001, 10000});
}

// The switch's output to host 1 starts packet k at 521 + 83 k and never runs dry, window or not: the
// last ACK is back at 521 + 83 * 40 + 500 + 504 + 501. The window of 2100 ns * 100 Gbit/s = 26250
// bytes lets 27 packets out; the 27th finds 7 gone, the 40th without window finds 10 gone.
TEST_CASE("flows: the window bounds what is in flight") {
  const std::vector<Flow> flows = {{0, 0, 1, 40'000}};
  const NetworkRun with(plain_params(), fast_to_slow(), flows);
  CHECK(with.finished == Log{{5346, 0}});
  CHECK(with.link(2, 1).peak_queue_bytes == 20 * 1036);
  const NetworkRun without(without_window(), fast_to_slow(), flows);
  CHECK(without.finished == Log{{5346, 0}});
  CHECK(without.link(2, 1).peak_queue_bytes == 30 * 1036);
  NetworkParams p = plain_params();
  p.global_t = true;  // the largest pair is this pair
  CHECK(NetworkRun(p, fast_to_slow(), flows).link(2, 1).peak_queue_bytes == 20 * 1036);
}

// Without delay the window is the 3000 bytes that the link carries during one serialization (61 ns).
TEST_CASE("flows: a window of one packet sends one packet per round trip") {
  NetworkParams p = plain_params();
  p.payload_bytes = 3000;
  const TopologySpec topology{2, {}, {{0, 1, 400 * kGbps, 0, 0}}};
  const std::vector<Flow> flows = {{0, 0, 1, 12'000}};
  CHECK(NetworkRun(p, topology, flows).finished == Log{{4 * (61 + 1), 0}});
  p.has_window = false;
  CHECK(NetworkRun(p, topology, flows).finished == Log{{4 * 61 + 1, 0}});
}

TEST_CASE("flows: link counters") {
  const NetworkRun run(without_window(), fast_to_slow(), {{0, 0, 1, 40'000}});
  CHECK(run.link(0, 2).data_packets == 40);
  CHECK(run.link(0, 2).bytes == 40 * 1036);
  CHECK(run.link(0, 2).busy_ns == 40 * 21);
  CHECK(run.link(2, 1).busy_ns == 40 * 83);
  CHECK(run.link(1, 2).ack_packets == 40);
  CHECK(run.link(1, 2).bytes == 40 * 48);
  CHECK(run.link(1, 2).busy_ns == 40 * 4);
  CHECK(run.link(2, 0).busy_ns == 40 * 1);
  CHECK(run.link(2, 0).data_packets == 0);
  CHECK(run.link(0, 2).pause_ns == 0);
}

TEST_CASE("acknowledgements: up to the interval only at multiples of the chunk") {
  NetworkParams p = plain_params();
  p.l2_ack_interval_bytes = 3000;
  p.l2_chunk_bytes = 2000;
  const NetworkRun run(p, pair_of_hosts(), {{0, 0, 1, 6000}});
  CHECK(run.link(1, 0).ack_packets == 5);  // 2000, 3000, 4000, 5000, 6000
  CHECK(run.finished.size() == 1);
}

TEST_CASE("acknowledgements: a flow below the interval that ends off a chunk never completes") {
  NetworkParams p = plain_params();
  p.l2_ack_interval_bytes = 3000;
  p.l2_chunk_bytes = 2000;
  const NetworkRun run(p, pair_of_hosts(), {{0, 0, 1, 1000}});
  CHECK(run.finished.empty());
  CHECK(run.status == RunStatus::drained);
  CHECK(run.link(1, 0).ack_packets == 0);
}

// Packet 1 is lost at 1166; packet 2 at 1249 asks for it; the request is back at 2253; both are sent
// again and arrive at 3336 and 3419; the last ACK takes 1004.
TEST_CASE("loss: everything from the missing byte on is sent again") {
  const NetworkRun run(plain_params(), pair_of_hosts(kLosesSecond), {{0, 0, 1, 3000}});
  CHECK(run.finished == Log{{4423, 0}});
  CHECK(run.network->totals().drops == 1);
  CHECK(run.network->totals().bytes_received == 3000);
  CHECK(run.link(0, 1).data_packets == 5);
}

// Packets 2 to 5 all arrive out of order; the first asks, the others keep silent.
TEST_CASE("loss: a missing byte is asked for once") {
  const NetworkRun run(plain_params(), pair_of_hosts(kLosesSecond), {{0, 0, 1, 6000}});
  CHECK(run.finished == Log{{2253 + 5 * 83 + 1000 + 1004, 0}});
  CHECK(run.link(0, 1).data_packets == 6 + 5);
  CHECK(run.link(1, 0).ack_packets == 1 + 1 + 5);
}

// Packet 2 finds byte 1000 missing and sets the receiver back to 0; packet 3 then finds byte 0
// missing, which has not been asked for. The second request, at 2336, interrupts the first repetition
// after one packet.
TEST_CASE("loss: back to zero repeats whole chunks") {
  NetworkParams p = plain_params();
  p.l2_back_to_zero = true;
  p.l2_chunk_bytes = 2000;
  const NetworkRun run(p, pair_of_hosts(kLosesSecond), {{0, 0, 1, 4000}});
  CHECK(run.finished == Log{{2336 + 4 * 83 + 1000 + 1004, 0}});
  CHECK(run.link(0, 1).data_packets == 4 + 1 + 4);
  CHECK(run.network->totals().bytes_received == 4000);
}

TEST_CASE("loss: with back to zero a flow that ends off a chunk never completes") {
  NetworkParams p = plain_params();
  p.l2_back_to_zero = true;
  p.l2_chunk_bytes = 2000;
  const NetworkRun run(p, pair_of_hosts(), {{0, 0, 1, 3000}});
  CHECK(run.finished.empty());
  CHECK(run.status == RunStatus::drained);
}

TEST_CASE("loss: a lost last packet is never repaired, and the message names the flow") {
  const NetworkRun run(plain_params(), pair_of_hosts(kLosesSecond), {{0, 0, 1, 2000}});
  CHECK(run.finished.empty());
  CHECK(run.status == RunStatus::drained);
  const std::string text = run.network->describe_unfinished(8);
  CHECK(text.find("0 -> 1 port 10000: 1000 of 2000 bytes") != std::string::npos);

  FlowSimulation simulation(plain_params(), pair_of_hosts(kLosesSecond), {{0, 0, 1, 2000}}, kNever);
  CHECK_THROWS_AS(simulation.run(1000), SimulationError);
  FlowSimulation limited(plain_params(), pair_of_hosts(kLosesSecond), {{0, 0, 1, 2000}}, 100'000);
  CHECK(limited.run(1000).finished);
  CHECK(limited.totals().flows_finished == 0);
}

TEST_CASE("loss: the common error rate applies to links that have none of their own") {
  NetworkParams p = plain_params();
  p.error_rate_per_link = kLosesSecond;
  CHECK(NetworkRun(p, pair_of_hosts(), {{0, 0, 1, 3000}}).finished == Log{{4423, 0}});
}

TEST_CASE("clock: a run can be cut into slices anywhere") {
  const std::vector<Flow> flows = {{0, 0, 2, 30'000}, {0, 1, 2, 50'000}, {900, 2, 0, 7'000}};
  const NetworkRun whole(plain_params(), star(3, 400 * kGbps, 500), flows);
  for (TimeNs step : {1, 37, 5000}) {
    NetworkRun cut(plain_params(), star(3, 400 * kGbps, 500), flows, 0);
    CHECK(cut.status == RunStatus::reached);
    TimeNs until = 0;
    while (cut.network->run(3, until) != RunStatus::drained) until += step;
    CHECK(cut.finished == whole.finished);
  }
}

TEST_CASE("clock: two networks of one process do not touch each other") {
  const std::vector<Flow> flows = {{0, 0, 2, 30'000}, {0, 1, 2, 50'000}};
  NetworkParams hpcc = plain_params();
  hpcc.cc_mode = kHpcc;
  const NetworkRun a(plain_params(), star(3, 400 * kGbps, 500), flows);
  const NetworkRun b(hpcc, fast_to_slow(), {{0, 0, 1, 90'000}});
  NetworkRun x(plain_params(), star(3, 400 * kGbps, 500), flows, 0);
  NetworkRun y(hpcc, fast_to_slow(), {{0, 0, 1, 90'000}}, 0);
  bool more = true;
  while (more) {
    const RunStatus first = x.network->run(5, kNever);
    more = y.network->run(7, kNever) == RunStatus::running || first == RunStatus::running;
  }
  CHECK(x.finished == a.finished);
  CHECK(y.finished == b.finished);
}

TEST_CASE("local flows: no feedback, and INT bytes only where the profile keeps them") {
  NetworkParams p = plain_params();
  p.cc_mode = kHpcc;
  p.local_pairs.assign(64, 1);
  const std::vector<Flow> flows = {{0, 0, 1, 1'000'000}};
  // 1078 bytes take 22 ns, the ACK of 76 bytes 2 ns.
  CHECK(NetworkRun(p, star(8, 400 * kGbps, 500), flows).finished ==
        Log{{999 * 22 + 2 * (22 + 500) + 2 * (2 + 500), 0}});
  p.local_int = false;
  CHECK(NetworkRun(p, star(8, 400 * kGbps, 500), flows).finished == Log{{23023, 0}});
}

TEST_CASE("local flows: may keep the pair's window where others have none") {
  NetworkParams p = without_window();
  p.local_window = true;
  CHECK(NetworkRun(p, fast_to_slow(), {{0, 0, 1, 40'000}}).link(2, 1).peak_queue_bytes == 30 * 1036);
  p.local_pairs.assign(4, 1);
  CHECK(NetworkRun(p, fast_to_slow(), {{0, 0, 1, 40'000}}).link(2, 1).peak_queue_bytes == 20 * 1036);
}

// The least rate, which marks drive the rate to, exceeds the link's so far that the scaled window passes
// 2^32: by nothing in the first run, by one kilobyte in the second. Neither may become small by that.
TEST_CASE("flows: a window scaled beyond 32 bits does not bind") {
  const auto finished = [](std::uint64_t scaled_window) {
    NetworkParams p = plain_params();
    p.cc_mode = kDctcp;
    p.ecn_enabled = true;
    p.ecn = {{kGbps, 1000, 2000, 1}};
    const TopologySpec topology = star(3, kGbps, 10'000);
    const std::uint64_t window = NativeNetwork::create(p, topology)->max_bdp_bytes();
    p.min_rate_bps = (scaled_window * kGbps + window - 1) / window;
    const NetworkRun run(p, topology, {{0, 0, 2, 400'000}, {0, 1, 2, 400'000}});
    CHECK(run.network->totals().ecn_marks > 0);
    return run.finished;
  };
  const Log exactly = finished(1ULL << 32);
  REQUIRE(exactly.size() == 2);
  CHECK(finished((1ULL << 32) + 1000) == exactly);
}

// More than fits a second-level cache, so the engine fetches ahead.
TEST_CASE("flows: twenty thousand at once all arrive") {
  constexpr std::uint32_t kHosts = 145;
  std::vector<Flow> flows;
  for (std::uint32_t src = 0; src < kHosts; ++src) {
    for (std::uint32_t step = 1; step < kHosts; ++step)
      flows.push_back({0, src, (src + step) % kHosts, 1500});
  }
  for (const std::uint32_t mode : {std::uint32_t{12}, std::uint32_t{kHpcc}}) {
    NetworkParams p = plain_params();
    p.cc_mode = mode;
    const NetworkRun run(p, star(kHosts, 400 * kGbps, 500), flows);
    CHECK(run.status == RunStatus::drained);
    const NetworkTotals totals = run.network->totals();
    CHECK(totals.flows_finished == flows.size());
    CHECK(totals.packet_hops == flows.size() * 2 * 4);  // two packets, each two links there, its ACK two back
    CHECK(totals.bytes_received == flows.size() * 1500);
    CHECK(totals.drops == 0);
    CHECK(run.network->broken_invariant() == "");
    // A receiver's link is busy with 144 messages; the last ACK crosses two links.
    CHECK(run.finished.back().time_ns > 144 * (21 + 11) + 2 * 521);
  }
}

TEST_CASE("input: flows that cannot be are refused") {
  const TopologySpec topology = star(2, 400 * kGbps, 500);
  CHECK(refuses_flow(topology, {0, 0, 1, 0}));
  CHECK(refuses_flow(topology, {0, 0, 1, 1ULL << 31}));
  CHECK(refuses_flow(topology, {0, 0, 0, 10}));
  CHECK(refuses_flow(topology, {0, 0, 2, 10}));  // a switch
  CHECK(refuses_flow(topology, {0, 0, 99, 10}));
  CHECK(refuses_flow({3, {}, {{0, 1, kGbps, 1, 0}, {1, 2, kGbps, 1, 0}}}, {0, 0, 2, 10}));
  CHECK_FALSE(refuses_flow(topology, {0, 0, 1, 10}));
}

TEST_CASE("input: parameters that cannot be are refused") {
  const auto refuses = [](auto change) {
    NetworkParams p = plain_params();
    change(p);
    try {
      NativeNetwork::create(p, star(2, 400 * kGbps, 500));
    } catch (const InputError&) {
      return true;
    }
    return false;
  };
  CHECK_FALSE(refuses([](NetworkParams&) {}));
  CHECK(refuses([](NetworkParams& p) { p.payload_bytes = 0; }));
  CHECK(refuses([](NetworkParams& p) { p.payload_bytes = 65001; }));
  CHECK(refuses([](NetworkParams& p) { p.l2_ack_interval_bytes = 0; }));
  CHECK(refuses([](NetworkParams& p) { p.int_multi = 0; }));
  CHECK(refuses([](NetworkParams& p) { p.cc_mode = kPint; }));
  CHECK(refuses([](NetworkParams& p) { p.ecn_enabled = true; }));  // and no threshold for 400 Gbit/s
  CHECK(refuses([](NetworkParams& p) {
    p.cc_mode = kDcqcn;
    p.rp_timer_us = 0;
  }));
  CHECK(refuses([](NetworkParams& p) {
    p.cc_mode = kHpcc;
    p.int_max_hops = 0;
  }));
}
