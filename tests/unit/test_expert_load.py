"""Uneven all-to-alls: popularity, its division over EP ranks, histogram files, messages."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcmoe import expert_load, runner
from hpcmoe.errors import InputError
from hpcmoe.expert_load import apportion, loads, placed, read_histogram, zipf
from hpcmoe.model import load_model
from hpcmoe.scenario import scenario_from_key
from hpcmoe.trace import NodeType, TraceGraph
from hpcmoe.workload import all_to_all_bytes, build_workload

# Two MoE layers of four experts, one per token; 8 bytes of a token travel.
SMALL = replace(
    load_model("flash"), hidden_size=4, layers=2, routed_experts=4, top_k=1, expert_width=4,
    all_reduce_width=4, moe_intermediate=2, shared_intermediate=2, heads=1, kv_heads=1, head_dim=4,
    calibration=None,
)  # fmt: skip
EVEN: dict[str, int | float] = {"layer_sync": 0}


def test_zipf_by_hand() -> None:
    """Weights 1, 1/2, 1/3, 1/4 in parts of 10^9."""
    assert zipf(SMALL, 1.0, 0).popularity == ((10**9, 5 * 10**8, 333333333, 250000000),)
    assert zipf(SMALL, 0.0, 0).popularity == ((10**9,) * 4,)


def test_a_seed_draws_an_order_for_each_layer_and_the_same_each_time() -> None:
    model = replace(SMALL, layers=20)
    first, again, other = zipf(model, 1.0, 7), zipf(model, 1.0, 7), zipf(model, 1.0, 8)
    assert first == again != other
    assert len(set(first.popularity)) > 1
    assert {tuple(sorted(row)) for row in first.popularity} == {
        tuple(sorted(zipf(model, 1.0, 0).of_layer(0)))
    }


def test_experts_lie_on_the_ranks_in_order() -> None:
    assert placed([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4, 5]]
    assert loads([1, 2, 3, 4, 5], 2) == [3, 12]
    assert loads([1, 2, 3, 4], 4) == [1, 2, 3, 4]


def test_apportion_by_hand() -> None:
    assert apportion(10, [1, 1, 1]) == [4, 3, 3]  # equal remainders: the first one
    assert apportion(10, [5, 3, 2]) == [5, 3, 2]
    assert apportion(7, [0, 1, 1]) == [0, 4, 3]


@settings(derandomize=True, deadline=None, max_examples=200, database=None)
@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1, max_size=40).filter(any))
def test_parts_add_up_and_are_within_one_of_their_share(total: int, weights: list[int]) -> None:
    parts = apportion(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part * sum(weights) - total * weight) < sum(weights)


def messages(graphs: tuple[TraceGraph, ...], role: str, layer: int) -> Counter[tuple[int, int, int]]:
    """(src, dst, bytes) of the SEND nodes, after a check that the RECV nodes are the same."""
    found: dict[NodeType, Counter[tuple[int, int, int]]] = {}
    for kind in (NodeType.COMM_SEND, NodeType.COMM_RECV):
        found[kind] = Counter()
        for rank, graph in enumerate(graphs):
            for i in np.flatnonzero((graph.type == kind) & (graph.layer == layer)):
                if graph.names[i].split(".")[1] == role:
                    peer, size = int(graph.peer[i]), int(graph.comm_bytes[i])
                    ends = (rank, peer) if kind == NodeType.COMM_SEND else (peer, rank)
                    found[kind][(*ends, size)] += 1
    assert found[NodeType.COMM_SEND] == found[NodeType.COMM_RECV]
    return found[NodeType.COMM_SEND]


def skewed(
    tmp_path: Path, rows: object, tp: int = 1, ep: int = 2, tokens: int = 16
) -> tuple[TraceGraph, ...]:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps(rows))
    return build_workload(SMALL, tp, ep, tokens, None, EVEN, str(path)).graphs


def test_messages_by_hand(tmp_path: Path) -> None:
    """16 tokens of 8 bytes over EP 2: 64 bytes a rank, of which experts 2 and 3 get 3 of 4 parts."""
    graphs = skewed(tmp_path, [1, 0, 1, 2])
    for layer in (0, 1):
        assert messages(graphs, "disp", layer) == {(0, 1, 48): 1, (1, 0, 16): 1}
        assert messages(graphs, "comb", layer) == {(1, 0, 48): 1, (0, 1, 16): 1}
    assert graphs[0].names[:7] == (
        "L0.attn", "L0.disp.to1", "L0.disp.from1", "L0.exp", "L0.comb.to1", "L0.comb.from1", "L0.ffn"
    )  # fmt: skip
    assert [graphs[0].parents_of(i).tolist() for i in range(7)] == [[], [0], [0], [1, 2], [3], [3], [4, 5]]


def test_experts_compute_what_their_rank_received(tmp_path: Path) -> None:
    """6 FLOP per weight and assignment of 16: 16 * 6 * 4 * 2 = 768, a quarter and three quarters of it."""
    ops = [int(graph.num_ops[3]) for graph in skewed(tmp_path, [1, 0, 1, 2])]
    assert ops == [768 // 4, 768 * 3 // 4]


def test_peers_have_the_same_tp_rank_and_turn_begins_with_the_next(tmp_path: Path) -> None:
    graphs = skewed(tmp_path, [1, 2, 3, 4], tp=2, ep=4)
    graph = graphs[3]  # ep 1, tp 1
    sends = [name for name in graph.names if name.startswith("L0.disp.to")]
    receives = [name for name in graph.names if name.startswith("L0.disp.from")]
    assert sends == ["L0.disp.to5", "L0.disp.to7", "L0.disp.to1"]
    assert receives == ["L0.disp.from1", "L0.disp.from7", "L0.disp.from5"]


def test_rows_are_layers(tmp_path: Path) -> None:
    graphs = skewed(tmp_path, [[1, 1, 0, 0], [0, 0, 1, 1]])
    assert messages(graphs, "disp", 0) == {(1, 0, 64): 1}
    assert messages(graphs, "disp", 1) == {(0, 1, 64): 1}


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(
    st.floats(0.001, 4.0),
    st.sampled_from([(1, 2), (2, 4), (1, 4), (4, 3)]),
    st.integers(1, 300),
    st.integers(0, 3),
)
def test_volumes_are_those_of_the_collective(
    exponent: float, strategy: tuple[int, int], tokens: int, seed: int
) -> None:
    """Whatever the skew, a rank sends its all-to-all volume less its own part, and combine gives it back."""
    tp, ep = strategy
    options = EVEN | {"expert_skew": exponent, "expert_order_seed": seed}
    graphs = build_workload(SMALL, tp, ep, tokens, None, options).graphs
    volume = all_to_all_bytes(SMALL, tokens, ep)
    for layer in range(SMALL.layers):
        there = messages(graphs, "disp", layer)
        assert messages(graphs, "comb", layer) == Counter({(d, s, n): c for (s, d, n), c in there.items()})
        parts = apportion(volume, loads(zipf(SMALL, exponent, seed).of_layer(layer), ep))
        for rank in range(tp * ep):
            sent = sum(size * count for (src, _, size), count in there.items() if src == rank)
            assert sent == volume - parts[rank // tp]


def test_exponent_zero_is_the_collective_and_nearly_zero_its_volumes() -> None:
    model = load_model("flash")
    even = build_workload(model, 2, 16, 64, 1, EVEN)
    assert len(set(map(id, even.graphs))) == 1
    nearly = build_workload(model, 2, 16, 64, 1, EVEN | {"expert_skew": 1e-12}).graphs
    per_peer = all_to_all_bytes(model, 64, 16) // 16
    assert {size for _, _, size in messages(nearly, "disp", 0)} == {per_peer}
    ops = dict(zip(even.graph.names, even.graph.num_ops.tolist(), strict=True))
    for graph in nearly:
        assert int(graph.num_ops[graph.names.index("L0.exp")]) == ops["L0.exp"]


def test_one_ep_rank_and_no_experts_have_nothing_to_skew(data: Path) -> None:
    from hpcmoe.model import model_from_config

    options = EVEN | {"expert_skew": 1.0}
    for model, tp, ep in ((SMALL, 4, 1), (model_from_config(data / "models" / "llama_3_8b.json"), 2, 4)):
        built = build_workload(model, tp, ep, 64, 1, options)
        assert built.graph.digest() == build_workload(model, tp, ep, 64, 1, EVEN).graph.digest()


def test_a_message_beyond_the_trace_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"tokens: a message of layer 0 would be \d+ bytes"):
        build_workload(load_model("pro"), 1, 2, 10**6, 1, EVEN | {"expert_skew": 2.0})


def test_simulated_messages_are_those_of_the_trace(tmp_path: Path) -> None:
    """Wall is GPU plus communication on each rank; the rank with the popular experts computes longer."""
    path = tmp_path / "counts.csv"
    path.write_text("# one count per expert\n1,0,1,2\n")
    overrides = {"routing": str(path), "layer_sync": "none"}
    scenario = scenario_from_key(
        "flash/t6/tp1ep2/ring_direct/ib_cc0", tokens=4096, layers=1, overrides=overrides, model=SMALL
    )
    result = runner.run(scenario)
    flows = Counter((int(f["src"]), int(f["dst"]), int(f["bytes"])) for f in result.flows)
    # 4096 * 8 / 2 = 16384 bytes a rank: 3 of 4 parts to rank 1 and back, 1 of 4 to rank 0 and back.
    assert flows == {(0, 1, 12288): 1, (1, 0, 4096): 1, (1, 0, 12288): 1, (0, 1, 4096): 1}
    ranks = result.ranks
    assert (ranks["wall_ns"] == ranks["gpu_ns"] + ranks["comm_ns"]).all()
    # The larger message of an exchange has the path to itself: 12 packets of 1036 bytes, 16 ns each at 512
    # Gbit/s, 200 ns to the switch, 16 ns for the twelfth to leave it and 5 for the last one behind it, which
    # has 324 bytes, 200 ns to the host; the ACK takes 1 + 200 + 1 + 200.
    # 12 * 16 + 200 + 16 + 5 + 200 + 402 = 1015.
    assert [int(f["fct_ns"]) for f in result.flows if f["bytes"] == 12288] == [1015, 1015]


def test_skew_goes_where_run_keys_go(tmp_path: Path) -> None:
    """The digest tells runs apart; traces of all ranks are exported and read back."""
    from hpcmoe import chakra, export

    key = "flash/t6/tp2ep16/ring_direct/ib_cc0"
    even, uneven = (
        scenario_from_key(key, tokens=64, layers=1, overrides={"expert_skew": skew, "layer_sync": "none"})
        for skew in ("0", "1")
    )
    assert even.digest() != uneven.digest()
    assert len(set(uneven.trace_digests)) == 32
    export.write_traces(uneven, tmp_path)
    read = chakra.read_traces(str(tmp_path / export.TRACE_PREFIX), 32)
    assert [trace.graph.digest() for trace in read] == uneven.trace_digests


HISTOGRAMS = [
    ("one.csv", "1,2,3,4\n"),
    ("comment.csv", "# expert counts\n\n1, 2, 3, 4\n"),
    ("column.csv", "1\n2\n3\n4\n"),
    ("flat.json", "[1, 2, 3, 4]"),
    ("one.json", "[[1, 2, 3, 4]]"),
]


@pytest.mark.parametrize(("name", "text"), HISTOGRAMS)
def test_forms_of_a_histogram(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_histogram(str(tmp_path / name), SMALL).of_layer(1) == (1, 2, 3, 4)


BROKEN = [
    ("x.csv", "", "the routing histogram has no row"),
    ("x.csv", "# nothing\n", "the routing histogram has no row"),
    ("x.csv", "1,2,3\n", "row 1: bad number of counts.*3.*4, one per expert"),
    ("x.csv", "1,2,3,4\n1,2,3,4\n1,2,3,4\n", "bad number of rows.*3.*1 row, or 2: one per MoE layer"),
    ("x.csv", "1,2,3,4\n1,2,3\n", "row 2: bad number of counts"),
    ("x.csv", "1,2,3,four\n", "line 1: bad count.*'four'"),
    ("x.csv", "1,2,3,-4\n", "line 1: bad count.*'-4'"),
    ("x.csv", "1,2,,4\n", "line 1: bad count"),
    ("x.csv", "1,2,3,4.5\n", "line 1: bad count"),
    ("x.csv", "1;2;3;4\n", "line 1: bad count.*separated by commas"),
    ("x.csv", "0,0,0,0\n", "row 1: no expert gets a token"),
    ("x.csv", "1,2,3," + "9" * 400 + "\n", "line 1: bad count"),
    ("x.json", "[1, 2", "not JSON"),
    ("x.json", '{"counts": [1, 2, 3, 4]}', "is a list of counts"),
    ("x.json", "[]", "is a list of counts"),
    ("x.json", "[1, 2, 3, true]", "row 1, expert 3: bad count"),
    ("x.json", "[1, 2, 3, 4.0]", "row 1, expert 3: bad count"),
    ("x.json", "[[1, 2, 3, 4], 5]", "row 1: bad number of counts"),
    ("x.json", "[[1, 2, 3, -4], [1, 2, 3, 4]]", "row 1, expert 3: bad count.*-4"),
    ("none.csv", None, "cannot read the routing histogram: No such file"),
]


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_broken_histograms(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_histogram(str(path), SMALL)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"x\.csv: .*not text"):
        read_histogram(str(tmp_path / "x.csv"), SMALL)


def test_two_sources_of_popularity_are_refused(tmp_path: Path, data: Path) -> None:
    from hpcmoe.model import model_from_config

    (tmp_path / "x.csv").write_text("1,2,3,4\n")
    with pytest.raises(InputError, match="routing: a routing histogram says how popular"):
        build_workload(SMALL, 1, 2, 8, None, EVEN | {"expert_skew": 1.0}, str(tmp_path / "x.csv"))
    dense = model_from_config(data / "models" / "llama_3_8b.json")
    with pytest.raises(InputError, match="routing: llama_3_8b has no experts"):
        build_workload(dense, 1, 2, 8, None, EVEN, str(tmp_path / "x.csv"))


def test_popularity_of_one_row_stands_for_all_layers() -> None:
    assert expert_load.ExpertLoad(((1, 2),)).of_layer(40) == (1, 2)
    assert expert_load.ExpertLoad(((1, 2), (3, 4))).of_layer(1) == (3, 4)


@pytest.mark.parametrize("network", ["roce_hpcc", "roce_dcqcn"])
def test_messages_that_begin_with_the_last_ack_of_another(network: str) -> None:
    """The record of a finished flow went to a new one before the controller had seen the last ACK."""
    scenario = scenario_from_key(
        f"flash/t4/tp1ep16/ring_direct/{network}", tokens=64, layers=1, overrides={"expert_skew": 1}
    )
    sent = sum(int((graph.type == NodeType.COMM_SEND).sum()) for graph in scenario.traces)
    assert len(runner.run(scenario).flows) == sent
