"""Traces that the programs of MLCommons Chakra wrote (tests/data/PROVENANCE.md says how) run as they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcmoe import chakra, cli
from hpcmoe.chakra_nodes import Needs
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode

RANKS = 4
SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 10,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 1,
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
    "all-reduce-implementation": ["ring"],
    "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"],
    "all-to-all-implementation": ["direct"],
}
MEMORY = {"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 100, "remote-mem-bw": 50}
Simulate = Callable[..., list[dict[str, int]]]


@pytest.fixture
def simulate(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Runs the traces of a prefix on four hosts around a switch; gives the rows of the ranks."""
    monkeypatch.chdir(tmp_path)
    Path("system.json").write_text(json.dumps(SYSTEM))
    Path("memory.json").write_text(json.dumps(MEMORY))
    Path("logical.json").write_text('{"logical-dims": ["4"]}')
    links = "".join(f"{host} 4 400Gbps 1us 0\n" for host in range(RANKS))
    Path("topology.txt").write_text(f"5 1 4\n4\n{links}")
    config = (data / "stack" / "t6_tp8_dbt_cc0" / "config.txt").read_text()
    Path("config.txt").write_text(config)

    def run(prefix: str | Path, *options: str) -> list[dict[str, int]]:
        files = {
            "system": "system.json", "network": "config.txt", "remote-memory": "memory.json",
            "logical-topology": "logical.json", "workload": str(prefix),
        }  # fmt: skip
        named = [f"--{name}-configuration={path}" for name, path in files.items()]
        assert cli.main(["simulate", *named, "--json", "result.json", *options]) == 0
        rows: list[dict[str, int]] = json.loads(Path("result.json").read_text())["ranks"]
        return rows

    return run


def column(rows: list[dict[str, int]], name: str) -> list[int]:
    return [row[name] for row in rows]


@pytest.mark.parametrize("name", ["ALL_REDUCE", "ALL_TO_ALL", "ALL_GATHER", "REDUCE_SCATTER"])
def test_a_generated_collective_runs_as_one_of_ours(name: str, simulate: Simulate, data: Path) -> None:
    """The generator names no dimensions and counts its ids on from rank to rank."""
    theirs = simulate(data / "chakra" / name)
    node = TraceNode(0, NodeType.COMM_COLL, comm_type=CollectiveType[name], comm_bytes=65536)
    for rank in range(RANKS):
        chakra.write_trace(TraceGraph.from_nodes([node]), f"own.{rank}.et")
    assert theirs == simulate("own")
    assert min(column(theirs, "comm_ns")) > 0


def test_a_generated_broadcast_takes_its_duration_as_upstream_has_it(simulate: Simulate, data: Path) -> None:
    assert column(simulate(data / "chakra" / "BROADCAST"), "wall_ns") == [1] * RANKS


def test_generated_compute_nodes_replay(simulate: Simulate, data: Path) -> None:
    """Two nodes of 5 us one after the other; they have neither operations nor bytes."""
    assert column(simulate(data / "chakra" / "two_comp_nodes_dependent"), "gpu_ns") == [10_000] * RANKS


