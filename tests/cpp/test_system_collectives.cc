// End times of single collectives of 1 MiB, one chunk, endpoint delay 10 ns, 50 GB/s. The numbers
// were measured on upstream's system layer over the same ideal network.
#include <doctest/doctest.h>

#include <array>

#include "system_fixture.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

constexpr std::array<std::uint32_t, 4> kSizes{2, 4, 8, 16};

void check_ends(CollectiveType type, const std::string& name, const std::array<TimeNs, 4>& expected) {
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    CAPTURE(name);
    CAPTURE(kSizes[i]);
    const Outcome outcome = run_node(make_params({kSizes[i]}, {name}), collective(type));
    CHECK(outcome.ends() == all(kSizes[i], expected[i]));
    CHECK(outcome.stopped);
  }
}

}  // namespace

TEST_CASE("all-reduce") {
  const auto type = CollectiveType::all_reduce;
  check_ends(type, "ring", {53455, 81700, 98885, 113560});
  check_ends(type, "direct", {53455, 27240, 14135, 7580});
  check_ends(type, "direct1", {53455, 65974, 75296, 86050});
  check_ends(type, "direct2", {53455, 38744, 40784, 44850});
  check_ends(type, "direct4", {53455, 27240, 20397, 22430});
  check_ends(type, "halving_doubling", {22000, 49230, 63355, 70925});
}

TEST_CASE("reduce-scatter") {
  const auto type = CollectiveType::reduce_scatter;
  check_ends(type, "ring", {42460, 64444, 76968, 86260});
  check_ends(type, "direct", {42460, 21488, 11004, 5760});
  check_ends(type, "direct1", {42460, 48718, 53379, 58750});
  check_ends(type, "direct2", {42460, 27240, 28260, 30290});
  check_ends(type, "direct4", {42460, 21488, 14135, 15150});
  check_ends(type, "halving_doubling", {11005, 32483, 43477, 49227});
}

TEST_CASE("all-gather") {
  const auto type = CollectiveType::all_gather;
  check_ends(type, "ring", {21491, 64453, 150377, 322225});
  check_ends(type, "direct", {21491, 21491, 21491, 21491});
  check_ends(type, "direct1", {21491, 64453, 150377, 322225});
  check_ends(type, "direct2", {21491, 42972, 85934, 171858});
  check_ends(type, "direct4", {21491, 21491, 42972, 85934});
  check_ends(type, "halving_doubling", {21491, 63944, 148340, 316622});
}

TEST_CASE("all-to-all") {
  const auto type = CollectiveType::all_to_all;
  check_ends(type, "ring", {11005, 34522, 87678, 218410});
  check_ends(type, "direct", {11005, 5762, 3141, 1830});
  check_ends(type, "direct1", {11005, 17266, 21927, 27310});
  check_ends(type, "direct2", {11005, 11514, 12534, 14570});
  check_ends(type, "direct4", {11005, 5762, 6272, 7290});
}

TEST_CASE("double binary tree: the end depends on the place in the tree") {
  const TimeNs root[] = {84404, 168798, 253192, 337586};
  const TimeNs leaf[] = {105885, 274673, 443461, 612249};
  const std::vector<TimeNs> inner[] = {{}, {253192}, {337586, 421980}, {421980, 506374, 590768}};
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const std::uint32_t n = kSizes[i];
    CAPTURE(n);
    std::vector<TimeNs> expected(n, leaf[i]);  // leaves are the even ranks of the first (max) tree
    expected[n - 1] = root[i];
    std::size_t depth = inner[i].size();
    for (std::uint32_t low = 2; low < n; low *= 2) {  // in-order number v = rank + 1, low = lowest set bit
      --depth;
      for (std::uint32_t v = low; v < n; v += 2 * low) expected[v - 1] = inner[i][depth];
    }
    CHECK(run_node(make_params({n}, {"double_binary_tree"}), all_reduce()).ends() == expected);
  }
}

namespace {

std::vector<std::uint64_t> sizes_sent(const Outcome& outcome, std::uint32_t rank) {
  std::vector<std::uint64_t> sizes;
  for (const SentMessage& message : outcome.sent_by(rank)) sizes.push_back(message.request.bytes);
  return sizes;
}

using Sizes = std::vector<std::uint64_t>;

void check_sizes(CollectiveType type, const std::string& name, std::uint32_t n, const Sizes& expected) {
  CAPTURE(name);
  CAPTURE(n);
  const Outcome outcome = run_node(make_params({n}, {name}), collective(type));
  std::uint64_t total = 0;
  for (const std::uint64_t size : expected) total += size;
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    CHECK(sizes_sent(outcome, rank) == expected);
    CHECK(outcome.reports[rank].bytes_sent == total);
    CHECK(outcome.reports[rank].bytes_received == total);
  }
}

}  // namespace

TEST_CASE("messages sent per rank") {
  for (const std::uint32_t n : kSizes) {
    const std::uint64_t shard = kMiB / n;
    for (const char* name : {"ring", "direct"}) {
      check_sizes(CollectiveType::all_reduce, name, n, Sizes(2 * (n - 1), shard));
      check_sizes(CollectiveType::reduce_scatter, name, n, Sizes(n - 1, shard));
      check_sizes(CollectiveType::all_gather, name, n, Sizes(n - 1, kMiB));
    }
    check_sizes(CollectiveType::all_to_all, "ring", n, Sizes(n * (n - 1) / 2, shard));
    check_sizes(CollectiveType::all_to_all, "direct", n, Sizes(n - 1, shard));
  }
  const std::string halving = "halving_doubling";
  check_sizes(CollectiveType::all_reduce, halving, 2, {524288, 524288});
  check_sizes(CollectiveType::all_reduce, halving, 4, {524288, 262144, 262144, 524288});
  check_sizes(CollectiveType::all_reduce, halving, 8, {524288, 262144, 131072, 131072, 262144, 524288});
  check_sizes(CollectiveType::reduce_scatter, halving, 8, {524288, 262144, 131072});
  check_sizes(CollectiveType::all_gather, halving, 8, {1048576, 2097152, 4194304});
}

TEST_CASE("direct visits the other ranks in turn, halving-doubling its partners") {
  const auto targets = [](const Outcome& outcome, std::uint32_t rank) {
    std::vector<std::uint64_t> ranks;
    for (const SentMessage& message : outcome.sent_by(rank)) ranks.push_back(message.request.dst);
    return ranks;
  };
  CHECK(targets(run_node(make_params({4}, {"direct"}), all_reduce()), 2) == Sizes{3, 0, 1, 3, 0, 1});
  CHECK(targets(run_node(make_params({8}, {"halving_doubling"}), all_reduce()), 5) ==
        Sizes{4, 7, 1, 1, 7, 4});
  const auto gather = collective(CollectiveType::all_gather);
  CHECK(targets(run_node(make_params({8}, {"halving_doubling"}), gather), 5) == Sizes{1, 7, 4});
}

TEST_CASE("a phase labels its messages") {
  TraceNode node = all_reduce();
  node.layer = 7;
  SystemParams params = make_params({2}, {"ring"});
  params.preferred_dataset_splits = 2;
  const auto sent = run_node(params, node).sent_by(1);
  REQUIRE(sent.size() == 4);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const FlowLabel& label = sent[i].request.label;
    CHECK(label.node_id == 0);
    CHECK(label.layer == 7);
    CHECK(label.chunk == i / 2);
    CHECK(label.step == i % 2);
  }
}
