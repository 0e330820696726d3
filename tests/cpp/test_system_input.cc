// Inputs that could never end, or that upstream would trip over, are refused before the run.
#include <doctest/doctest.h>

#include "system_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

std::string refusal(const SystemParams& params, const std::vector<RankTrace>& traces) {
  try {
    run(params, traces);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// The same node on every rank.
std::string refusal(const SystemParams& params, const TraceNode& node) {
  return refusal(params, std::vector<RankTrace>(rank_count(params), TraceBuilder().add(node).trace()));
}

SystemParams ring(std::uint32_t ranks = 4) { return make_params({ranks}, {"ring"}); }

// `change` applied to otherwise good parameters.
template <class Change>
std::string refusal_of(Change change) {
  SystemParams params = ring();
  const std::vector<RankTrace> traces(4, TraceBuilder().add(all_reduce()).trace());
  change(params);
  return refusal(params, traces);
}

}  // namespace

TEST_CASE("parameters out of range") {
  using P = SystemParams;
  CHECK(refusal_of([](P&) {}) == "accepted");
  CHECK(refusal_of([](P& p) { p.preferred_dataset_splits = 0; }) ==
        "preferred_dataset_splits = 0; allowed: at least 1");
  CHECK(refusal_of([](P& p) { p.active_chunks_per_dimension = 0; }) ==
        "active_chunks_per_dimension = 0; allowed: at least 1");
  CHECK(refusal_of([](P& p) { p.num_queues_per_dim = 0; }) == "num_queues_per_dim = 0; allowed: at least 1");
  CHECK(refusal_of([](P& p) { p.scheduling_policy = 3; }) == "scheduling_policy = 3; allowed: 0 to 2");
  CHECK(refusal_of([](P& p) { p.collective_optimization = 2; }) ==
        "collective_optimization = 2; allowed: 0 to 1");
  CHECK(refusal_of([](P& p) { p.memory_type = 4; }) == "memory_type = 4; allowed: 0 to 3");
  CHECK(refusal_of([](P& p) { p.memory_type = 2; }) == "memory_npus_per_node = 0; allowed: at least 1");
  CHECK(refusal_of([](P& p) { p.local_mem_bw_gbps = -1; }) ==
        "local_mem_bw_gbps = -1.000000; allowed: a finite number >= 0");
}

TEST_CASE("dimensions, implementations, groups") {
  using P = SystemParams;
  const std::string dims = "; allowed: 1 to 32 dimensions with the number of ranks, 4, as their product";
  CHECK(refusal_of([](P& p) { p.logical_dims = {2, 3}; }) == "logical_dims = [2,3]" + dims);
  CHECK(refusal_of([](P& p) { p.logical_dims = {4, 0}; }) == "logical_dims = [4,0]" + dims);
  CHECK(refusal_of([](P& p) { p.logical_dims = {}; }) == "logical_dims = []" + dims);
  CHECK(refusal_of([](P& p) { use(p, {"ring", "ring"}); }) ==
        "all_reduce = 2 entries; allowed: at most one per logical dimension, 1");
  CHECK(refusal_of([](P& p) { use(p, {"direct0"}); }) ==
        "all_reduce = direct with window 0; allowed: a window of at least 1");
  CHECK(refusal_of([](P& p) {
          use(p, {"one_double_binary_tree"});
        }).find("all_reduce = double binary tree") == 0);
  CHECK(refusal_of([](P& p) {
          p.logical_dims = {2, 2};
          use(p, {"ring", "one_ring"});
        }) ==
        "all_reduce = a one-dimensional form after the first entry; allowed: it alone, as the first entry");
  CHECK(refusal_of([](P& p) { p.groups = {{0, {1, 2}}}; }) ==
        "communicator group 0 = [1,2]; allowed: ids of at least 1 (0 stands for all ranks)");
  for (const std::vector<std::uint32_t>& members : {std::vector<std::uint32_t>{}, {1, 1}, {3, 4}}) {
    CHECK(refusal_of([&](P& p) {
            p.groups = {{5, members}};
          }).find("; allowed: one or more distinct ranks below 4") != std::string::npos);
  }
}

TEST_CASE("collectives that could not end") {
  const auto gather = [](std::uint64_t bytes) { return collective(CollectiveType::all_gather, bytes); };
  SystemParams params = ring();
  params.preferred_dataset_splits = 4;
  const std::string sizes =
      "; allowed: for an all-gather, 1 to 2147483647 bytes in each of the 4 splits "
      "(preferred_dataset_splits)";
  CHECK(refusal(params, gather(0)) == "rank 0, node 0: comm_size = 0" + sizes);
  CHECK(refusal(params, gather(3)) == "rank 0, node 0: comm_size = 3" + sizes);
  CHECK(refusal(params, gather(4)) == "accepted");

  const std::string power = "; allowed: a power of two ranks for this algorithm";
  CHECK(refusal(make_params({6}, {"halving_doubling"}), all_reduce()) ==
        "rank 0, node 0: comm_type = all_reduce with halving_doubling on 6 ranks" + power);
  CHECK(refusal(make_params({6}, {"double_binary_tree"}), all_reduce()) ==
        "rank 0, node 0: comm_type = all_reduce with double_binary_tree on 6 ranks" + power);
  CHECK(refusal(make_params({4}, {"halving_doubling"}), collective(CollectiveType::all_to_all)) ==
        "rank 0, node 0: comm_type = all_to_all with halving_doubling; allowed: ring, direct for all_to_all");

  TraceNode nowhere = all_reduce();
  nowhere.involved_dims = 0;
  const std::string two = "; allowed: a collective of two or more ranks";
  CHECK(refusal(ring(), nowhere) == "rank 0, node 0: involved_dim = 0 (mask)" + two);
  CHECK(refusal(ring(1), all_reduce()) == "rank 0, node 0: involved_dim = 15 (mask)" + two);
}

TEST_CASE("collectives: missing implementation, unknown type, too large messages") {
  SystemParams params = ring();
  params.all_to_all.clear();
  CHECK(refusal(params, all_reduce()) == "accepted");
  CHECK(refusal(params, collective(CollectiveType::all_to_all)) ==
        "rank 0, node 0: comm_type = all_to_all; allowed: a collective with a configured implementation");
  CHECK(refusal(params, collective(static_cast<CollectiveType>(8))) ==
        "rank 0, node 0: comm_type = 8; allowed: 0, 2, 5, 6, 7, 9");
  CHECK(refusal(params, collective(CollectiveType::barrier, 0)) == "accepted");
  CHECK(refusal(ring(), all_reduce((std::uint64_t{1} << 33) - 4)) == "accepted");
  CHECK(
      refusal(ring(), all_reduce(std::uint64_t{1} << 33)) ==
      "rank 0, node 0: comm_size = 8589934592 (a message of 2147483648 bytes); allowed: messages of at most "
      "2147483647 bytes");
}

TEST_CASE("groups of nodes") {
  CHECK(refusal(ring(), in_group(collective(CollectiveType::barrier), 3)) ==
        "rank 0, node 0: pg_name = 3; allowed: 0: a barrier names dimensions, not a group");
  SystemParams params = make_params({4}, {"double_binary_tree"});
  params.groups = {{1, {0, 1}}, {2, {0}}, {3, {0, 1, 2, 3}}};
  const std::vector<RankTrace> in_pair(4, TraceBuilder().add(in_group(all_reduce(), 1)).trace());
  CHECK(refusal(params, in_pair) ==
        "rank 0, node 0: comm_type = all_reduce with double_binary_tree on a communicator group; allowed: "
        "ring, "
        "direct, halving_doubling on groups smaller than the world");
  use(params, {"ring"});
  CHECK(refusal(params, in_pair) ==
        "rank 2, node 0: pg_name = 1; allowed: a group that this rank belongs to");
  CHECK(refusal(params, in_group(all_reduce(), 2)) ==
        "rank 0, node 0: pg_name = 2; allowed: a collective of two or more ranks");
  CHECK(refusal(params, in_group(all_reduce(), 3)) == "accepted");
  CHECK(refusal(params, in_group(all_reduce(), 9)) ==
        "rank 0, node 0: pg_name = 9; allowed: 0 or the id of a communicator group");
}

TEST_CASE("point-to-point, memory and compute nodes") {
  const auto first = [](const TraceNode& node, SystemParams params = ring(2)) {
    return refusal(params, {TraceBuilder().add(node).trace(), TraceBuilder().add(compute_us(1)).trace()});
  };
  CHECK(first(send(1, 5, 0)) == "rank 0, node 0: comm_size = 0; allowed: 1 to 2147483647");
  CHECK(first(recv(1, 5, std::uint64_t{1} << 31)) ==
        "rank 0, node 0: comm_size = 2147483648; allowed: 1 to 2147483647");
  CHECK(first(send(2, 5, 8)) == "rank 0, node 0: comm_dst = 2; allowed: another rank, below 2");
  CHECK(first(recv(0, 5, 8)) == "rank 0, node 0: comm_src = 0; allowed: another rank, below 2");
  TraceNode cpu = send(1, 5, 8);
  cpu.is_cpu_op = true;
  CHECK(first(cpu) == "rank 0, node 0: is_cpu_op = true; allowed: false for a communication node");
  CHECK(first(of_type(NodeType::mem_store, 8)) ==
        "rank 0, node 0: type = MEM_STORE; allowed: remote memory accesses need a memory_type other than 0");
  SystemParams memory = ring(2);
  memory.memory_type = 1;
  CHECK(first(of_type(NodeType::mem_load, 8), memory) == "remote_mem_bw_gbps = 0; allowed: at least 1");
  SystemParams roofline = ring(2);
  roofline.roofline_enabled = true;
  CHECK(first(compute_ops(1, 8), roofline) ==
        "peak_perf_tflops = 0.000000; allowed: more than 0 with the roofline model");
  CHECK(first(compute_ops(0, 8), roofline) ==
        "rank 0, node 0: num_ops = 0; allowed: at least 1 where tensor_size is not 0");
  CHECK(first(compute_us(~std::uint64_t{0})).find("rank 0, node 0: duration_micros = 1844") == 0);
}

TEST_CASE("traces that are not graphs") {
  const std::vector<RankTrace> good(2, TraceBuilder().add(compute_us(1)).trace());
  std::vector<RankTrace> traces = good;
  traces[1] = TraceBuilder().trace();
  CHECK(refusal(ring(2), traces) == "rank 1: number of trace nodes = 0; allowed: at least 1");
  traces[1] = TraceBuilder().add(compute_us(1)).add(compute_us(1), {2}).add(compute_us(1), {1}).trace();
  CHECK(refusal(ring(2), traces) ==
        "rank 1, node 1: dependencies = a cycle among the node's ancestors; allowed: an acyclic graph");
  traces[1] = TraceBuilder().add(compute_us(1), {7}).trace();
  CHECK(refusal(ring(2), traces) == "rank 1: parents = out of range; allowed: indices of this trace's nodes");
  traces[1] = TraceBuilder().add(compute_us(1)).add(compute_us(1)).trace();
  traces[1].nodes[1].id = 0;
  CHECK(refusal(ring(2), traces) == "rank 1: node id = 0; allowed: ids in ascending order, each once");
}
