"""A run as a Chrome trace (JSON), which Perfetto and chrome://tracing open.

One process per rank with its chain of nodes and its chunks, its messages as asynchronous events, and
one process for the queues. Times are in microseconds of simulated time, as the format has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hpcmoe.inspect_run.inspection import Inspection

Event = dict[str, Any]
_CHAIN, _CHUNKS = 0, 1


def trace_events(inspection: Inspection) -> Iterator[Event]:
    """Events of the layer that the inspection looks at."""
    yield from _names(inspection)
    for span in inspection.spans:
        yield _complete(
            span.rank, _CHAIN, span.node.title, span.start_ns, span.end_ns, _node_facts(span.node.layer)
        )
        for chunk, start, end in span.chunks:
            yield _complete(
                span.rank, _CHUNKS, f"{span.node.title}, chunk {chunk}", start, end, {"chunk": chunk}
            )
    yield from _messages(inspection)
    yield from _queues(inspection)


def _node_facts(layer: int) -> dict[str, int]:
    return {"layer": layer}


def _names(inspection: Inspection) -> Iterator[Event]:
    names = inspection.record.topology.node_names
    for rank in range(inspection.ranks):
        yield _meta(rank, "process_name", f"rank {rank} ({names[rank]})")
        yield _meta(rank, "thread_name", "chain", _CHAIN)
        yield _meta(rank, "thread_name", "chunks", _CHUNKS)
    yield _meta(inspection.ranks, "process_name", "queues")


def _meta(pid: int, what: str, name: str, tid: int = 0) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}


def _complete(pid: int, tid: int, name: str, start_ns: int, end_ns: int, facts: dict[str, Any]) -> Event:
    return {
        "ph": "X", "pid": pid, "tid": tid, "name": name, "cat": "node",
        "ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000, "args": facts,
    }  # fmt: skip


def _messages(inspection: Inspection) -> Iterator[Event]:
    critical = {item.segment.flow for item in inspection.path.segments if item.segment.flow}
    for number, flow in enumerate(inspection.flows):
        facts = {
            "bytes": flow.bytes,
            "fct_ns": flow.fct_ns,
            "least_ns": inspection.traffic.ideal(flow).total_ns,
            "chunk": flow.chunk,
            "step": flow.step,
            "links": [inspection.traffic.name(link) for link in inspection.traffic.path(flow)],
            "on critical path": flow in critical,
        }
        title = inspection.record.chain[flow.node].title
        common = {
            "pid": flow.src,
            "tid": _CHUNKS,
            "cat": "message",
            "id": number,
            "name": f"{title} to {flow.dst}",
        }
        yield {**common, "ph": "b", "ts": flow.start_ns / 1000, "args": facts}
        yield {**common, "ph": "e", "ts": flow.end_ns / 1000}


def _queues(inspection: Inspection) -> Iterator[Event]:
    """Sampled queues while the layer ran; a queue that a sample does not list is empty."""
    begin = min(span.start_ns for span in inspection.spans)
    end = max(span.end_ns for span in inspection.spans)
    rows = inspection.record.qlen
    rows = rows[(rows["time_ns"] >= begin) & (rows["time_ns"] <= end)]
    names = inspection.record.topology.node_names
    times = np.unique(rows["time_ns"])
    for src, dst in sorted({(int(row["src"]), int(row["dst"])) for row in rows}):
        mine = rows[(rows["src"] == src) & (rows["dst"] == dst)]
        held = dict(zip(mine["time_ns"].tolist(), mine["bytes"].tolist(), strict=True))
        for time_ns in times.tolist():
            yield {
                "ph": "C", "pid": inspection.ranks, "tid": 0, "name": f"{names[src]} → {names[dst]}",
                "ts": time_ns / 1000, "args": {"bytes": held.get(time_ns, 0)},
            }  # fmt: skip
