"""The critical path of a layer: what the bottleneck rank waited for, and what that waited for in turn.

From the end of the layer on the bottleneck rank the path goes backwards, over whatever released each
moment, to the time at which that rank began the layer. Its segments follow each other without gap, so
its parts add up to the layer's time exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from hpcmoe.errors import InputError
from hpcmoe.inspect_run.record import Flow, RunRecord
from hpcmoe.inspect_run.replay import Moment, Replay, Segment
from hpcmoe.inspect_run.traffic import Loads, Traffic

PARTS = (
    "serialization",
    "propagation",
    "queueing",
    "pause",
    "throttling",
    "endpoint",
    "reduction",
    "compute",
)
FLOW_PARTS = PARTS[:5]
Name = TypeVar("Name", str, int)
PART_HELP = {
    "serialization": "putting messages on the slowest link of their way, and one packet on each other link",
    "propagation": "link delays, there and back: a message is complete at the sender's last acknowledgement",
    "queueing": "waiting while a link of a message's way had other traffic to carry",
    "pause": "waiting while a link of the message's way was paused by PFC",
    "throttling": "waiting that no link's traffic explains: window or rate control held the sender back",
    "endpoint": "delay of an endpoint before a first send and after each receipt",
    "reduction": "adding up received values",
    "compute": "compute nodes",
}


@dataclass(frozen=True)
class PathSegment:
    """A segment with its time by part (ns, adds up to its duration) and, for a flow, the link that
    held it and its links."""

    segment: Segment
    parts: dict[str, int]
    holder: int = -1
    path: tuple[int, ...] = ()


@dataclass(frozen=True)
class CriticalPath:
    """Segments in order of time, from ``begin_ns`` to ``end_ns`` without gap.

    ``link_ns``: time per directed link. A flow's propagation time goes to the links that it crossed, the
    rest of its time to the link that held it.
    """

    layer: int
    rank: int
    begin_ns: int
    end_ns: int
    segments: tuple[PathSegment, ...]
    link_ns: dict[int, int] = field(default_factory=dict)

    @property
    def total_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def parts(self) -> dict[str, int]:
        """Time per part in ns; the values add up to the layer's time."""
        return {part: sum(s.parts.get(part, 0) for s in self.segments) for part in PARTS}

    @property
    def largest_part(self) -> str:
        return max(PARTS, key=lambda part: self.parts[part])

    def by_node(self) -> dict[int, dict[str, int]]:
        """Time per part of each chain node on the path."""
        found: dict[int, dict[str, int]] = {}
        for item in self.segments:
            row = found.setdefault(item.segment.node, dict.fromkeys(PARTS, 0))
            for part, time_ns in item.parts.items():
                row[part] += time_ns
        return dict(sorted(found.items()))

    def main_links(self, share: float = 0.5) -> list[int]:
        """The fewest links that together hold ``share`` of the layer's time, the largest first; all
        links where they hold less."""
        wanted, chosen, held = share * self.total_ns, [], 0
        for link, time_ns in sorted(self.link_ns.items(), key=lambda item: (-item[1], item[0])):
            if held >= wanted:
                break
            chosen.append(link)
            held += time_ns
        return chosen


def critical_path(record: RunRecord, layer: int, traffic: Traffic, replay: Replay) -> CriticalPath:
    """The path of one layer on the run's bottleneck rank. Raises InputError where records are missing
    or do not follow the rules of the system layer."""
    nodes = record.nodes_of(layer)
    if layer not in record.layers or not nodes:
        raise InputError(
            "no flows of this layer are recorded", field="layer", value=layer, allowed=record.layers
        )
    rank = int(record.run["bottleneck_rank"])
    begin, end = replay.node_start(rank, nodes[0].id), replay.node_end(rank, nodes[-1].id)
    segments = walk(replay, Moment("node_end", rank, nodes[-1].id, end), begin)
    loads = Loads(
        traffic, [flow for near in (layer - 1, layer) if near >= 0 for flow in record.flows_of(near)]
    )
    path = CriticalPath(layer, rank, begin, end, tuple(_divide(s, traffic, loads) for s in segments))
    check_exact(path)
    return replace(path, link_ns=_link_times(path, traffic))