def test_generated_memory_nodes(simulate: Simulate, data: Path) -> None:
    """1024 bytes at 50 GB/s after 100 ns, without a fraction."""
    rows = simulate(data / "chakra" / "one_remote_mem_load_node")
    assert column(rows, "wall_ns") == [100 + 1024 // 50] * RANKS


def test_what_the_generator_leaves_out_of_messages_is_refused(
    simulate: Simulate, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        simulate(data / "chakra" / "one_comm_send_node")
    assert "one_comm_send_node.0.et: node 56: comm_dst: missing attribute" in capsys.readouterr().err
    assert cli.main(["et", "validate", str(data / "chakra" / "one_comm_send_node")]) == 2
    out = capsys.readouterr().out
    for name in ("comm_dst", "comm_tag", "comm_size"):
        assert f"one_comm_send_node.2.et: node 58: {name}: missing attribute" in out


def test_attributes_of_every_kind_are_read(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = data / "chakra" / "one_metadata_node_all_types.0.et"
    assert cli.main(["et", "print", str(trace), "--node", "0", "--json", "-"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["nodes"]
    values = found["attributes"]
    assert values["sint64"] == -9876543210
    assert values["bytes"] == b"12345".hex()
    assert values["uint64_list"] == [9876543210, 1234567890]


@pytest.mark.parametrize(("name", "compute_us"), [("data", 20 + 30 + 30 + 10), ("hybrid", 50 + 50)])
def test_converted_models_run(name: str, compute_us: int, simulate: Simulate, data: Path) -> None:
    """Durations of the text model; the converter marks no node as the CPU's or the GPU's."""
    rows = simulate(data / "chakra" / name)
    assert column(rows, "gpu_ns") == [compute_us * 1000] * RANKS
    assert min(column(rows, "comm_ns")) > 0
    replayed = ["--system-configuration", "system.json"]
    assert cli.main(["et", "validate", str(data / "chakra" / name), *replayed]) == 0


def test_a_converted_pytorch_trace_runs_without_its_metadata_nodes(
    simulate: Simulate, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All ranks reduce 65536 bytes, then pairs gather 32768: groups and their ranks come from the trace."""
    rows = simulate(data / "chakra" / "pytorch", "--profile", "study")
    assert column(rows, "gpu_ns") == [18_000] * RANKS
    error = capsys.readouterr().err
    assert "4 control dependencies on nodes that the traces do not have are ignored" in error
    trace = chakra.read_trace(data / "chakra" / "pytorch.3.et", 3, Needs(roofline=False))
    assert trace.groups == {0: [], 1: [2, 3]}
    assert trace.dropped == 1


def test_a_metadata_node_in_the_way_stops_upstream_and_is_explained(
    simulate: Simulate, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        simulate(data / "chakra" / "pytorch")
    error = capsys.readouterr().err
    assert "rank 0: node 10 waits for a completion on its rank" in error
    assert "--profile study takes them out" in error


def test_a_dependency_on_an_absent_node_is_a_remark(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["et", "validate", str(data / "chakra" / "pytorch"), "--ranks", "4"]
    assert cli.main(arguments) == 2  # the GPU's compute nodes lack what the roofline needs
    lines = capsys.readouterr().out.splitlines()
    assert "node 2: ctrl_deps: depends on a node that does not exist: ignored here" in lines[0]
    assert {line.split(": ", 1)[1] for line in lines if not line.startswith("remark")} >= {
        "node 11: num_ops: missing attribute",
        "node 11: tensor_size: missing attribute",
    }


def test_a_default_group_of_some_ranks_is_refused() -> None:
    graph = TraceGraph.from_nodes([TraceNode(0, NodeType.COMP)])
    with pytest.raises(
        Exception, match=r"pg_name 0: a METADATA node defines this group, which stands for all"
    ):
        chakra.merge_groups([chakra.TraceFile(graph, {0: [0]})], {}, 2)


def test_children_of_empty_nodes_wait_for_their_parents() -> None:
    kinds = {0: NodeType.COMP, 1: NodeType.METADATA, 2: NodeType.INVALID, 3: NodeType.COMP, 4: NodeType.COMP}
    parents: dict[int, tuple[int, ...]] = {1: (0,), 2: (1, 4), 3: (2,), 4: ()}
    nodes: list[Any] = [TraceNode(i, kind, f"n{i}", parents.get(i, ())) for i, kind in kinds.items()]
    graph = TraceGraph.from_nodes(nodes).without_empty_nodes()
    assert graph.names == ("n0", "n3", "n4")
    assert [graph.parents_of(i).tolist() for i in range(3)] == [[], [0, 2], []]
    only = TraceGraph.from_nodes([TraceNode(0, NodeType.METADATA)])
    assert only.without_empty_nodes() is only
    assert np.array_equal(graph.without_empty_nodes().id, graph.id)
