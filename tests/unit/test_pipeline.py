"""Data and pipeline parallelism: which rank runs what, and what goes from stage to stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hpcmoe import runner
from hpcmoe.design import Degrees, parse_degrees
from hpcmoe.errors import InputError
from hpcmoe.model import load_model
from hpcmoe.pipeline import rank_graphs, shares
from hpcmoe.scenario import scenario_from_key
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode
from hpcmoe.workload import build_workload

FLASH = load_model("flash")
HIDDEN = FLASH.hidden_size


def graphs_of(strategy: str, *, layers: int = 5, tokens: int = 64, microbatches: int = 1) -> list[TraceGraph]:
    degrees = parse_degrees(strategy)

    def group(size: int) -> Sequence[TraceGraph]:
        return [build_workload(FLASH, degrees.tp, degrees.ep, size, layers).graph] * (degrees.tp * degrees.ep)

    return rank_graphs(group, degrees, tokens=tokens, layers=layers, hidden=HIDDEN, microbatches=microbatches)


def messages(graphs: Sequence[TraceGraph], kind: NodeType) -> Counter[tuple[int, int, int, int]]:
    """(source, destination, tag, bytes) of all SENDs or RECVs."""
    found: Counter[tuple[int, int, int, int]] = Counter()
    for rank, graph in enumerate(graphs):
        for i in np.flatnonzero(graph.type == kind).tolist():
            peer, rest = int(graph.peer[i]), (int(graph.tag[i]), int(graph.comm_bytes[i]))
            ends = (rank, peer) if kind == NodeType.COMM_SEND else (peer, rank)
            found[*ends, *rest] += 1
    return found


@pytest.mark.parametrize(
    ("total", "parts", "expected"),
    [(6, 3, [2, 2, 2]), (7, 3, [3, 2, 2]), (2, 2, [1, 1]), (5, 4, [2, 1, 1, 1])],
)
def test_shares_differ_by_one_and_the_leading_are_larger(total: int, parts: int, expected: list[int]) -> None:
    assert shares(total, parts) == expected


def test_without_outer_dimensions_all_ranks_share_the_graph() -> None:
    graphs = graphs_of("tp2ep4")
    assert len(graphs) == 8
    assert len({id(graph) for graph in graphs}) == 1
    assert graphs[0].digest() == build_workload(FLASH, 2, 4, 64, 5).graph.digest()


def test_replicas_run_the_same_and_talk_among_themselves() -> None:
    graphs = graphs_of("tp2ep4dp3")
    assert len(graphs) == 24
    barriers = graphs[0].comm_type == CollectiveType.BARRIER
    assert barriers.sum() == 4
    assert set(graphs[0].involved_dims[barriers].tolist()) == {0b11}
    alone = graphs_of("tp2ep4")[0]
    assert {graph.digest() for graph in graphs} == {
        replace(alone, involved_dims=graphs[0].involved_dims).digest()
    }

    def uneven(size: int) -> list[TraceGraph]:
        return [
            TraceGraph.from_nodes([TraceNode(0, NodeType.COMM_SEND, peer=1, comm_bytes=size, layer=0)]),
            TraceGraph.from_nodes([TraceNode(0, NodeType.COMM_RECV, peer=0, comm_bytes=size, layer=0)]),
        ]

    pairs = rank_graphs(uneven, Degrees(1, 2, 3, 1), tokens=8, layers=1, hidden=1)
    assert [int(graph.peer[0]) for graph in pairs] == [1, 0, 3, 2, 5, 4]
    assert messages(pairs, NodeType.COMM_SEND) == messages(pairs, NodeType.COMM_RECV)


def test_stages_hold_consecutive_layers_the_leading_ones_more() -> None:
    graphs = graphs_of("tp2ep2pp3", layers=7)
    held = [sorted(set(graph.layer.tolist())) for graph in graphs[::4]]
    assert held == [[0, 1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("microbatches", [1, 3])
def test_every_message_has_its_receiver_in_the_next_stage(microbatches: int) -> None:
    degrees = parse_degrees("tp2ep2dp2pp2")
    graphs = graphs_of("tp2ep2dp2pp2", microbatches=microbatches)
    sent, received = (messages(graphs, kind) for kind in (NodeType.COMM_SEND, NodeType.COMM_RECV))
    assert sent == received
    assert {(src, dst) for src, dst, _, _ in sent} == {(rank, rank + 8) for rank in range(8)}
    assert set(sent.values()) == {1}
    for rank in range(8):
        sizes = {tag: size for src, _, tag, size in sent if src == rank}
        assert sizes == {m: t * HIDDEN * 2 // degrees.tp for m, t in enumerate(shares(64, microbatches))}


def test_a_rank_is_a_serial_chain_of_microbatches() -> None:
    first, last = graphs_of("tp1ep2pp2", layers=2, microbatches=2)[::2]
    for graph in (first, last):
        assert graph.parents.tolist() == list(range(len(graph) - 1))
    assert [name for name in first.names if name.endswith(("send", "recv"))] == ["L0.send"] * 2
    assert (last.names[0], last.names[len(last) // 2]) == ("L1.recv", "L1.recv")
    assert first.names[-1] == "L0.send"


def test_work_is_divided_and_none_is_lost() -> None:
    whole = graphs_of("tp2ep2", layers=6)[0]
    staged = graphs_of("tp2ep2pp3", layers=6)[::4]
    assert sum(int(graph.num_ops.sum()) for graph in staged) == int(whole.num_ops.sum())
    cut = graphs_of("tp2ep2pp1", layers=6, microbatches=4)[0]
    assert int(cut.num_ops.sum()) == pytest.approx(int(whole.num_ops.sum()), rel=1e-6)


def test_branches_of_a_layer_stay_branches() -> None:
    def branched(_: int) -> list[TraceGraph]:
        nodes = [
            TraceNode(4 * layer + i, NodeType.COMP, f"L{layer}.{i}", num_ops=1, tensor_bytes=1, layer=layer)
            for layer in range(2)
            for i in range(4)
        ]
        for node in nodes:
            start = node.id - node.id % 4
            above = () if start == 0 else (start - 1,)
            node.parents = {0: above, 1: (start,), 2: (start,), 3: (start + 1, start + 2)}[node.id % 4]
        return [TraceGraph.from_nodes(nodes)]

    first, last = rank_graphs(branched, Degrees(1, 1, 1, 2), tokens=8, layers=2, hidden=4)
    assert [first.parents_of(i).tolist() for i in range(5)] == [[], [0], [0], [1, 2], [3]]
    assert [last.parents_of(i).tolist() for i in range(5)] == [[], [0], [1], [1], [2, 3]]
    assert (first.names[4], last.names[0]) == ("L0.send", "L1.recv")


@pytest.mark.parametrize(
    ("strategy", "options", "message"),
    [
        ("tp2ep2pp8", {}, r"strategy: pp: more stages than layers \(got 8\); allowed: 1 to 5"),
        ("tp2ep2", {"microbatches": 65}, r"microbatches: more microbatches than tokens \(got 65\)"),
        ("tp1ep1pp2", {"tokens": 2**20}, r"microbatches: a message of \d+ bytes between stages; more microb"),
    ],
)
def test_what_does_not_fit_is_refused(strategy: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        graphs_of(strategy, **options)


def test_a_replica_alone_on_its_servers_is_as_fast_as_one_group() -> None:
    """On t1 every GPU has a link of its own to one switch, so replicas do not meet."""
    one, two = (
        runner.run(scenario_from_key(f"flash/t1/{strategy}/ring_direct/ib_cc0", tokens=64, layers=2))
        for strategy in ("tp2ep8", "tp2ep8dp2")
    )
    assert (len(one.ranks), len(two.ranks)) == (16, 32)
    assert two.ranks["wall_ns"].reshape(2, 16).tolist() == [one.ranks["wall_ns"].tolist()] * 2


def test_the_stage_after_waits_for_the_stage_before() -> None:
    scenario = scenario_from_key("flash/t1/tp2ep4pp4/ring_direct/ib_cc0", tokens=64, layers=4)
    assert scenario.logical_dims == (2, 4, 1, 4)
    result = runner.run(scenario)
    wall = result.ranks["wall_ns"].reshape(4, 8)
    assert (np.diff(wall, axis=0) > 0).all()
    one_layer = runner.run(scenario_from_key("flash/t1/tp2ep4/ring_direct/ib_cc0", tokens=64, layers=1))
    delivered = 64 * HIDDEN * 2 // 2 * 8 / 400e9 * 1e9
    assert result.wall_ns >= 4 * one_layer.wall_ns + 3 * delivered
    assert result.ranks["gpu_ns"].tolist() == [one_layer.gpu_ns] * 32


def test_replicas_that_share_nics_slow_each_other_down() -> None:
    """On t4 four GPUs share a NIC: each replica gets two of them, alone and together with the other."""
    first = [4 * nic + gpu for nic in range(8) for gpu in (0, 1)]
    second = [host + 2 for host in first]
    one = scenario_from_key("flash/t4/tp2ep8/ring_direct/ib_cc0", tokens=256, layers=1, placement=first)
    two = scenario_from_key(
        "flash/t4/tp2ep8dp2/ring_direct/ib_cc0", tokens=256, layers=1, placement=[*first, *second]
    )
    alone, together = runner.run(one), runner.run(two)
    assert together.gpu_ns == alone.gpu_ns
    assert together.comm_ns > 1.3 * alone.comm_ns
    assert together.ranks["bytes_sent"].sum() == 2 * alone.ranks["bytes_sent"].sum()
