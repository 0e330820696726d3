import gzip
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcmoe import chakra
from hpcmoe.chakra_nodes import Needs
from hpcmoe.chakra_schema import GlobalMetadata, Node
from hpcmoe.errors import InputError
from hpcmoe.model import load_model
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode, find_cycle
from hpcmoe.workload import build_workload

Attributes = dict[str, Any]


def record(message: Any) -> bytes:
    data = message.SerializeToString()
    assert len(data) < 2**14
    return bytes([len(data)] if len(data) < 128 else [len(data) & 127 | 128, len(data) >> 7]) + data


def node(id: int, kind: int, attributes: Attributes | None = None, **fields: Any) -> Any:
    """A message; attribute values are (kind, value) pairs."""
    message = Node(id=id, type=kind, **fields)
    for name, (value_kind, value) in (attributes or {}).items():
        attribute = message.attr.add(name=name)
        if value_kind.endswith("_list"):
            getattr(attribute, value_kind).values.extend(value)
        else:
            setattr(attribute, value_kind, value)
    return message


def comp(id: int, **fields: Any) -> Any:
    return node(
        id, NodeType.COMP, {"num_ops": ("uint64_val", 10), "tensor_size": ("uint64_val", 1)}, **fields
    )


def coll(id: int, **attributes: Any) -> Any:
    base: Attributes = {"comm_type": ("int64_val", 0), "comm_size": ("int64_val", 64)}
    merged = {name: value for name, value in (base | attributes).items() if value is not None}
    return node(id, NodeType.COMM_COLL, merged)


def send(id: int, **attributes: Any) -> Any:
    base: Attributes = {
        "comm_dst": ("int32_val", 1),
        "comm_tag": ("int32_val", 5),
        "comm_size": ("int64_val", 100),
    }
    merged = {name: value for name, value in (base | attributes).items() if value is not None}
    return node(id, NodeType.COMM_SEND, merged)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(*messages: Any, rank: int = 0) -> Path:
        path = tmp_path / f"et.{rank}.et"
        path.write_bytes(record(GlobalMetadata(version="0.0.4")) + b"".join(map(record, messages)))
        return path

    return write_file


@pytest.mark.parametrize(("tp", "ep"), [(2, 16), (16, 2)])
def test_a_generated_layer_is_the_reference_file(tp: int, ep: int, data: Path) -> None:
    """Byte for byte, so names, volumes, operations, attribute kinds and dependencies agree."""
    graph = build_workload(load_model("flash"), tp, ep, 4096, 1).graph
    assert chakra.encode_trace(graph) == (data / f"upstream/flash_layer_tp{tp}ep{ep}.et").read_bytes()


def test_reading_the_reference_file(data: Path) -> None:
    graph = chakra.read_trace(data / "upstream/flash_layer_tp2ep16.et", 0).graph
    assert graph.names == ("L0.attn", "L0.ar1", "L0.disp", "L0.exp", "L0.comb", "L0.ffn", "L0.ar2")
    assert graph.num_ops.tolist() == [474165000000, 0, 0, 51539607552, 0, 316110000000, 0]
    assert graph.tensor_bytes.tolist() == [1000, 0, 0, 1000, 0, 3000000, 0]
    assert graph.comm_bytes.tolist() == [0, 33554432, 12582912, 0, 12582912, 0, 33554432]
    assert graph.involved_dims.tolist()[1:3] == [0b01, 0b10]
    assert graph.comm_type.tolist()[1:3] == [CollectiveType.ALL_REDUCE, CollectiveType.ALL_TO_ALL]
    assert graph.layer.tolist() == [0] * 7
    assert [graph.parents_of(i).tolist() for i in range(7)] == [[], [0], [1], [2], [3], [4], [5]]


