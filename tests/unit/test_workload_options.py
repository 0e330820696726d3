"""Decode steps and the overlapped shared FFN: exact nodes, exact times, and what the options refuse."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcmoe import runner
from hpcmoe.commands.run import table
from hpcmoe.errors import InputError
from hpcmoe.model import Model, load_model, model_from_config
from hpcmoe.scenario import Scenario, scenario_from_key
from hpcmoe.trace import NodeType, TraceGraph
from hpcmoe.workload import build_workload, compute_time_ns

FREE: dict[str, int | float] = {"layer_sync": 0}
DECODE = FREE | {"phase": 1, "context_tokens": 1000}
KEY = "flash/t6/tp2ep16/ring_direct/ib_cc0"


def family(data: Path, name: str) -> Model:
    return model_from_config(data / "models" / f"{name}.json")


def costs(graph: TraceGraph) -> dict[str, tuple[int, int]]:
    """(FLOP, bytes) of the compute nodes of the last layer, by role."""
    last = int(graph.layer[-1])
    return {
        graph.names[i].split(".")[1]: (int(graph.num_ops[i]), int(graph.tensor_bytes[i]))
        for i in np.flatnonzero((graph.type == NodeType.COMP) & (graph.layer == last))
    }


def test_decode_of_grouped_queries_by_hand(data: Path) -> None:
    """Mixtral, 32 sequences with 1000 cached tokens each, TP 4, EP 8.

    Attention has 41_943_040 weights, 4 * 4096 FLOP per pair, 2 * 8 * 128 cached elements per token; its 8
    key-value heads divide by TP 4. One expert of 3 * 4096 * 14336 = 176_160_768 weights on each EP rank,
    chosen by any of 32 tokens for sure (1 - (3/4)^32 = 0.9999). The FFN is the router of 4096 * 8.
    """
    found = costs(build_workload(family(data, "mixtral_8x7b"), 4, 8, 32, 1, DECODE).graph)
    assert found["attn"] == (
        (2 * 32 * 41_943_040 + 32 * 1000 * 4 * 4096) // 4,
        (2 * 41_943_040 + 2 * 32 * 1000 * 2048) // 4,
    )
    assert found["exp"] == (2 * 32 * 2 * 176_160_768 // 8, 2 * 176_160_768)
    assert found["ffn"] == (2 * 32 * 32768 // 4, 2 * 32768 // 4)


def test_decode_of_latent_attention_by_hand(data: Path) -> None:
    """DeepSeek-V3, 4 sequences, TP 2, EP 16.

    Attention has 187_105_280 weights; a pair costs 2 * 128 * (512 + 64 + 512) FLOP on the cache as it is
    stored, 576 elements a token, all of them on both ranks. Of 16 experts of 44_040_192 weights on a rank
    each is chosen with 1 - (1 - 8/256)^4 = 0.1193, 1.9 in all. The FFN is router and shared expert,
    7168 * 256 + 44_040_192.
    """
    found = costs(build_workload(family(data, "deepseek_v3"), 2, 16, 4, 1, DECODE).graph)
    pair = 2 * 128 * (512 + 64 + 512)
    assert found["attn"] == (
        (2 * 4 * 187_105_280 + 4 * 1000 * pair) // 2,
        2 * 187_105_280 // 2 + 2 * 4 * 1000 * 576,
    )
    assert found["exp"] == (2 * 4 * 8 * 44_040_192 // 16, 2 * 2 * 44_040_192)
    assert found["ffn"] == (2 * 4 * (1_835_008 + 44_040_192) // 2, 1_835_008 + 44_040_192)


def test_decode_of_a_dense_model_reads_its_ffn(data: Path) -> None:
    found = costs(build_workload(family(data, "llama_3_8b"), 8, 1, 2, 1, DECODE).graph)
    assert set(found) == {"attn", "ffn"}
    assert found["ffn"] == (2 * 2 * 176_160_768 // 8, 2 * 176_160_768 // 8)


def test_heads_of_the_cache_divide_by_tp_as_far_as_they_go(data: Path) -> None:
    """Eight key-value heads on sixteen ranks: half of the ranks hold the same head as another."""
    model = family(data, "mixtral_8x7b")
    reads = [costs(build_workload(model, tp, 2, 32, 1, DECODE).graph)["attn"][1] for tp in (8, 16)]
    weights, cache = 2 * 41_943_040, 2 * 32 * 1000 * 2048
    assert reads == [weights // 8 + cache // 8, weights // 16 + cache // 8]


def test_decode_time_is_that_of_memory(data: Path) -> None:
    """Every node of a small batch takes its bytes over the memory bandwidth, truncated to ns."""
    graph = build_workload(family(data, "deepseek_v3"), 2, 16, 4, 2, DECODE).graph
    compute = graph.type == NodeType.COMP
    in_ns = [int(size) // 1600 for size in graph.tensor_bytes[compute]]
    assert compute_time_ns(graph, 1000.0, 1600.0) == pytest.approx(sum(in_ns), abs=len(in_ns))


def test_simulated_decode_takes_the_roofline_time(data: Path) -> None:
    overrides = {"phase": "decode", "context_tokens": "4096"}
    scenario = scenario_from_key(KEY, tokens=32, layers=2, overrides=overrides)
    result = runner.run(scenario)
    assert result.gpu_ns == compute_time_ns(scenario.traces[0], 1000.0, 1600.0)
    assert result.wall_ns == result.gpu_ns + result.comm_ns
    volumes = scenario.traces[0].comm_bytes[scenario.traces[0].involved_dims == 0b10]
    assert set(volumes.tolist()) == {32 * 4096 * 6 * 2 // 16}


def test_a_skewed_decode_reads_fewer_experts_where_few_are_chosen(data: Path) -> None:
    model = family(data, "deepseek_v3")
    graphs = build_workload(model, 1, 16, 64, 1, DECODE | {"expert_skew": 2.0}).graphs
    hot, cold = costs(graphs[0])["exp"], costs(graphs[15])["exp"]
    even = costs(build_workload(model, 1, 16, 64, 1, DECODE).graph)["exp"]
    assert hot[0] > even[0] > cold[0]
    assert cold[1] < even[1]


def test_prefill_behind_a_cache_has_more_pairs(data: Path) -> None:
    """64 tokens behind 1000: 64 * 1000 pairs more, 4 * 4096 FLOP each, divided by TP 4."""
    model = family(data, "mixtral_8x7b")
    ops = [
        costs(build_workload(model, 4, 8, 64, 1, FREE | {"context_tokens": n}).graph)["attn"][0]
        for n in (0, 1000)
    ]
    assert ops[1] - ops[0] == 64 * 1000 * 4 * 4096 // 4


def test_decode_without_a_cache_is_refused() -> None:
    with pytest.raises(InputError, match="context_tokens: decode reads a key-value cache.*integers from 1"):
        scenario_from_key(KEY, tokens=8, layers=1, overrides={"phase": "decode"})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"phase": "training"}, "phase: bad value.*prefill.*decode"),
        ({"context_tokens": "-1"}, "context_tokens: bad value"),
        ({"expert_skew": "-0.5"}, "expert_skew: bad value.*from 0"),
        ({"expert_skew": "steep"}, "expert_skew: bad value"),
        ({"expert_order_seed": "1.5"}, "expert_order_seed: bad value"),
        ({"overlap_shared_ffn": "maybe"}, "overlap_shared_ffn: bad value"),
        ({"expert_skw": "1"}, "expert_skw: unknown parameter.*expert_skew"),
        ({"routing": "none.csv"}, "none.csv: cannot read the routing histogram"),
    ],
)
def test_bad_options(overrides: Mapping[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario_from_key(KEY, tokens=8, layers=1, overrides=overrides)


def test_nodes_too_large_for_the_trace_format(data: Path) -> None:
    with pytest.raises(InputError, match=r"tokens: node L0\.attn would have more than 2\^63"):
        build_workload(family(data, "llama_3_8b"), 1, 1, 2**31 - 1, 1, FREE)


def test_overlap_of_nodes() -> None:
    """FFN beside dispatch, experts and combine; the second all-reduce waits for both."""
    graph = build_workload(load_model("flash"), 2, 16, 64, 2, FREE | {"overlap_shared_ffn": 1}).graph
    assert graph.names[:8] == (
        "L0.attn", "L0.ar1", "L0.disp", "L0.exp", "L0.comb", "L0.ffn", "L0.ar2", "L1.attn"
    )  # fmt: skip
    assert [graph.parents_of(i).tolist() for i in range(8)] == [[], [0], [1], [2], [3], [1], [4, 5], [6]]


def test_overlap_with_one_all_reduce_joins_in_the_next_layer() -> None:
    """K3: layer 0 is dense (attention, all-reduce, FFN) and stays a chain."""
    graph = build_workload(load_model("k3"), 2, 16, 64, 2, FREE | {"overlap_shared_ffn": 1}).graph
    names = list(graph.names)
    assert graph.parents_of(names.index("L0.ffn")).tolist() == [names.index("L0.ar1")]
    joined = [names.index("L1.comb"), names.index("L1.ffn")]
    assert graph.parents_of(names.index("L2.attn")).tolist() == joined


def test_overlap_before_a_barrier_joins_there() -> None:
    graph = build_workload(load_model("k3"), 2, 16, 64, 2, {"overlap_shared_ffn": 1}).graph
    names = list(graph.names)
    joined = [names.index("L1.comb"), names.index("L1.ffn")]
    assert graph.parents_of(names.index("L2.sync")).tolist() == joined


def one_layer(overrides: dict[str, str], layers: int = 1) -> tuple[Scenario, runner.RunResult]:
    scenario = scenario_from_key(KEY, tokens=64, layers=layers, overrides=overrides)
    return scenario, runner.run(scenario)


def test_an_overlapped_ffn_costs_nothing_while_the_network_works() -> None:
    """The FFN is shorter than dispatch, so that one layer is shorter by just the FFN's time on every rank."""
    scenario, serial = one_layer({})
    _, overlapped = one_layer({"overlap_shared_ffn": "1"})
    ffn_ns = 632_220_000_000 * 64 // 4096 // 2 // 10**6  # FLOP at 10^15 a second, in ns
    assert (serial.ranks["wall_ns"] - overlapped.ranks["wall_ns"] == ffn_ns).all()
    assert (serial.ranks["gpu_ns"] == overlapped.ranks["gpu_ns"]).all()
    ranks = overlapped.ranks
    assert (ranks["wall_ns"] == ranks["gpu_ns"] + ranks["comm_ns"] - ffn_ns).all()
    assert (ranks["exposed_comm_ns"] == ranks["wall_ns"] - ranks["gpu_ns"]).all()
    assert any("not overlapped" in line for line in table(scenario, overlapped))
    assert not any("not overlapped" in line for line in table(scenario, serial))


