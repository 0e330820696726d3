"""Reading and writing Chakra execution traces (.et).

A file is a sequence of records, each a base-128 varint length followed by that many bytes of protobuf:
first one GlobalMetadata, then Nodes. Both data and control dependencies gate a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from hpcmoe.chakra_nodes import Needs, convert_node, process_groups
from hpcmoe.chakra_schema import GlobalMetadata, Node
from hpcmoe.errors import InputError
from hpcmoe.trace import ALL_DIMS, NodeType, TraceGraph, TraceNode, find_cycle

SCHEMA_VERSION = "0.0.4"
_MAX_VARINT_BYTES = 5
_MAX_INT64 = 2**63 - 1
_JSON = re.compile(rb'\s*[{\[]\s*["{\[]')
_LAYER_NAME = re.compile(r"L(\d+)\.")


@dataclass(frozen=True)
class TraceFile:
    """A trace and the communicator groups that its METADATA nodes define (empty list: all ranks).

    ``dropped``: control dependencies that were left out because the file does not have the node.
    """

    graph: TraceGraph
    groups: Mapping[int, list[int]] = field(default_factory=dict)
    dropped: int = 0


def trace_path(prefix: str | Path, rank: int) -> Path:
    """Upstream's file name of one rank."""
    return Path(f"{prefix}.{rank}.et")


def read_trace(path: str | Path, rank: int, needs: Needs = Needs()) -> TraceFile:  # noqa: B008 (frozen)
    """The trace of ``rank``. InputError names the file, the node and the field."""
    return _parse(_read_bytes(Path(path)), str(path), rank, needs)


def read_traces(prefix: str | Path, ranks: int, needs: Needs = Needs()) -> list[TraceFile]:  # noqa: B008
    """The traces ``<prefix>.<rank>.et`` of all ranks; ranks with equal files share one object."""
    shared: dict[bytes, TraceFile] = {}
    traces = []
    for rank in range(ranks):
        path = trace_path(prefix, rank)
        data = _read_bytes(path)
        trace = shared.get(data)
        if trace is None:
            trace = _parse(data, str(path), rank, needs)
            if not _names_own_rank(trace.graph):
                shared[data] = trace
        traces.append(trace)
    return traces


def _names_own_rank(graph: TraceGraph) -> bool:
    """Sends and receives are checked against the rank, so such files are read for each rank."""
    return bool(np.isin(graph.type, (NodeType.COMM_SEND, NodeType.COMM_RECV)).any())


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the trace: {error.strerror}", file=path) from error


def _records(data: bytes, file: str) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        length, start = _varint(data, position, file)
        if start + length > len(data):
            raise InputError(f"truncated: the record at byte {position} is cut off", file=file)
        yield data[start : start + length]
        position = start + length