def walk(replay: Replay, moment: Moment, begin_ns: int) -> list[Segment]:
    """Segments from ``begin_ns`` to the moment, in order of time; the first one may be cut."""
    found: list[Segment] = []
    while moment.time_ns > begin_ns:
        segments, moment = replay.before(moment)
        found += segments
    found = [segment for segment in found if segment.end_ns > begin_ns and segment.duration_ns > 0]
    if found and found[-1].begin_ns < begin_ns:
        found[-1] = replace(found[-1], begin_ns=begin_ns)
    return found[::-1]


def check_exact(path: CriticalPath) -> None:
    """The segments follow each other from begin to end, and the parts add up."""
    reached = path.begin_ns
    for item in path.segments:
        assert item.segment.begin_ns == reached, (item.segment, reached)
        assert sum(item.parts.values()) == item.segment.duration_ns, item
        assert min(item.parts.values()) >= 0, item
        reached = item.segment.end_ns
    assert reached == path.end_ns, (reached, path.end_ns)
    assert sum(path.parts.values()) == path.total_ns


def _divide(segment: Segment, traffic: Traffic, loads: Loads) -> PathSegment:
    flow = segment.flow
    if flow is None:
        return PathSegment(segment, {segment.kind: segment.duration_ns})
    parts = flow_parts(flow, traffic, loads)
    if segment.duration_ns < flow.fct_ns:
        parts = scaled(parts, segment.duration_ns)
    return PathSegment(segment, parts, loads.holder(flow), traffic.path(flow))


def flow_parts(flow: Flow, traffic: Traffic, loads: Loads) -> dict[str, int]:
    """A flow's completion time by part, in ns.

    What exceeds the least time is waiting: as pause while a link of the way was paused, then as queueing
    up to what the most loaded link had to carry for others meanwhile, and the rest as throttling. The
    bytes of a flow count as spread evenly over its life, so the last two are estimates; their sum is not.
    """
    ideal = traffic.ideal(flow)
    waiting = flow.fct_ns - ideal.total_ns
    serialization = ideal.serialization_ns + min(0, waiting)
    waiting = max(0, waiting)
    links = (*traffic.path(flow), *traffic.ack_path(flow))
    pause = min(waiting, traffic.paused_ns(links, flow.start_ns, flow.end_ns))
    queueing = min(waiting - pause, loads.others_ns(flow))
    return {
        "serialization": serialization,
        "propagation": ideal.propagation_ns,
        "queueing": queueing,
        "pause": pause,
        "throttling": waiting - pause - queueing,
    }


def scaled(parts: dict[Name, int], total: int) -> dict[Name, int]:
    """Parts in the same proportion that add up to ``total``: largest remainders are rounded up."""
    whole = max(1, sum(parts.values()))
    floors = {name: value * total // whole for name, value in parts.items()}
    by_remainder = sorted(parts, key=lambda name: (-(parts[name] * total % whole), name))
    for name in by_remainder[: total - sum(floors.values())]:
        floors[name] += 1
    return floors


def _link_times(path: CriticalPath, traffic: Traffic) -> dict[int, int]:
    times: dict[int, int] = {}
    for item in path.segments:
        flow = item.segment.flow
        if flow is None:
            continue
        held = sum(item.parts[part] for part in FLOW_PARTS if part != "propagation")
        times[item.holder] = times.get(item.holder, 0) + held
        for link, delay in _propagation(item, flow, traffic).items():
            times[link] = times.get(link, 0) + delay
    return times


def _propagation(item: PathSegment, flow: Flow, traffic: Traffic) -> dict[int, int]:
    """The segment's propagation time by forward link, a link's delay back counted to the same link."""
    back = {traffic.record.routes.ends[link][::-1]: traffic.delay_ns(link) for link in traffic.ack_path(flow)}
    delays = {
        link: traffic.delay_ns(link) + back.pop(traffic.record.routes.ends[link], 0) for link in item.path
    }
    rest = sum(back.values())  # acknowledgements on another way: to the last link
    delays[item.path[-1]] += rest
    return scaled(delays, item.parts["propagation"])
