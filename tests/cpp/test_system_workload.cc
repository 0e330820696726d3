// Issue order, slots, compute and memory models, point-to-point messages, statistics.
#include <doctest/doctest.h>

#include "system_fixture.hh"
#include "workload/statistics.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

SystemParams one_rank() { return make_params({1}, {"ring"}); }

SystemParams roofline_params() {
  SystemParams params = one_rank();
  params.roofline_enabled = true;
  params.peak_perf_tflops = 100;
  return params;
}

Outcome run_pair(const TraceBuilder& rank0, const TraceBuilder& rank1, SystemParams params) {
  return run(params, {rank0.trace(), rank1.trace()});
}
Outcome run_pair(const TraceBuilder& rank0, const TraceBuilder& rank1) {
  return run_pair(rank0, rank1, make_params({2}, {"ring"}));
}

}  // namespace

TEST_CASE("roofline") {
  const TraceBuilder trace = TraceBuilder()
                                 .add(compute_ops(1'000'000'000'000, 1'000'000))
                                 .add(compute_ops(1'000'000, 1'000'000'000), {0})
                                 .add(compute_ops(5, 0), {1})
                                 .add(compute_ops(1'000'000'000, 1'000'000), {1});
  const Outcome outcome = run_all(roofline_params(), trace);
  CHECK(outcome.ends() == all(1, 30'020'000));
  CHECK(outcome.reports[0].modelled_compute_ns == 30'020'000);
  CHECK(outcome.reports[0].gpu_ns == 30'020'000);
}

TEST_CASE("roofline averages are weighted by duration") {
  // 10 ms at the peak (intensity 1e6), 20 ms at the memory roof (intensity 1e-3)
  const TraceBuilder trace = TraceBuilder()
                                 .add(compute_ops(1'000'000'000'000, 1'000'000))
                                 .add(compute_ops(1'000'000, 1'000'000'000), {0});
  const RankReport report = run_all(roofline_params(), trace).reports[0];
  const double weight = 30'000'001;
  CHECK(report.compute_bound_percent == doctest::Approx(100 * 10e6 / weight).epsilon(1e-12));
  CHECK(report.compute_utilization_percent ==
        doctest::Approx(100 * (10e6 + 20e6 * 50e6 / 100e12) / weight).epsilon(1e-12));
  CHECK(report.memory_utilization_percent ==
        doctest::Approx(100 * (10e6 * 100e12 / 1e6 / 50e9 + 20e6) / weight).epsilon(1e-12));
  CHECK(report.operation_intensity == doctest::Approx((10e6 * 1e6 + 20e6 * 1e-3) / weight).epsilon(1e-12));
}

TEST_CASE("replayed durations; none recorded costs 1 ns") {
  CHECK(run_node(one_rank(), compute_us(3)).ends() == all(1, 3000));
  CHECK(run_node(one_rank(), compute_us(0)).ends() == all(1, 1));
  TraceNode cpu = compute_ops(1'000'000'000, 1'000'000);  // CPU nodes never use the roofline
  cpu.is_cpu_op = true;
  cpu.duration_us = 2;
  const RankReport report = run_node(roofline_params(), cpu).reports[0];
  CHECK(report.finish_ns == 2000);
  CHECK(report.cpu_ns == 2000);
  CHECK(report.gpu_ns == 0);
  CHECK(report.modelled_compute_ns == 0);
}

TEST_CASE("replay only: every node takes its recorded duration") {
  SystemParams params = make_params({2}, {"ring"});
  params.replay_only = true;
  TraceNode node = all_reduce();
  node.duration_us = 4;
  const Outcome outcome = run_all(params, TraceBuilder().add(node).add(of_type(NodeType::invalid), {0}));
  CHECK(outcome.ends() == all(2, 4001));
  CHECK(outcome.sent.empty());
  CHECK(outcome.reports[0].comm_ns == 4000);
  CHECK(outcome.reports[0].modelled_compute_ns == 4001);
}

TEST_CASE("broadcast replays and holds the communication slot") {
  TraceNode broadcast = collective(CollectiveType::broadcast);
  broadcast.duration_us = 6;
  const Outcome outcome =
      run_all(make_params({2}, {"ring"}), TraceBuilder().add(broadcast).add(all_reduce()));
  CHECK(outcome.ends() == all(2, 6000 + 53455));
  CHECK(outcome.reports[0].modelled_compute_ns == 0);
  CHECK(outcome.reports[0].comm_ns == 6000 + 53455);
}

TEST_CASE("at a barrier all wait for the last one, then go on in rank order") {
  const TraceNode barrier = collective(CollectiveType::barrier, 0);
  const auto trace = [&](std::uint64_t before_us) {
    return TraceBuilder().add(compute_us(before_us)).add(barrier, {0}).add(send(0, 5, 1000), {1}).trace();
  };
  RankTrace receiver = TraceBuilder()
                           .add(compute_us(2))
                           .add(barrier, {0})
                           .add(recv(1, 5, 1000), {1})
                           .add(recv(2, 5, 1000), {1})
                           .trace();
  const Outcome outcome = run(make_params({3}, {"ring"}), {receiver, trace(9), trace(4)});
  CHECK(outcome.finished == 3);
  REQUIRE(outcome.sent.size() == 2);
  CHECK(outcome.sent[0].time_ns == 9000);
  CHECK(outcome.sent[0].request.src == 1);  // not the order of arrival, in which rank 2 comes first
  CHECK(outcome.sent[1].time_ns == 9000);
  const RankReport& waited = outcome.reports[2];
  CHECK(waited.gpu_ns == 4000);
  CHECK(waited.wall_ns == waited.gpu_ns + waited.comm_ns);  // waiting counts as communication
}

TEST_CASE("a barrier over some dimensions is of the ranks that differ in them alone") {
  TraceNode barrier = collective(CollectiveType::barrier, 0);
  barrier.involved_dims = 0b01;
  const auto trace = [&](std::uint64_t before_us) {
    return TraceBuilder().add(compute_us(before_us)).add(barrier, {0}).add(compute_us(1), {1}).trace();
  };
  SystemParams params = make_params({2, 2}, {"ring", "ring"});
  CHECK(run(params, {trace(3), trace(5), trace(9), trace(2)}).ends() ==
        std::vector<TimeNs>{6000, 6000, 10000, 10000});
  barrier.involved_dims = 0b10;
  CHECK(run(params, {trace(3), trace(5), trace(9), trace(2)}).ends() ==
        std::vector<TimeNs>{10000, 6000, 10000, 6000});
  barrier.involved_dims = 0b11;
  CHECK(run(params, {trace(3), trace(5), trace(9), trace(2)}).ends() ==
        std::vector<TimeNs>{10000, 10000, 10000, 10000});
}

TEST_CASE("a rank that never comes to the barrier is why the others are stuck") {
  const Outcome outcome =
      run_pair(TraceBuilder().add(collective(CollectiveType::barrier, 0)), TraceBuilder().add(compute_us(1)));
  CHECK(outcome.finished == 1);
  REQUIRE(outcome.stuck.size() == 1);
  CHECK(outcome.stuck[0].rank == 0);
  CHECK(outcome.stuck[0].waits_for == "the other ranks at a barrier");
}

TEST_CASE("compute overlaps with communication, and the statistics show it") {
  const TraceBuilder trace = TraceBuilder()
                                 .add(compute_us(5))
                                 .add(all_reduce(), {0})
                                 .add(compute_us(7), {0})
                                 .add(compute_us(3), {1, 2});
  const Outcome outcome = run_all(make_params({8}, {"ring"}), trace);
  CHECK(outcome.ends() == all(8, 106885));
  const RankReport& report = outcome.reports[3];
  CHECK(report.wall_ns == 106885);
  CHECK(report.gpu_ns == 15000);
  CHECK(report.comm_ns == 98885);
  CHECK(report.gpu_ns + report.comm_ns - report.wall_ns == 7000);  // overlap
  CHECK(report.finish_ns - report.modelled_compute_ns == 91885);   // exposed communication
}

TEST_CASE("compute nodes take turns in the order of their ids") {
  const TraceBuilder trace =
      TraceBuilder().add(compute_us(5)).add(all_reduce(), {0}).add(compute_us(7)).add(compute_us(3), {2});
  const Outcome outcome = run_all(make_params({8}, {"ring"}), trace);
  CHECK(outcome.ends() == all(8, 5000 + 98885));
  CHECK(outcome.reports[0].gpu_ns == 15000);
}

TEST_CASE("one collective at a time, in the order of node ids") {
  const Outcome outcome =
      run_all(make_params({2}, {"ring"}), TraceBuilder().add(all_reduce()).add(all_reduce()));
  CHECK(outcome.ends() == all(2, 2 * 53455));
  CHECK(outcome.sent_by(0)[2].request.label.node_id == 1);
}

TEST_CASE("a node that takes no time does not issue what follows it") {
  const TraceBuilder trace =
      TraceBuilder().add(of_type(NodeType::invalid)).add(all_reduce(), {0}).add(compute_us(2));
  const Outcome outcome = run_all(make_params({2}, {"ring"}), trace);
  CHECK(outcome.sent.front().time_ns == 2010);
  CHECK(outcome.ends() == all(2, 2000 + 53455));
  SUBCASE("and stalls the rank when nothing else does") {
    const Outcome stalled =
        run_all(one_rank(), TraceBuilder().add(of_type(NodeType::metadata)).add(compute_us(1), {0}));
    CHECK(stalled.finished == 0);
    REQUIRE(stalled.stuck.size() == 1);
    CHECK(stalled.stuck[0].node_id == 1);
    CHECK(stalled.stuck[0].waits_for.find("a completion on its rank") == 0);
  }
  SUBCASE("nor ends a rank") {
    const Outcome stalled = run_all(one_rank(), TraceBuilder().add(of_type(NodeType::invalid)));
    CHECK(stalled.finished == 0);
    REQUIRE(stalled.stuck.size() == 1);
    CHECK(stalled.stuck[0].waits_for ==
          "a completion on its rank: nodes that take no time do not end a rank");
  }
}

TEST_CASE("send and receive") {
  const auto sends = TraceBuilder().add(send(1, 5, 1000)).add(send(1, 6, 1000));
  const auto receives = TraceBuilder().add(recv(0, 5, 1000)).add(recv(0, 6, 1000));
  const Outcome outcome = run_pair(sends, receives);
  CHECK(outcome.ends() == all(2, 1040));
  CHECK(outcome.sent[1].time_ns == 520);
  CHECK(outcome.reports[0].bytes_sent == 2000);
  CHECK(outcome.reports[1].bytes_received == 2000);
  CHECK(outcome.reports[1].comm_ns == 1040);
  SUBCASE("equal tags: the second receive replaces the first, which is lost") {
    const auto same_tag = TraceBuilder().add(send(1, 5, 1000)).add(send(1, 5, 1000));
    const auto lost = TraceBuilder().add(recv(0, 5, 1000)).add(recv(0, 5, 1000));
    const Outcome stalled = run_pair(same_tag, lost);
    CHECK(stalled.reports[0].finish_ns == 1040);
    CHECK_FALSE(stalled.reports[1].finished);
    REQUIRE(stalled.stuck.size() == 1);
    CHECK(stalled.stuck[0].rank == 1);
    CHECK(stalled.stuck[0].node_id == 0);
    CHECK(stalled.stuck[0].type == NodeType::recv);
    CHECK(stalled.stuck[0].waits_for ==
          "1000 bytes from rank 0 (tag 5), but a later receive with this source and tag took its place");
  }
  SUBCASE("messages match by byte count, not one by one") {
    const auto one = TraceBuilder().add(recv(0, 5, 1500)).add(recv(0, 5, 500), {0});
    const auto two = TraceBuilder().add(send(1, 5, 1000)).add(send(1, 5, 1000));
    CHECK(run_pair(two, one).ends() == all(2, 1040));
  }
  SUBCASE("a receive that is late completes at once") {
    const auto late = TraceBuilder().add(compute_us(2)).add(recv(0, 5, 1000), {0}).add(recv(0, 6, 1000), {1});
    CHECK(run_pair(sends, late).ends() == std::vector<TimeNs>{1040, 2000});
  }
  SUBCASE("late receives issued side by side") {
    const auto late = TraceBuilder()
                          .add(compute_us(2))
                          .add(recv(0, 5, 1000), {0})
                          .add(recv(0, 6, 1000), {0})
                          .add(compute_us(1), {1, 2});
    CHECK(run_pair(sends, late).ends() == std::vector<TimeNs>{1040, 3000});
  }
  SUBCASE("the sender learns of the end before the receiver") {
    const auto first = TraceBuilder().add(send(1, 5, 1000)).add(send(1, 6, 1000), {0}).add(recv(1, 7, 1000));
    const auto answer = TraceBuilder().add(recv(0, 5, 1000)).add(send(0, 7, 1000), {0}).add(recv(0, 6, 1000));
    const Outcome order = run_pair(first, answer);
    REQUIRE(order.sent.size() == 3);
    CHECK(order.sent[1].time_ns == order.sent[2].time_ns);
    CHECK(order.sent[1].request.src == 0);
  }
  SUBCASE("a long chain of late receives") {
    TraceBuilder chain;
    chain.add(compute_us(2));
    for (std::uint32_t i = 0; i < 200'000; ++i) chain.add(recv(0, 5, 1), {i});
    const auto big = TraceBuilder().add(send(1, 5, 200'000));
    CHECK(run_pair(big, chain).ends() == std::vector<TimeNs>{4500, 4500});
    chain.add(compute_us(1), {200'000});
    CHECK(run_pair(TraceBuilder().add(send(1, 5, 2000)).add(send(1, 5, 198'000), {0}), chain).ends() ==
          std::vector<TimeNs>{5000, 6000});
  }
  SUBCASE("a receive without a sender") {
    const Outcome stalled = run_pair(TraceBuilder().add(compute_us(1)), receives);
    REQUIRE(stalled.stuck.size() == 2);
    CHECK(stalled.stuck[1].node_id == 1);
    CHECK(stalled.stuck[1].waits_for == "1000 bytes from rank 0 (tag 6)");
  }
  SUBCASE("rendezvous") {
    SystemParams params = make_params({2}, {"ring"});
    params.rendezvous_protocol = true;
    CHECK(run_pair(sends, receives, params).ends() == all(2, 663 + 520 + 520));
  }
}

TEST_CASE("remote memory") {
  SystemParams params = make_params({4}, {"ring"});
  params.remote_mem_latency_ns = 100;
  params.remote_mem_bw_gbps = 10;
  const TraceNode load = of_type(NodeType::mem_load, 2009);  // 100 + 200 ns
  params.memory_type = 1;
  CHECK(run_node(params, load).ends() == all(4, 300));
  params.memory_type = 2;
  params.memory_npus_per_node = 2;
  CHECK(run_node(params, load).ends() == std::vector<TimeNs>{300, 600, 300, 600});
  params.memory_type = 3;
  const Outcome outcome = run_node(params, load);
  CHECK(outcome.ends() == std::vector<TimeNs>{300, 600, 900, 1200});
  CHECK(outcome.reports[3].remote_mem_ns == 1200);  // waiting counts
  const auto twice = TraceBuilder().add(load).add(compute_us(2), {0}).add(load, {1});
  CHECK(run_all(params, twice).ends() == std::vector<TimeNs>{2600, 2900, 3200, 3500});
}

TEST_CASE("length of a union of intervals") {
  CHECK(union_length({}) == 0);
  CHECK(union_length({{5, 5}}) == 0);
  CHECK(union_length({{10, 20}, {0, 5}}) == 15);
  CHECK(union_length({{0, 5}, {5, 9}}) == 9);
  CHECK(union_length({{0, 10}, {2, 3}, {8, 12}, {11, 11}}) == 12);
}

TEST_CASE("a stalled collective names what it waits for") {
  const Outcome outcome = run_pair(TraceBuilder().add(all_reduce(2000)), TraceBuilder().add(compute_us(1)));
  CHECK(outcome.finished == 1);
  CHECK(outcome.pending_timers == 0);
  REQUIRE(outcome.stuck.size() == 1);
  CHECK(outcome.stuck[0].rank == 0);
  CHECK(outcome.stuck[0].type == NodeType::coll);
  CHECK(outcome.stuck[0].waits_for == "1000 bytes from rank 1 (tag 500000000): chunk 0 in phase 1 of 1");
}
