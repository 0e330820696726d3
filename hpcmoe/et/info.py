"""Totals over the traces of all ranks: nodes, collectives, volumes, operations, process groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hpcmoe.chakra_nodes import process_groups
from hpcmoe.errors import InputError
from hpcmoe.et import files
from hpcmoe.et.files import RawTrace
from hpcmoe.trace import NodeType

Summary = dict[str, Any]

_POINT_TO_POINT = (NodeType.COMM_SEND, NodeType.COMM_RECV)


def summarise(traces: Iterable[RawTrace]) -> Summary:
    """What the traces hold, as JSON-ready values: counts over all ranks unless a name says per rank."""
    totals = _Totals()
    for trace in traces:
        totals.add(trace)
    return totals.summary()


class _Totals:
    def __init__(self) -> None:
        self._ranks: list[int] = []
        self._per_rank: dict[str, list[int]] = {name: [] for name in ("nodes", "num_ops", "duration_us")}
        self._versions: Counter[str] = Counter()
        self._metadata: dict[str, Any] = {}
        self._types: Counter[str] = Counter()
        self._collectives: Counter[tuple[str, int, str, str]] = Counter()
        self._messages: Counter[tuple[str, int]] = Counter()
        self._sums: Counter[str] = Counter()
        self._attributes: Counter[tuple[str, str]] = Counter()
        self._groups: dict[int, list[int]] = {}
        self._span_us: list[int] = []

    def add(self, trace: RawTrace) -> None:
        self._ranks.append(trace.rank)
        self._versions[trace.metadata.version] += 1
        self._metadata.update(files.attributes(trace.metadata))
        before = self._sums["num_ops"], self._sums["duration_us"]
        for message in trace.nodes:
            self._add_node(message, str(trace.path))
        self._per_rank["nodes"].append(len(trace.nodes))
        for name, start in zip(("num_ops", "duration_us"), before, strict=True):
            self._per_rank[name].append(self._sums[name] - start)
        self._span_us.append(_span_us(trace.nodes))

    def _add_node(self, message: Any, file: str) -> None:
        values = files.attributes(message)
        kind = files.type_name(message.type) + (" (CPU)" if values.get("is_cpu_op") is True else "")
        self._types[kind] += 1
        self._attributes.update((item.name, files.kind_of(item)) for item in message.attr)
        self._sums["data_deps"] += len(message.data_deps)
        self._sums["ctrl_deps"] += len(message.ctrl_deps)
        self._sums["duration_us"] += message.duration_micros
        self._sums["num_ops"] += files.integer(values, "num_ops")
        self._sums["tensor_bytes"] += files.integer(values, "tensor_size")
        size = files.integer(values, "comm_size")
        if message.type == NodeType.COMM_COLL:
            self._collectives[_collective(values, size)] += 1
        elif message.type in _POINT_TO_POINT:
            self._messages[kind, size] += 1
        elif message.type == NodeType.METADATA:
            self._groups.update(_groups(message, file))

    def summary(self) -> Summary:
        return {
            "ranks": len(self._ranks),
            "schema_versions": dict(sorted(self._versions.items())),
            "metadata": {name: files.plain(value) for name, value in self._metadata.items()},
            "nodes_by_type": dict(sorted(self._types.items())),
            "collectives": [
                dict(zip(("type", "bytes", "group", "dims"), key, strict=True), count=count)
                for key, count in sorted(self._collectives.items())
            ],
            "collective_bytes": _bytes_by(self._collectives),
            "messages": [
                {"type": kind, "bytes": size, "count": count}
                for (kind, size), count in sorted(self._messages.items())
            ],
            "message_bytes": _bytes_by(self._messages),
            **{name: self._sums[name] for name in _SUMS},
            "per_rank": {
                name: {"min": min(counts, default=0), "max": max(counts, default=0)}
                for name, counts in {**self._per_rank, "span_us": self._span_us}.items()
            },
            "process_groups": {str(group): ranks for group, ranks in sorted(self._groups.items())},
            "attributes": [
                {"name": name, "kind": kind, "count": count}
                for (name, kind), count in sorted(self._attributes.items())
            ],
        }


_SUMS = ("num_ops", "tensor_bytes", "duration_us", "data_deps", "ctrl_deps")


def _collective(values: dict[str, Any], size: int) -> tuple[str, int, str, str]:
    flags = values.get("involved_dim")
    dims = "all" if not isinstance(flags, list) else ",".join(str(d) for d, flag in enumerate(flags) if flag)
    group = str(values.get("pg_name") or "0")
    return files.collective_name(values.get("comm_type")), size, "all ranks" if group == "0" else group, dims


def _bytes_by(counts: Counter[Any]) -> dict[str, int]:
    """Total size by type: keys of ``counts`` begin with (type, bytes)."""
    total: Counter[str] = Counter()
    for key, count in counts.items():
        total[key[0]] += key[1] * count
    return dict(sorted(total.items()))


def _groups(message: Any, file: str) -> dict[int, list[int]]:
    """Groups of a METADATA node; a faulty text defines none here, 'hpcmoe et validate' names it."""
    try:
        return process_groups(message, file)
    except InputError:
        return {}


def _span_us(nodes: list[Any]) -> int:
    """From the first recorded start to the last recorded end; 0 where starts are not recorded."""
    if not any(node.start_time_micros for node in nodes):
        return 0
    ends = [node.start_time_micros + node.duration_micros for node in nodes]
    return max(ends) - min(node.start_time_micros for node in nodes)


def lines(summary: Summary) -> Iterator[str]:
    """The summary as text."""
    versions = ", ".join(f"{name or 'none'} ({count})" for name, count in summary["schema_versions"].items())
    yield f"{summary['ranks']} rank(s), schema version {versions}"
    for name, value in summary["metadata"].items():
        yield f"  {name}: {value}"
    yield from _section(
        "nodes by type", ((name, count, "") for name, count in summary["nodes_by_type"].items())
    )
    yield from _section(
        "collectives",
        ((row["type"], row["count"], _collective_text(row)) for row in summary["collectives"]),
    )
    yield from _section(
        "messages", ((r["type"], r["count"], f"of {r['bytes']} B") for r in summary["messages"])
    )
    volumes = {**summary["collective_bytes"], **summary["message_bytes"]}
    yield from _section("volume in bytes", ((name, size, "") for name, size in volumes.items()))
    yield from _section("totals", ((name, summary[name], "") for name in _SUMS))
    yield from _section("per rank", ((name, _range(r), "") for name, r in summary["per_rank"].items()))
    groups = summary["process_groups"].items()
    yield from _section("process groups", ((group, len(m), f"ranks: {m or 'all'}") for group, m in groups))
    rows = ((row["name"], row["count"], row["kind"]) for row in summary["attributes"])
    yield from _section("attributes", rows)


def _collective_text(row: dict[str, Any]) -> str:
    return f"of {row['bytes']} B, group {row['group']}, dims {row['dims'] or 'none'}"


def _range(row: dict[str, int]) -> str:
    return str(row["min"]) if row["min"] == row["max"] else f"{row['min']} to {row['max']}"


def _section(title: str, rows: Iterable[tuple[str, Any, str]]) -> Iterator[str]:
    rows = list(rows)
    if rows:
        yield f"{title}:"
    for name, value, text in rows:
        yield f"  {name:<20} {value!s:>14}  {text}".rstrip()
