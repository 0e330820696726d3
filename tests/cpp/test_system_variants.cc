// Chunks, queues, several dimensions, groups, staggered starts. End times were measured on
// upstream's system layer over the same ideal network (8 ranks unless said).
#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "system/collective_engine.hh"
#include "system_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

SystemParams ring8(std::uint64_t splits = 1, std::uint64_t active = 1, std::uint32_t queues = 1) {
  SystemParams params = make_params({8}, {"ring"});
  params.preferred_dataset_splits = splits;
  params.active_chunks_per_dimension = active;
  params.num_queues_per_dim = queues;
  return params;
}

std::vector<TimeNs> ends_of(const SystemParams& params, const TraceNode& node = all_reduce()) {
  return run_node(params, node).ends();
}

using Message = std::tuple<TimeNs, std::uint32_t, std::uint64_t>;  // time, destination, bytes

std::vector<Message> messages_of(const Outcome& outcome, std::uint32_t rank) {
  std::vector<Message> messages;
  for (const SentMessage& m : outcome.sent_by(rank)) {
    messages.emplace_back(m.time_ns, m.request.dst, m.request.bytes);
  }
  return messages;
}

}  // namespace

TEST_CASE("chunks share the queues of a dimension") {
  CHECK(ends_of(ring8(4)) == all(8, 120300));
  CHECK(ends_of(ring8(4, 2)) == all(8, 60150));
  SUBCASE("two queues help an all-reduce only without the bandwidth-aware form") {
    CHECK(ends_of(ring8(4, 1, 2)) == all(8, 120300));
    SystemParams baseline = ring8(4, 1, 2);
    baseline.collective_optimization = 0;
    CHECK(ends_of(baseline) == all(8, 60150));
    CHECK(ends_of(ring8(4, 1, 2), collective(CollectiveType::all_gather)) == all(8, 80548));
  }
}

TEST_CASE("delays of the endpoint and of reductions") {
  SystemParams slow_endpoint = ring8();
  slow_endpoint.endpoint_delay_ns = 100;
  CHECK(ends_of(slow_endpoint) == all(8, 100235));
  SystemParams free_reductions = ring8();
  free_reductions.local_mem_bw_gbps = 0;
  CHECK(ends_of(free_reductions) == all(8, 43844));
}

TEST_CASE("reduction delay truncates its quotient, exact multiples included") {
  CHECK(reduction_delay_ns(131072, 50) == 3 * 2621);
  CHECK(reduction_delay_ns(750, 50) == 42);  // 14.999...
  CHECK(reduction_delay_ns(750, 0) == 0);
}

TEST_CASE("rendezvous adds a control message each way") {
  SystemParams params = ring8();
  params.rendezvous_protocol = true;
  const Outcome outcome = run_node(params, all_reduce());
  CHECK(outcome.ends() == all(8, 108167));
  CHECK(outcome.reports[0].bytes_sent == 14 * (131072 + 8192));
}

TEST_CASE("shared bus") {
  SystemParams params = ring8();
  params.model_shared_bus = true;
  params.bus_latency = 5;
  params.bus_overhead = 2;
  params.bus_gap = 3;
  params.bus_gap_per_byte = 0.01;
  const Outcome outcome = run_node(params, all_reduce());
  CHECK(outcome.ends() == all(8, 164655));
  std::vector<TimeNs> times;
  for (const SentMessage& message : outcome.sent_by(0)) times.push_back(message.time_ns);
  REQUIRE(times.size() == 14);
  CHECK(std::vector<TimeNs>(times.begin(), times.begin() + 3) == std::vector<TimeNs>{1826, 18836, 35846});
  CHECK(std::vector<TimeNs>(times.begin() + 6, times.begin() + 10) ==
        std::vector<TimeNs>{103886, 119070, 124017, 130790});
  CHECK(times.back() == 157882);
}

TEST_CASE("double binary tree: chunks and collectives alternate between the trees") {
  SystemParams params = make_params({8}, {"double_binary_tree"});
  SUBCASE("two chunks at a time") {
    params.preferred_dataset_splits = 2;
    params.active_chunks_per_dimension = 2;
    CHECK(ends_of(params) == all(8, 223255));
  }
  SUBCASE("one chunk at a time") {
    params.preferred_dataset_splits = 2;
    const std::vector<TimeNs> ends = ends_of(params);
    // leaves of the min tree are odd; depth below the root (rank 0) for the others
    CHECK(ends == std::vector<TimeNs>{339620, 435515, 424520, 435515, 382070, 435515, 424520, 435515});
  }
  SUBCASE("two collectives in a row") {
    const Outcome outcome = run_all(params, TraceBuilder().add(all_reduce()).add(all_reduce(), {0}));
    CHECK(outcome.ends() ==
          std::vector<TimeNs>{675172, 865441, 843960, 865441, 759566, 865441, 843960, 865441});
    const auto sent = messages_of(outcome, 7);
    REQUIRE(sent.size() == 2);
    CHECK(sent[0] == Message{253192, 3, kMiB});
    CHECK(sent[1] == Message{253202, 6, kMiB});
  }
}