@pytest.mark.parametrize("change", [{"overlap_shared_ffn": "1"}, {"expert_skew": "1"}])
def test_what_is_no_chain_is_simulated_in_full_and_says_so(change: dict[str, str]) -> None:
    _, chain = one_layer({}, layers=4)
    assert chain.layers_added > 0
    scenario, result = one_layer(change, layers=4)
    assert (result.layers_simulated, result.layers_added) == (4, 0)
    assert any("its traces or parameters rule that out" in line for line in table(scenario, result))


def test_options_are_kept_with_the_run() -> None:
    config = scenario_from_key(KEY, tokens=8, layers=1, overrides={"expert_skew": "0.5"}).to_json()
    assert config["workload"]["expert_skew"] == 0.5
    assert config["workload"]["phase"] == 0


def test_an_unbalanced_run_is_not_inspected(tmp_path: Path) -> None:
    """Inspection follows one chain; it says so in place of following a wrong one."""
    from hpcmoe.inspect_run.record import load_record
    from hpcmoe.store import open_results
    from hpcmoe.sweep import main

    for number, change in enumerate(("expert_skew=1", "overlap_shared_ffn=1")):
        path = tmp_path / f"{number}.h5"
        options = ("--quiet", "--tokens", "64", "--layers", "1", "--set", change)
        assert main([str(path), *options, "--select", KEY]) == 0
        with open_results(path) as results:
            record = load_record(results, KEY)
            with pytest.raises(InputError, match="one serial chain"):
                record.chain  # noqa: B018


def test_calibration_has_no_part_in_decode() -> None:
    flash = load_model("flash")
    plain = replace(flash, calibration=None)
    assert costs(build_workload(flash, 2, 16, 8, 1, DECODE).graph) == costs(
        build_workload(plain, 2, 16, 8, 1, DECODE).graph
    )