def _varint(data: bytes, position: int, file: str) -> tuple[int, int]:
    """(value, position after it)."""
    value = 0
    for i, byte in enumerate(data[position : position + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, position + i + 1
    raise InputError(f"not a trace: no record length at byte {position}", file=file)


def _decode(message: Any, record: bytes, index: int, file: str) -> Any:
    try:
        message.ParseFromString(record)
    except (DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a trace: record {index} is no {type(message).__name__}", file=file) from error
    return message


def read_messages(path: str | Path) -> tuple[Any, list[Any]]:
    """The GlobalMetadata of a trace and its Node messages as they stand, unchecked and in file order."""
    return _messages(_read_bytes(Path(path)), str(path))


def _messages(data: bytes, file: str) -> tuple[Any, list[Any]]:
    if data[:2] == b"\x1f\x8b":
        raise InputError("compressed traces are not read: gunzip it first", file=file)
    try:
        return _decoded(data, file)
    except InputError:
        if _JSON.match(data):
            text = "a trace in JSON: only the protobuf form is read, as chakra_converter writes it"
            raise InputError(text, file=file) from None
        raise


def _decoded(data: bytes, file: str) -> tuple[Any, list[Any]]:
    records = _records(data, file)
    first = next(records, None)
    if first is None:
        raise InputError("the trace is empty", file=file)
    metadata = _decode(GlobalMetadata(), first, 0, file)
    return metadata, [_decode(Node(), record, i, file) for i, record in enumerate(records, 1)]


def _parse(data: bytes, file: str, rank: int, needs: Needs) -> TraceFile:
    messages, parents = _merge(_messages(data, file)[1])
    if not messages:
        raise InputError("the trace has no node", file=file)
    dropped = _drop_absent(messages, parents)
    _check_graph(parents, file)
    nodes = [
        _with_place(convert_node(message, file, rank, needs), message.name, parents[message.id])
        for message in messages.values()
    ]
    groups: dict[int, list[int]] = {}
    for message in sorted(messages.values(), key=lambda m: m.id):
        if message.type == NodeType.METADATA:
            groups.update(process_groups(message, file))
    return TraceFile(TraceGraph.from_nodes(nodes), groups, dropped)


def _drop_absent(messages: Mapping[int, Any], parents: dict[int, set[int]]) -> int:
    """Takes control dependencies on nodes that the file does not have out, and counts them.

    The converter from PyTorch leaves the root of the call stack out and the dependencies on it in.
    """
    count = 0
    for node, message in messages.items():
        absent = {parent for parent in message.ctrl_deps if parent not in parents}
        absent.difference_update(message.data_deps)
        parents[node] -= absent
        count += len(absent)
    return count


def _merge(messages: Iterable[Any]) -> tuple[dict[int, Any], dict[int, set[int]]]:
    """By id: the last node of that id, and the dependencies of all of them."""
    nodes: dict[int, Any] = {}
    parents: dict[int, set[int]] = {}
    for message in messages:
        nodes[message.id] = message
        parents.setdefault(message.id, set()).update(message.data_deps, message.ctrl_deps)
    return nodes, parents


def _with_place(node: TraceNode, name: str, parents: set[int]) -> TraceNode:
    node.name = name
    node.parents = tuple(parents)
    match = _LAYER_NAME.match(name)
    node.layer = int(match.group(1)) if match and len(match.group(1)) < 10 else -1
    return node


def _check_graph(parents: dict[int, set[int]], file: str) -> None:
    for node, node_parents in parents.items():
        for parent in node_parents:
            if parent not in parents:
                raise InputError(
                    "depends on a node that does not exist", file=file, field=f"node {node}", value=parent
                )
    ids = sorted(parents)
    index = {node: i for i, node in enumerate(ids)}
    cycle = find_cycle([[index[p] for p in parents[node]] for node in ids])
    if cycle:
        text = " -> ".join(str(ids[i]) for i in [*cycle, cycle[0]])
        raise InputError(f"the dependencies form a cycle: {text}", file=file, field=f"node {ids[cycle[0]]}")


def merge_groups(
    traces: list[TraceFile], groups: Mapping[int, list[int]], ranks: int
) -> tuple[list[TraceGraph], dict[int, list[int]]]:
    """The graphs and one table of groups, from a group file and the traces' own definitions.

    A trace's definition overrides the file's. Ranks may give one id to different sets of ranks; all but
    the first then get an unused id, which also replaces it in their graphs.
    """
    merged = {group: list(members) for group, members in groups.items()}
    defined: dict[tuple[int, tuple[int, ...]], int] = {}
    graphs = []
    for trace in traces:
        renumbered = {}
        for group, members in trace.groups.items():
            everyone = tuple(members) or tuple(range(ranks))
            if group == 0:  # PyTorch's default group
                _check_world(everyone, ranks)
                continue
            key = (group, everyone)
            if key not in defined:
                taken = group in {other for other, _ in defined}
                defined[key] = _unused(merged, defined) if taken else group
                merged[defined[key]] = list(everyone)
            renumbered[group] = defined[key]
        graphs.append(_renumber(trace.graph, renumbered))
    return graphs, merged


def _check_world(members: tuple[int, ...], ranks: int) -> None:
    if sorted(members) != list(range(ranks)):
        text = "a METADATA node defines this group, which stands for all ranks"
        raise InputError(text, field="pg_name 0", value=list(members), allowed=f"all of 0 to {ranks - 1}")


def _unused(merged: Mapping[int, list[int]], defined: Mapping[Any, int]) -> int:
    return max([0, *merged, *defined.values(), *(group for group, _ in defined)]) + 1


def _renumber(graph: TraceGraph, mapping: Mapping[int, int]) -> TraceGraph:
    changed = {old: new for old, new in mapping.items() if old != new}
    if not changed:
        return graph
    group = np.array([changed.get(int(g), int(g)) for g in graph.group], dtype=graph.group.dtype)
    return replace(graph, group=group)


def encode_trace(graph: TraceGraph, dims: int = 2) -> bytes:
    """The bytes of a .et file; collectives write ``dims`` flags in involved_dim."""
    records = [GlobalMetadata(version=SCHEMA_VERSION).SerializeToString()]
    records += [_node_message(graph, i, dims).SerializeToString() for i in range(len(graph))]
    return b"".join(_encode_varint(len(record)) + record for record in records)


def write_trace(graph: TraceGraph, path: str | Path, dims: int = 2) -> None:
    """Writes one .et file."""
    Path(path).write_bytes(encode_trace(graph, dims))


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _node_message(graph: TraceGraph, i: int, dims: int) -> Any:
    kind = NodeType(int(graph.type[i]))
    message = Node(id=int(graph.id[i]), type=int(kind), duration_micros=int(graph.duration_us[i]))
    message.name = graph.names[i] if graph.names else f"node{message.id}"
    message.data_deps.extend(graph.id[graph.parents_of(i)].tolist())
    message.attr.add(name="is_cpu_op", bool_val=bool(graph.is_cpu_op[i]))
    for name, value_kind, column in _WRITTEN[kind]:
        value = int(getattr(graph, column)[i])
        value_kind = "uint64_val" if value > _MAX_INT64 else value_kind
        message.attr.add(name=name, **{value_kind: value})
    if kind == NodeType.COMM_COLL:
        _add_collective(message, graph, i, dims)
    return message


def _add_collective(message: Any, graph: TraceGraph, i: int, dims: int) -> None:
    involved = int(graph.involved_dims[i])
    if involved != ALL_DIMS:
        flags = [bool(involved >> k & 1) for k in range(max(dims, involved.bit_length()))]
        message.attr.add(name="involved_dim").bool_list.values.extend(flags)
    if graph.comm_priority[i]:
        message.attr.add(name="comm_priority", uint32_val=int(graph.comm_priority[i]))
    if graph.group[i]:
        message.attr.add(name="pg_name", string_val=str(int(graph.group[i])))


# Attributes written for each node type: name, kind of value, column.
_MEMORY = (("tensor_size", "uint64_val", "tensor_bytes"),)
_WRITTEN: dict[NodeType, tuple[tuple[str, str, str], ...]] = {
    NodeType.INVALID: (),
    NodeType.METADATA: (),
    NodeType.MEM_LOAD: _MEMORY,
    NodeType.MEM_STORE: _MEMORY,
    NodeType.COMP: (("num_ops", "int64_val", "num_ops"), *_MEMORY),
    NodeType.COMM_SEND: (
        ("comm_size", "int64_val", "comm_bytes"),
        ("comm_dst", "uint32_val", "peer"),
        ("comm_tag", "uint32_val", "tag"),
    ),
    NodeType.COMM_RECV: (
        ("comm_size", "int64_val", "comm_bytes"),
        ("comm_src", "uint32_val", "peer"),
        ("comm_tag", "uint32_val", "tag"),
    ),
    NodeType.COMM_COLL: (
        ("comm_type", "int64_val", "comm_type"),
        ("comm_size", "int64_val", "comm_bytes"),
    ),
}