TEST_CASE("several dimensions") {
  const auto ends = [](std::vector<std::uint32_t> dims, std::vector<std::string> names) {
    return ends_of(make_params(dims, names));
  };
  CHECK(ends({4, 2}, {"ring", "ring"}) == all(8, 95845));
  CHECK(ends({2, 4}, {"ring", "ring"}) == all(8, 95850));
  CHECK(ends({4, 2}, {"direct", "ring"}) == all(8, 41385));
  CHECK(ends({4, 2}, {"halving_doubling", "ring"}) == all(8, 63375));
  CHECK(ends({4, 2}, {"one_ring"}) == all(8, 98885));
  CHECK(ends({4, 2}, {"one_direct"}) == all(8, 14135));
  CHECK(ends({4, 2}, {"ring"}) == all(8, 81700));  // dimension 0 only
  SystemParams params = make_params({4, 2}, {"ring", "ring"});
  CHECK(ends_of(params, collective(CollectiveType::all_gather)) == all(8, 148860));
  CHECK(ends_of(params, collective(CollectiveType::reduce_scatter)) == all(8, 75448));
  CHECK(ends_of(params, collective(CollectiveType::all_to_all)) == all(8, 45527));
  params.collective_optimization = 0;
  CHECK(ends_of(params) == all(8, 135155));
}

TEST_CASE("several dimensions: trees in every phase") {
  std::vector<TimeNs> ends = ends_of(make_params({4, 2}, {"double_binary_tree", "double_binary_tree"}));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  CHECK(ends == std::vector<TimeNs>{506394, 527875, 590788, 612269, 633750});
}

TEST_CASE("several dimensions: reduce-scatter, all-reduce, all-gather against the ring's direction") {
  const Outcome outcome = run_node(make_params({4, 2}, {"ring", "ring"}), all_reduce());
  const std::vector<Message> expected{{10, 1, 262144},    {21488, 1, 262144}, {42966, 1, 262144},
                                      {64454, 4, 131072}, {75448, 4, 131072}, {78589, 3, 262144},
                                      {84341, 3, 262144}, {90093, 3, 262144}};
  CHECK(messages_of(outcome, 0) == expected);
}

TEST_CASE("several dimensions: two chunks at a time") {
  SystemParams params = make_params({4, 2}, {"ring", "ring"});
  params.preferred_dataset_splits = 2;
  params.active_chunks_per_dimension = 2;
  CHECK(ends_of(params) == all(8, 49975));
  params.num_queues_per_dim = 2;
  CHECK(ends_of(params) == all(8, 82967));
}

TEST_CASE("involved_dims picks dimensions") {
  const SystemParams params = make_params({4, 2}, {"ring", "ring"});
  TraceNode node = all_reduce();
  node.involved_dims = 0b01;
  CHECK(ends_of(params, node) == all(8, 81700));
  node.involved_dims = 0b10;
  CHECK(ends_of(params, node) == all(8, 53455));
}

namespace {

Outcome run_groups(const std::string& name, CollectiveType type, TimeNs endpoint_delay_ns = 10) {
  SystemParams params = make_params({8}, {name});
  params.endpoint_delay_ns = endpoint_delay_ns;
  params.groups = {{1, {0, 1, 2, 3}}, {2, {4, 5, 6, 7}}};
  std::vector<RankTrace> traces;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    traces.push_back(TraceBuilder().add(in_group(collective(type), rank < 4 ? 1 : 2)).trace());
  }
  return run(params, traces);
}

}  // namespace

TEST_CASE("communicator groups") {
  const auto ar = CollectiveType::all_reduce, ag = CollectiveType::all_gather;
  const auto rs = CollectiveType::reduce_scatter, a2a = CollectiveType::all_to_all;
  const std::vector<std::tuple<std::string, CollectiveType, TimeNs>> cases{{"ring", ar, 81700},
                                                                           {"ring", ag, 64453},
                                                                           {"ring", rs, 64444},
                                                                           {"ring", a2a, 34522},
                                                                           {"direct", ar, 42966},
                                                                           {"direct", ag, 21491},
                                                                           {"direct", rs, 21488},
                                                                           {"direct", a2a, 5762},
                                                                           {"direct2", ar, 85922},
                                                                           {"direct2", ag, 42972},
                                                                           {"direct2", rs, 42966},
                                                                           {"direct2", a2a, 11514},
                                                                           {"halving_doubling", ar, 49230},
                                                                           {"halving_doubling", ag, 63944},
                                                                           {"halving_doubling", rs, 32483}};
  for (const auto& [name, type, end] : cases) {
    CAPTURE(name);
    CAPTURE(static_cast<int>(type));
    CHECK(run_groups(name, type).ends() == all(8, end));
    CHECK(run_groups(name, type, 1000).ends() == all(8, end));  // the delay is fixed in groups
  }
}