@st.composite
def graphs(draw: st.DrawFn) -> TraceGraph:
    """Traces of rank 0 with every node type and random earlier parents."""
    ids = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8, unique=True).map(sorted))
    u32, positive = st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1)
    nodes = []
    for i, id in enumerate(ids):
        item = TraceNode(id, draw(st.sampled_from(list(NodeType))), name=f"n{i}")
        item.parents = draw(st.lists(st.sampled_from(ids[:i]), unique=True)) if i else ()
        item.duration_us = draw(st.integers(0, 2**64 - 1))
        if item.type in (NodeType.COMP, NodeType.MEM_LOAD, NodeType.MEM_STORE):
            item.tensor_bytes = draw(st.integers(0, 2**64 - 1))
            item.is_cpu_op = draw(st.booleans())
        if item.type == NodeType.COMP:
            item.num_ops = draw(st.integers(1, 2**63 - 1))
        if item.type in (NodeType.COMM_SEND, NodeType.COMM_RECV):
            item.peer, item.tag, item.comm_bytes = draw(u32), draw(u32), draw(positive)
        if item.type == NodeType.COMM_COLL:
            item.comm_type = draw(st.sampled_from(list(CollectiveType)))
            item.comm_bytes, item.comm_priority = draw(positive), draw(u32)
            item.involved_dims = draw(st.integers(0, 2**32 - 1))
            item.group = draw(st.integers(0, 2**31 - 1))
        nodes.append(item)
    return TraceGraph.from_nodes(nodes)


@settings(deadline=None)
@given(graphs())
def test_what_is_written_reads_back(graph: TraceGraph) -> None:
    again = chakra._parse(chakra.encode_trace(graph), "x", 0, Needs()).graph
    for name, array in graph.arrays().items():
        np.testing.assert_array_equal(getattr(again, name), array, err_msg=name)
    assert again.names == graph.names
    assert again.digest() == graph.digest()


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_an_input_error_or_a_trace(data: bytes) -> None:
    text = "x: "
    try:
        chakra._parse(data, "x", 0, Needs())
    except InputError as error:
        text = str(error)
    assert text.startswith("x: ")


def test_every_truncation_is_an_error(data: Path) -> None:
    whole = (data / "upstream/flash_layer_tp2ep16.et").read_bytes()
    ends, position = {0}, 0
    while position < len(whole):
        position += 1 + whole[position]
        ends.add(position)
    for length in range(len(whole)):
        if length not in ends:
            with pytest.raises(InputError, match="truncated|no record length"):
                chakra._parse(whole[:length], "x", 0, Needs())


def test_reading_is_fast(tmp_path: Path) -> None:
    """32 different traces of more than 500 nodes; equal ones would be read once."""
    model = load_model("k3")
    for rank in range(32):
        chakra.write_trace(build_workload(model, 2, 16, 4096 + rank).graph, tmp_path / f"et.{rank}.et")
    started = time.process_time()
    files = chakra.read_traces(tmp_path / "et", 32)
    assert time.process_time() - started < 1.0
    assert len({id(file.graph) for file in files}) == 32


def test_ranks_with_equal_files_share_a_trace(tmp_path: Path) -> None:
    graph = build_workload(load_model("flash"), 2, 16, 8, 1).graph
    for rank in range(4):
        chakra.write_trace(graph, tmp_path / f"et.{rank}.et")
    assert len({id(file) for file in chakra.read_traces(tmp_path / "et", 4)}) == 1


def test_integer_and_bool_kinds_convert(write: Callable[..., Path]) -> None:
    kinds = (
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
    )
    messages = [coll(i, comm_size=(f"{kind}_val", 77)) for i, kind in enumerate(kinds)]
    messages.append(coll(99, comm_size=("bool_val", True)))
    graph = chakra.read_trace(write(*messages), 0).graph
    assert graph.comm_bytes.tolist() == [77] * len(kinds) + [1]


def test_the_first_attribute_of_a_name_counts(write: Callable[..., Path]) -> None:
    message = coll(0)
    message.attr.add(name="comm_size", int64_val=1)
    assert chakra.read_trace(write(message), 0).graph.comm_bytes.tolist() == [64]


def test_defaults_of_a_collective(write: Callable[..., Path]) -> None:
    graph = chakra.read_trace(write(coll(3)), 0).graph
    assert (graph.involved_dims[0], graph.comm_priority[0], graph.group[0], graph.layer[0]) == (0xF, 0, 0, -1)


