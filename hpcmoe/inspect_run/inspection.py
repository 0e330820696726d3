"""Everything that a look into one run shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcmoe.errors import InputError
from hpcmoe.inspect_run.critical import CriticalPath, critical_path
from hpcmoe.inspect_run.record import Flow, Node, RunRecord, load_record
from hpcmoe.inspect_run.replay import Replay
from hpcmoe.inspect_run.traffic import Traffic
from hpcmoe.store.reader import Results

STRAGGLERS = 12
QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class Span:
    """A node of the chain on one rank, and the chunks of a collective as (chunk, start, exit)."""

    rank: int
    node: Node
    start_ns: int
    end_ns: int
    chunks: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class LinkUse:
    """One directed link over the whole run; ``utilization`` is busy time over simulated time,
    ``critical_ns`` its share of the critical path of the layer looked at."""

    link: int
    name: str
    kind: str
    rate_bps: int
    bytes: int
    utilization: float
    peak_queue_bytes: int
    ecn_marks: int
    pause_ns: int
    critical_ns: int


@dataclass(frozen=True)
class FlowStatistics:
    """Flows of one collective of the layer: completion times against the least possible ones.
    ``slowdowns`` are sorted; quantiles are in the order of :data:`QUANTILES`."""

    node: Node
    flows: int
    bytes: int
    fct_ns: tuple[float, ...]
    ideal_ns: tuple[float, ...]
    slowdowns: np.ndarray

    @property
    def slowdown(self) -> tuple[float, ...]:
        return tuple(float(np.quantile(self.slowdowns, q)) for q in QUANTILES)


@dataclass(frozen=True)
class Straggler:
    """A flow that lost much time, and where."""

    flow: Flow
    node: Node
    ideal_ns: int
    paused_ns: int
    path: tuple[int, ...]

    @property
    def lost_ns(self) -> int:
        return self.flow.fct_ns - self.ideal_ns


class Inspection:
    """One layer of one run. All times in ns of simulated time."""

    def __init__(self, record: RunRecord, layer: int | None = None) -> None:
        self.record = record
        self.layer = record.typical_layer() if layer is None else layer
        self.traffic = Traffic(record)
        self.replay = Replay(record)

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def ranks(self) -> int:
        return len(self.record.ranks)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return self.record.nodes_of(self.layer)

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the layer on the bottleneck rank."""
        return critical_path(self.record, self.layer, self.traffic, self.replay)

    @cached_property
    def spans(self) -> list[Span]:
        """The layer's nodes on every rank, by rank and time."""
        return [self._span(rank, node) for rank in range(self.ranks) for node in self.nodes]

    def _span(self, rank: int, node: Node) -> Span:
        replay = self.replay
        chunks: tuple[tuple[int, int, int], ...] = ()
        if not node.is_compute:
            chunks = tuple(
                (chunk, replay.chunk_start(rank, node.id, chunk), replay.exit(rank, node.id, chunk).time_ns)
                for chunk in replay.chunks(rank, node.id)
            )
        return Span(rank, node, replay.node_start(rank, node.id), replay.node_end(rank, node.id), chunks)

    @cached_property
    def links(self) -> list[LinkUse]:
        """Every directed link, in the order of the file."""
        return [self._link(i, row) for i, row in enumerate(self.record.links)]

    def _link(self, link: int, row: np.void) -> LinkUse:
        return LinkUse(
            link,
            self.traffic.name(link),
            self.traffic.kind(link),
            int(row["rate_bps"]),
            int(row["bytes"]),
            int(row["busy_ns"]) / max(1, int(self.record.run["simulated_ns"])),
            int(row["peak_queue_bytes"]),
            int(row["ecn_marks"]),
            int(row["pause_ns"]),
            self.path.link_ns.get(link, 0),
        )

    def busiest_links(self, count: int) -> list[LinkUse]:
        """Links with the largest share of their time in use, first."""
        return sorted(self.links, key=lambda use: (-use.utilization, use.link))[:count]

    @cached_property
    def flows(self) -> list[Flow]:
        return self.record.flows_of(self.layer)

    @cached_property
    def statistics(self) -> list[FlowStatistics]:
        """One entry per collective of the layer, in order."""
        return [self._statistics(node) for node in self.nodes if not node.is_compute]

    def _statistics(self, node: Node) -> FlowStatistics:
        flows = [flow for flow in self.flows if flow.node == node.id]
        fct = np.array([flow.fct_ns for flow in flows], dtype=np.float64)
        ideal = np.array([self.traffic.ideal(flow).total_ns for flow in flows], dtype=np.float64)
        return FlowStatistics(
            node,
            len(flows),
            sum(flow.bytes for flow in flows),
            tuple(float(np.quantile(fct, q)) for q in QUANTILES),
            tuple(float(np.quantile(ideal, q)) for q in QUANTILES),
            np.sort(fct / ideal),
        )

    @cached_property
    def stragglers(self) -> list[Straggler]:
        """The flows of the layer that lost most time against their least possible time."""
        lost = sorted(
            self.flows,
            key=lambda flow: (self.traffic.ideal(flow).total_ns - flow.fct_ns, flow.start_ns, flow.src),
        )
        return [self._straggler(flow) for flow in lost[:STRAGGLERS]]

    def _straggler(self, flow: Flow) -> Straggler:
        path = self.traffic.path(flow)
        links = (*path, *self.traffic.ack_path(flow))
        paused = self.traffic.paused_ns(links, flow.start_ns, flow.end_ns)
        return Straggler(flow, self.record.chain[flow.node], self.traffic.ideal(flow).total_ns, paused, path)


def inspect_run(results: Results, run: str, layer: int | None = None) -> Inspection:
    """Looks into a finished run that has traces; ``layer`` defaults to the one that stands for most.

    Raises InputError when the run is not in the file, failed, was kept without traces, or has no such
    layer.
    """
    inspection = Inspection(load_record(results, run), layer)
    held = inspection.record.layers
    if inspection.layer not in held:
        shown = f"{held[0]} to {held[-1]}" if held else "none"
        raise InputError("no flows of this layer are recorded", field="layer", value=layer, allowed=shown)
    return inspection