TEST_CASE("groups: more than one configured entry means ring, listed order is ring order") {
  SystemParams params = make_params({4, 2}, {"direct", "direct"});
  params.groups = {{3, {6, 0, 4, 2}}, {4, {1, 3, 5, 7}}};
  std::vector<RankTrace> traces;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    traces.push_back(TraceBuilder().add(in_group(all_reduce(), rank % 2 == 0 ? 3 : 4)).trace());
  }
  const Outcome outcome = run(params, traces);
  CHECK(outcome.ends() == all(8, 81700));
  CHECK(outcome.sent_by(6).front().request.dst == 0);
  CHECK(outcome.sent_by(4).front().request.dst == 2);
  CHECK(outcome.sent_by(2).front().request.dst == 6);
}

TEST_CASE("a group of all ranks runs on the logical dimensions") {
  SystemParams params = make_params({4, 2}, {"ring", "ring"});
  params.groups = {{1, {7, 6, 5, 4, 3, 2, 1, 0}}};
  CHECK(ends_of(params, in_group(all_reduce(), 1)) == all(8, 95845));
}

TEST_CASE("chunk sizes") {
  const auto sizes = [](CollectiveType op, std::uint64_t bytes, std::uint64_t splits) {
    const ChunkSizes chunks = chunk_sizes(op, bytes, splits, 8);
    return std::pair(chunks.bytes, chunks.count);
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  const auto ar = CollectiveType::all_reduce, ag = CollectiveType::all_gather;
  CHECK(sizes(ar, 1000003, 4) == Pair{250000, 5});
  CHECK(sizes(ag, 10, 4) == Pair{2, 5});
  CHECK(sizes(ar, 10, 4) == Pair{8, 4});
  CHECK(sizes(ar, 0, 4) == Pair{8, 4});
  CHECK(sizes(ag, 3, 4) == Pair{0, 0});
  CHECK(sizes(ag, 4, 4) == Pair{1, 4});
  CHECK(sizes(ar, 32, 4) == Pair{8, 4});
}

TEST_CASE("odd sizes are moved in full chunks") {
  const Outcome outcome = run_node(ring8(4), all_reduce(1000003));
  CHECK(outcome.ends() == all(8, 145125));
  CHECK(outcome.reports[5].bytes_sent == 2187500);
  for (const std::uint64_t bytes : {3u, 0u}) {
    const Outcome tiny = run_node(ring8(4), all_reduce(bytes));
    CHECK(tiny.ends() == all(8, 28600));
    CHECK(tiny.reports[5].bytes_sent == 56);
    CHECK(tiny.sent_by(5).size() == 56);
  }
}

TEST_CASE("starting at different times") {
  const auto ends = [](const std::string& name, std::int64_t first_us, std::int64_t step_us) {
    std::vector<RankTrace> traces;
    for (std::int64_t rank = 0; rank < 8; ++rank) {
      const auto start_us = static_cast<std::uint64_t>(first_us + step_us * rank);
      traces.push_back(TraceBuilder().add(compute_us(start_us)).add(all_reduce(), {0}).trace());
    }
    return run(make_params({8}, {name}), traces).ends();
  };
  using Ends = std::vector<TimeNs>;
  CHECK(ends("ring", 1, 5) == Ends{119280, 122401, 125522, 128643, 131764, 134885, 113038, 116159});
  CHECK(ends("direct", 1, 5) == Ends{50135, 50135, 50135, 50135, 50135, 50135, 47014, 50135});
  CHECK(ends("direct2", 1, 5) == Ends{70522, 70522, 70532, 68663, 68673, 68673, 68673, 68673});
  CHECK(ends("halving_doubling", 1, 5) == Ends{85492, 90492, 91234, 96234, 88613, 93613, 94355, 99355});
  CHECK(ends("double_binary_tree", 1, 5) ==
        Ends{474461, 452980, 474461, 368586, 474461, 452980, 474461, 284192});
  CHECK(ends("double_binary_tree", 36, -5) ==
        Ends{479461, 457980, 479461, 373586, 479461, 457980, 479461, 289192});
}