def test_both_kinds_of_dependency_gate(write: Callable[..., Path]) -> None:
    graph = chakra.read_trace(write(comp(1), comp(2), comp(5, data_deps=[1, 1], ctrl_deps=[2, 1])), 0).graph
    assert graph.parents_of(2).tolist() == [0, 1]


def test_the_last_of_equal_ids_counts_with_all_dependencies(write: Callable[..., Path]) -> None:
    first, second = comp(7, data_deps=[1]), coll(7)
    graph = chakra.read_trace(write(comp(1), first, comp(2), second), 0).graph
    assert graph.type.tolist() == [NodeType.COMP, NodeType.COMP, NodeType.COMM_COLL]
    assert graph.parents_of(2).tolist() == [0]


def test_order_in_the_file_does_not_matter(write: Callable[..., Path]) -> None:
    graph = chakra.read_trace(write(comp(5, data_deps=[2]), comp(2)), 0).graph
    assert graph.id.tolist() == [2, 5]
    assert graph.parents_of(1).tolist() == [0]


BAD_NODES: dict[str, tuple[Any, str]] = {
    "no num_ops": (node(4, NodeType.COMP, {"tensor_size": ("int64_val", 1)}), "node 4: num_ops: missing"),
    "no tensor_size": (node(4, NodeType.COMP, {"num_ops": ("int64_val", 1)}), "node 4: tensor_size: missing"),
    "no operations": (
        node(4, NodeType.COMP, {"num_ops": ("int64_val", 0), "tensor_size": ("int64_val", 1)}),
        "node 4: num_ops: .*needs operations",
    ),
    "float": (coll(4, comm_size=("double_val", 1.0)), "comm_size: not an integer attribute .*double_val"),
    "string": (coll(4, comm_size=("string_val", "1")), "comm_size: not an integer attribute"),
    "list": (coll(4, comm_size=("int64_list", [1])), "comm_size: not an integer attribute"),
    "negative": (coll(4, comm_size=("int64_val", -1)), "comm_size: out of range"),
    "wide": (coll(4, comm_priority=("int64_val", 2**32)), "comm_priority: out of range"),
    "no comm_type": (coll(4, comm_type=None), "comm_type: missing"),
    "no comm_size": (coll(4, comm_size=None), "comm_size: missing"),
    "gather": (coll(4, comm_type=("int64_val", 3)), "unsupported collective GATHER .*ALL_REDUCE"),
    "beyond": (coll(4, comm_type=("int64_val", 12)), "unsupported collective unknown"),
    "involved_dim": (coll(4, involved_dim=("int64_list", [1, 0])), "involved_dim: not a bool_list"),
    "pg_name number": (coll(4, pg_name=("int64_val", 1)), "pg_name: not a string attribute"),
    "pg_name text": (coll(4, pg_name=("string_val", "tp")), "pg_name: not a group id"),
    "cpu collective": (coll(4, is_cpu_op=("bool_val", True)), "is_cpu_op: .*cannot run on the CPU"),
    "send nothing": (send(4, comm_size=("int64_val", 0)), "comm_size: .*never completes"),
    "send 2 GiB": (send(4, comm_size=("int64_val", 2**31)), "comm_size: .*never completes"),
    "send nowhere": (send(4, comm_dst=None), "comm_dst: missing"),
    "send untagged": (send(4, comm_tag=None), "comm_tag: missing"),
    "send for another": (send(4, comm_src=("int32_val", 3)), "comm_src: names another rank"),
    "memory": (node(4, NodeType.MEM_LOAD), "tensor_size: missing"),
    "type": (node(4, 8), "node 4: type: unknown node type"),
    "parent": (comp(4, data_deps=[9]), "node 4: depends on a node that does not exist .got 9"),
    "negative groups": (
        node(4, NodeType.METADATA, inputs={"values": '[\'[{"pg_name": "-1", "ranks": [0]}]\']'}),
        "node 4: inputs.values: bad process groups",
    ),
    "groups": (
        node(4, NodeType.METADATA, inputs={"values": "['[{]']"}),
        "node 4: inputs.values: bad process groups",
    ),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_nodes_name_file_node_and_field(case: str, write: Callable[..., Path]) -> None:
    message, text = BAD_NODES[case]
    path = write(message)
    with pytest.raises(InputError, match=text) as error:
        chakra.read_trace(path, 0)
    assert str(error.value).startswith(f"{path}: node 4")


def test_an_attribute_without_a_value(write: Callable[..., Path]) -> None:
    message = coll(4, comm_size=None)
    message.attr.add(name="comm_size")
    with pytest.raises(InputError, match="not an integer attribute .*no value"):
        chakra.read_trace(write(message), 0)


def test_only_what_will_be_read_is_needed(write: Callable[..., Path]) -> None:
    bare = node(0, NodeType.COMP, duration_micros=3)
    assert chakra.read_trace(write(bare), 0, Needs(roofline=False)).graph.duration_us.tolist() == [3]
    cpu = node(0, NodeType.COMP, {"is_cpu_op": ("bool_val", True)})
    assert chakra.read_trace(write(cpu), 0).graph.is_cpu_op.tolist() == [True]
    every = [node(kind, kind) for kind in NodeType]
    assert len(chakra.read_trace(write(*every), 0, Needs(replay_only=True)).graph) == len(every)


def test_a_cycle_is_named(write: Callable[..., Path]) -> None:
    loop = (comp(1), comp(2, data_deps=[1, 4]), comp(3, ctrl_deps=[2]), comp(4, data_deps=[3]))
    with pytest.raises(InputError, match=r"node 2: the dependencies form a cycle: 2 -> 4 -> 3 -> 2"):
        chakra.read_trace(write(*loop), 0)


def test_find_cycle_of_an_acyclic_graph() -> None:
    assert find_cycle([[], [0], [0, 1]]) == []


def test_files_that_are_no_trace(tmp_path: Path, write: Callable[..., Path]) -> None:
    path = tmp_path / "et.0.et"
    for data, text in (
        (b"", "is empty"),
        (gzip.compress(b"x"), "compressed"),
        (b"\xff" * 6, "no record length at byte 0"),
        (b"\x02\x0a\x05", "record 0 is no GlobalMetadata"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=text):
            chakra.read_trace(path, 0)
    with pytest.raises(InputError, match="has no node"):
        chakra.read_trace(write(), 0)
    with pytest.raises(InputError, match="cannot read the trace"):
        chakra.read_trace(tmp_path / "none.et", 0)


def metadata(id: int, groups: str) -> Any:
    return node(id, NodeType.METADATA, inputs={"values": f"['{groups}']"})


def read_ranks(write: Callable[..., Path], ranks: Iterable[Iterable[Any]]) -> list[chakra.TraceFile]:
    paths = [write(*messages, rank=rank) for rank, messages in enumerate(ranks)]
    return chakra.read_traces(paths[0].parent / "et", len(paths))


def test_groups_of_metadata_nodes(write: Callable[..., Path]) -> None:
    text = '[{"pg_name": "3", "ranks": [0, 1]}, {"pg_name": "4", "ranks": []}]'
    files = read_ranks(write, [[metadata(0, text), coll(1, pg_name=("string_val", "3"))]] * 3)
    graphs, groups = chakra.merge_groups(files, {3: [0, 2], 9: [1, 2]}, 3)
    assert groups == {3: [0, 1], 4: [0, 1, 2], 9: [1, 2]}
    assert graphs[0].group.tolist() == [0, 3]


def test_one_id_for_different_groups_is_renumbered(write: Callable[..., Path]) -> None:
    uses = coll(1, pg_name=("string_val", "1"))
    low, high = (metadata(0, f'[{{"pg_name": "1", "ranks": {ranks}}}]') for ranks in ("[0, 1]", "[2, 3]"))
    files = read_ranks(write, [[low, uses], [low, uses], [high, uses], [high, uses]])
    graphs, groups = chakra.merge_groups(files, {}, 4)
    assert groups == {1: [0, 1], 2: [2, 3]}
    assert [graph.group.tolist()[1] for graph in graphs] == [1, 1, 2, 2]


def test_sends_are_checked_for_each_rank(write: Callable[..., Path]) -> None:
    message = send(4, comm_dst=("int32_val", 2), comm_src=("int32_val", 0))
    with pytest.raises(InputError, match=r"et\.1\.et: node 4: comm_src"):
        read_ranks(write, [[message], [message]])
