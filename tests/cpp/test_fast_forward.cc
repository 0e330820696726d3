// Exact fast-forward: what repeats is recognised, and adding it changes nothing but the work done.
#include <doctest/doctest.h>

#include <vector>

#include "network_fixture.hh"
#include "simulation.hh"
#include "system/compute_clock.hh"
#include "workload/chain.hh"

namespace hpcmoe {
namespace {

TraceNode compute(std::uint64_t ops) {
  TraceNode node;
  node.type = NodeType::comp;
  node.num_ops = ops;
  node.tensor_bytes = 1;
  return node;
}

TraceNode collective(CollectiveType type, std::uint64_t bytes) {
  TraceNode node;
  node.type = NodeType::coll;
  node.comm_type = type;
  node.comm_bytes = bytes;
  return node;
}

RankTrace chain_of(std::vector<TraceNode> nodes) {
  RankTrace trace;
  trace.parent_begin.push_back(0);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = i;
    if (i > 0) trace.parents.push_back(i - 1);
    trace.parent_begin.push_back(static_cast<std::uint32_t>(trace.parents.size()));
  }
  trace.nodes = std::move(nodes);
  return trace;
}

// Layers of: compute, all-reduce, compute, all-to-all. The first layer's compute may differ.
RankTrace layers(int count, std::uint64_t first_ops = 30'000'000, std::uint64_t ops = 30'000'000) {
  std::vector<TraceNode> nodes;
  for (int layer = 0; layer < count; ++layer) {
    const std::size_t begin = nodes.size();
    nodes.push_back(compute(layer == 0 ? first_ops : ops));
    nodes.push_back(collective(CollectiveType::all_reduce, 40'000));
    nodes.push_back(compute(ops));
    nodes.push_back(collective(CollectiveType::all_to_all, 40'000));
    for (std::size_t i = begin; i < nodes.size(); ++i) nodes[i].layer = layer;
  }
  return chain_of(std::move(nodes));
}

// The same, with a barrier before each layer but the first.
RankTrace synchronized_layers(int count, std::uint64_t first_ops = 30'000'000) {
  std::vector<TraceNode> nodes;
  for (const TraceNode& node : layers(count, first_ops).nodes) {
    if (node.layer > 0 && nodes.back().layer < node.layer) {
      nodes.push_back(collective(CollectiveType::barrier, 0));
      nodes.back().layer = node.layer;
    }
    nodes.push_back(node);
  }
  return chain_of(std::move(nodes));
}

SystemParams system_params(Algorithm all_reduce) {
  SystemParams p;
  p.collective_optimization = 1;
  p.preferred_dataset_splits = 4;
  p.active_chunks_per_dimension = 1;
  p.endpoint_delay_ns = 10;
  p.local_mem_bw_gbps = 1600;
  p.peak_perf_tflops = 1000;
  p.roofline_enabled = true;
  p.num_queues_per_dim = 1;
  p.memory_npus_per_node = 1;
  p.compute_ties = kByRank;
  p.logical_dims = {4};
  p.all_reduce = {{all_reduce, -1, false}};
  p.all_to_all = {{Algorithm::direct, -1, false}};
  return p;
}

NetworkParams study_params(std::uint32_t cc_mode) {
  NetworkParams p = testing::plain_params();
  p.cc_mode = cc_mode;
  p.restart_counters_when_idle = true;
  p.neighbor_order = kAscending;
  p.ecn_random = kKeyed;
  p.int_exact_rates = true;
  p.ecn_enabled = cc_mode == kDcqcn;
  p.ecn = {{100 * testing::kGbps, 4'000, 16'000, 0.2}};
  return p;
}

struct Outcome {
  Progress progress;
  NetworkTotals totals;
  std::vector<RankReport> ranks;
  std::vector<LinkCounters> links;
  std::vector<FlowRecord> flows;
  std::vector<RecordRepeat> repeats;
  std::uint64_t added_layers = 0;
};

Outcome run(const NetworkParams& network, const SystemParams& system, const RankTrace& trace, bool fast) {
  Simulation simulation(network, testing::star(4, 100 * testing::kGbps, 500), system,
                        std::vector<RankTrace>(4, trace));
  if (fast) simulation.enable_fast_forward();
  Outcome o;
  do {
    o.progress = simulation.run(1000);
  } while (!o.progress.finished);
  o.totals = simulation.totals();
  for (std::uint32_t r = 0; r < 4; ++r) o.ranks.push_back(simulation.rank_report(r));
  o.links = simulation.link_counters();
  o.flows = simulation.records().flows;
  o.repeats = simulation.record_repeats();
  o.added_layers = simulation.added_layers();
  return o;
}

// Records with their copies, in the order in which the flows finish.
std::vector<FlowRecord> expanded(const Outcome& o) {
  std::vector<FlowRecord> rows;
  std::size_t next = 0;
  for (const RecordRepeat& r : o.repeats) {
    rows.insert(rows.end(), o.flows.begin() + static_cast<std::ptrdiff_t>(next),
                o.flows.begin() + static_cast<std::ptrdiff_t>(r.flow_end));
    next = r.flow_end;
    for (std::uint64_t copy = 1; copy <= r.count; ++copy) {
      for (std::size_t i = r.flow_begin; i < r.flow_end; ++i) {
        FlowRecord row = o.flows[i];
        row.start_ns += copy * r.period_ns;
        row.layer += static_cast<std::int32_t>(static_cast<std::int64_t>(copy) * r.layer_step);
        row.node_id += copy * r.node_step;
        rows.push_back(row);
      }
    }
  }
  rows.insert(rows.end(), o.flows.begin() + static_cast<std::ptrdiff_t>(next), o.flows.end());
  return rows;
}

void check_same(const Outcome& fast, const Outcome& full) {
  CHECK(fast.progress.simulated_ns == full.progress.simulated_ns);
  CHECK(fast.totals.events == full.totals.events);
  CHECK(fast.totals.packet_hops == full.totals.packet_hops);
  CHECK(fast.totals.ecn_marks == full.totals.ecn_marks);
  CHECK(fast.totals.bytes_received == full.totals.bytes_received);
  for (std::size_t r = 0; r < full.ranks.size(); ++r) {
    CAPTURE(r);
    CHECK(fast.ranks[r].wall_ns == full.ranks[r].wall_ns);
    CHECK(fast.ranks[r].gpu_ns == full.ranks[r].gpu_ns);
    CHECK(fast.ranks[r].comm_ns == full.ranks[r].comm_ns);
    CHECK(fast.ranks[r].finish_ns == full.ranks[r].finish_ns);
    CHECK(fast.ranks[r].modelled_compute_ns == full.ranks[r].modelled_compute_ns);
    CHECK(fast.ranks[r].bytes_sent == full.ranks[r].bytes_sent);
    CHECK(fast.ranks[r].bytes_received == full.ranks[r].bytes_received);
  }
  for (std::size_t l = 0; l < full.links.size(); ++l) {
    CHECK(fast.links[l].bytes == full.links[l].bytes);
    CHECK(fast.links[l].busy_ns == full.links[l].busy_ns);
    CHECK(fast.links[l].peak_queue_bytes == full.links[l].peak_queue_bytes);
  }
  const auto rows = expanded(fast);
  REQUIRE(rows.size() == full.flows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(rows[i].start_ns == full.flows[i].start_ns);
    CHECK(rows[i].fct_ns == full.flows[i].fct_ns);
    CHECK(rows[i].src == full.flows[i].src);
    CHECK(rows[i].sport == full.flows[i].sport);
    CHECK(rows[i].layer == full.flows[i].layer);
    CHECK(rows[i].node_id == full.flows[i].node_id);
    CHECK(rows[i].chunk == full.flows[i].chunk);
    CHECK(rows[i].step == full.flows[i].step);
  }
}

}  // namespace

TEST_CASE("a chain is compute and collectives, each after the one before") {
  CHECK(is_chain(layers(2)));
  RankTrace two_roots = chain_of({compute(1), compute(1)});
  two_roots.parents.clear();
  two_roots.parent_begin = {0, 0, 0};
  CHECK_FALSE(is_chain(two_roots));
  TraceNode send;
  send.type = NodeType::send;
  CHECK_FALSE(is_chain(chain_of({compute(1), send})));
}

TEST_CASE("repeats count whole copies of what lies between two nodes") {
  const RankTrace trace = layers(5);  // four nodes a layer, twenty in all
  CHECK(repeats_after(trace, 0, 4) == 3);
  CHECK(repeats_after(trace, 1, 5) == 3);
  CHECK(repeats_after(trace, 3, 7) == 3);
  CHECK(repeats_after(trace, 0, 8) == 1);
  CHECK(repeats_after(trace, 0, 12) == 0);
  // A first layer of its own is no copy of the second, but the second repeats in the third.
  const RankTrace odd = layers(5, 99'000'000);
  CHECK(repeats_after(odd, 0, 4) == 0);
  CHECK(repeats_after(odd, 4, 8) == 2);
  // Content decides: another size in the fourth layer ends the repetition before it.
  RankTrace changed = layers(5);
  changed.nodes[15].comm_bytes += 1;
  CHECK(repeats_after(changed, 0, 4) == 2);
  // Labels have to grow evenly, or copies could not be labelled.
  RankTrace relabelled = layers(5);
  relabelled.nodes[14].layer += 1;
  CHECK(repeats_after(relabelled, 0, 4) == 2);
}

TEST_CASE("equal layers are added and nothing changes") {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling, Algorithm::double_binary_tree}) {
    for (const std::uint32_t cc_mode : {12U, 1U, 3U, 8U}) {
      CAPTURE(static_cast<int>(algorithm));
      CAPTURE(cc_mode);
      const NetworkParams network = study_params(cc_mode);
      const SystemParams system = system_params(algorithm);
      const RankTrace trace = layers(12, 70'000'000);
      const Outcome fast = run(network, system, trace, true);
      const Outcome full = run(network, system, trace, false);
      CHECK(full.added_layers == 0);
      CHECK(full.repeats.empty());
      if (cc_mode == 12) CHECK(fast.added_layers >= 6);
      check_same(fast, full);
    }
  }
}

TEST_CASE("without computations to hide behind, moments at which others wait still serve") {
  // Computations shorter than the tree's skew: roots go on long before leaves.
  const SystemParams system = system_params(Algorithm::double_binary_tree);
  const RankTrace trace = layers(20, 2'000'000, 2'000'000);
  const Outcome fast = run(study_params(12), system, trace, true);
  check_same(fast, run(study_params(12), system, trace, false));
}

TEST_CASE("a trace may end as a repeat that a barrier follows") {
  const RankTrace trace = synchronized_layers(5);  // four nodes, then five a layer
  CHECK(repeats_after(trace, 0, 5) == 3);
  CHECK(ends_as_repeat(trace, 0, 5));
  CHECK(ends_as_repeat(trace, 5, 10));
  CHECK(ends_as_repeat(trace, 0, 10) == false);  // four layers are left, no whole number of repeats
  CHECK(ends_as_repeat(trace, 1, 6) == false);   // there the stretch has not come to rest
  CHECK(ends_as_repeat(layers(5), 0, 4) == false);
  RankTrace changed = trace;
  changed.nodes.back().comm_bytes += 1;
  CHECK(ends_as_repeat(changed, 0, 5) == false);
}

TEST_CASE("with barriers one layer of a kind is simulated, the last one not again") {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::double_binary_tree}) {
    for (const std::uint32_t cc_mode : {12U, 1U, 3U, 8U}) {
      CAPTURE(static_cast<int>(algorithm));
      CAPTURE(cc_mode);
      const SystemParams system = system_params(algorithm);
      for (const std::uint64_t first_ops : {30'000'000U, 70'000'000U}) {
        const RankTrace trace = synchronized_layers(9, first_ops);
        const Outcome fast = run(study_params(cc_mode), system, trace, true);
        const Outcome full = run(study_params(cc_mode), system, trace, false);
        // Trees take turns: two layers are one period.
        const bool equal_layers = algorithm != Algorithm::double_binary_tree;
        if (equal_layers) CHECK(fast.added_layers == (first_ops == 30'000'000 ? 8 : 7));
        CHECK(fast.added_layers >= 4);
        check_same(fast, full);
      }
    }
  }
}

TEST_CASE("two layers are enough to save the second") {
  const SystemParams system = system_params(Algorithm::ring);
  const Outcome fast = run(study_params(12), system, synchronized_layers(2), true);
  CHECK(fast.added_layers == 1);
  check_same(fast, run(study_params(12), system, synchronized_layers(2), false));
}

TEST_CASE("where behaviour depends on absolute state nothing is added") {
  const SystemParams system = system_params(Algorithm::ring);
  NetworkParams running_on = study_params(12);
  running_on.restart_counters_when_idle = false;
  CHECK(run(running_on, system, layers(8), true).added_layers == 0);
  NetworkParams streams = study_params(kDcqcn);
  streams.ecn_random = kStreams;
  CHECK(run(streams, system, layers(8), true).added_layers == 0);
  NetworkParams absolute_rtt = study_params(kTimely);
  absolute_rtt.timely_stamp = kStampZero;
  CHECK(run(absolute_rtt, system, layers(8), true).added_layers == 0);
  SystemParams by_scheduling = system;
  by_scheduling.compute_ties = kByScheduling;
  CHECK(run(study_params(12), by_scheduling, layers(8), true).added_layers == 0);
}

}  // namespace hpcmoe
