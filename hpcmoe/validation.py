"""The study's validation microbenchmark (Table 3-9): an all-to-all on a cluster of 32 accelerators.

Published are the platform in a sentence, the simulated and the measured time. Everything else is an
assumption here: each has a default, an option that changes it, and a line in the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hpcmoe import scenario_checks
from hpcmoe.errors import InputError
from hpcmoe.published import load_published
from hpcmoe.runner import Progress, RunResult, run
from hpcmoe.scenario import Scenario, scenario_from_key
from hpcmoe.topology import Link, Topology
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode
from hpcmoe.units import format_rate, format_time
from hpcmoe.upstream.json_files import parse_implementation

PUBLISHED_SIZES = (2 * 10**9, 2 * 2**30)
"""What '2 GB' can mean, in bytes."""
COUNTS = {
    "per-rank": "what each rank sends in all, its own share included, as NCCL's test counts it",
    "in-and-out": "the same, once in place and once out of place: the operation runs twice",
    "total": "what all ranks together send",
}
ALGORITHMS = ("direct", "ring")
# A key of the study gives the network mode, the system and the thresholds; its workload is replaced.
_KEY = "flash/{topology}/tp2ep16/ring_direct/{network}"


@dataclass(frozen=True)
class Assumptions:
    """What the study does not publish. A rate or delay of None is that of the topology's entry."""

    size_bytes: int = PUBLISHED_SIZES[0]
    count: str = "per-rank"
    algorithm: str = "direct"
    topology: str = "validation32"
    network: str = "roce_dcqcn"
    scaleup_rate_bps: int | None = None
    scaleup_delay_ns: int | None = None
    attachment_rate_bps: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        return 2 if self.count == "in-and-out" else 1

    def bytes_per_rank(self, ranks: int) -> int:
        """What a rank sends in one operation, its own share included."""
        return self.size_bytes // ranks if self.count == "total" else self.size_bytes


@dataclass(frozen=True)
class Outcome:
    """Our run of the microbenchmark, and what it was compared with."""

    assumptions: Assumptions
    scenario: Scenario
    result: RunResult

    @property
    def time_us(self) -> float:
        return self.result.wall_ns / 1e3

    @property
    def bandwidth_gbps(self) -> float:
        """Bytes that each rank sends over the time, in GB/s: NCCL's algorithm bandwidth."""
        sent = self.assumptions.bytes_per_rank(self.scenario.ranks) * self.assumptions.operations
        return sent / self.result.wall_ns

    @property
    def published_size(self) -> bool:
        return self.assumptions.size_bytes in PUBLISHED_SIZES

    def relative(self, published_us: float) -> float | None:
        """Our time against a published one; None for another size."""
        return self.time_us / published_us - 1 if self.published_size else None


def run_nccl_all_to_all(assumptions: Assumptions, progress: Progress | None = None) -> Outcome:
    """Simulates the microbenchmark in full. InputError for assumptions that cannot be."""
    scenario = build(assumptions)
    result = run(scenario, progress=progress, record_flows=False, record_pauses=False, record_queues=False)
    return Outcome(assumptions, scenario, result)


def build(assumptions: Assumptions) -> Scenario:
    """The microbenchmark as a scenario: one all-to-all over all ranks, or two in a row."""
    key = _KEY.format(topology=assumptions.topology, network=assumptions.network)
    base = scenario_from_key(key, tokens=1, layers=1, overrides=assumptions.overrides)
    topology = _adjusted(base.topology, assumptions)
    ranks = topology.hosts
    graph = _all_to_alls(assumptions.bytes_per_rank(ranks), assumptions.operations)
    scenario = replace(
        base,
        key=f"nccl-alltoall/{assumptions.topology}/{assumptions.network}",
        topology=topology,
        ecn=_with_rates(base, topology),
        implementations={"all_to_all": [parse_implementation(assumptions.algorithm)]},
        logical_dims=(ranks,),
        traces=[graph] * ranks,
        tokens=None,
        layers=None,
    )
    return replace(scenario, warnings=tuple(scenario_checks.check(scenario)))


def _all_to_alls(size_bytes: int, count: int) -> TraceGraph:
    nodes = []
    for i in range(count):
        node = TraceNode(i, NodeType.COMM_COLL, f"all-to-all {i}", parents=(i - 1,) if i else ())
        node.comm_type, node.comm_bytes = CollectiveType.ALL_TO_ALL, size_bytes
        nodes.append(node)
    return TraceGraph.from_nodes(nodes)


def _adjusted(topology: Topology, assumptions: Assumptions) -> Topology:
    """The topology with other rates and delays on the links of the scale-up domains and of the NICs."""
    kinds = topology.node_kinds

    def adjusted(link: Link) -> Link:
        ends = {kinds[link.src], kinds[link.dst]}
        if "scaleup" in ends:
            link = _with(link, assumptions.scaleup_rate_bps, assumptions.scaleup_delay_ns)
        elif "tor" not in ends:
            link = _with(link, assumptions.attachment_rate_bps, None)
        return link

    if assumptions.scaleup_rate_bps is not None and "scaleup" not in kinds:
        raise InputError(
            "this topology has no scale-up domain", field="--scaleup-rate", value=assumptions.topology
        )
    return replace(topology, links=tuple(map(adjusted, topology.links)))


def _with(link: Link, rate_bps: int | None, delay_ns: int | None) -> Link:
    return link._replace(
        rate_bps=link.rate_bps if rate_bps is None else rate_bps,
        delay_ns=link.delay_ns if delay_ns is None else delay_ns,
    )


def _with_rates(base: Scenario, changed: Topology) -> list[tuple[int, int, int, float]]:
    """The thresholds; a rate that an option brought in has those of the rate that it replaces."""
    rows = {row[0]: row for row in base.ecn}
    for old, new in zip(base.topology.links, changed.links, strict=True):
        if new.rate_bps not in rows and old.rate_bps in rows:
            rows[new.rate_bps] = (new.rate_bps, *rows[old.rate_bps][1:])
    return list(rows.values())


def assumption_lines(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """(what is not published, what was assumed, the option) for every assumption."""
    a, scenario = outcome.assumptions, outcome.scenario
    unit = {PUBLISHED_SIZES[0]: "2 GB of 1e9 bytes", PUBLISHED_SIZES[1]: "2 GiB"}.get(a.size_bytes)
    yield "message size", unit or f"{a.size_bytes} bytes, NOT the published 2 GB", "--bytes"
    yield "what the size counts", f"{a.count}: {COUNTS[a.count]}", "--count"
    yield "algorithm", f"{a.algorithm}, every peer a message per chunk", "--algorithm"
    splits = scenario.system["preferred_dataset_splits"]
    yield "chunks of an operation", str(splits), "--set preferred_dataset_splits"
    yield "wiring", f"catalog topology {a.topology}", "--topology"
    for name, ends, option in _LINKS:
        links = _links(scenario.topology, ends)
        if links:
            yield name, ", ".join(sorted({_link_text(link) for link in links})), option
    yield "congestion control", f"network mode {a.network}", "--network"
    window = "a bandwidth-delay product in flight per flow" if scenario.network["has_window"] else "none"
    yield "window", window, "--set has_window"
    if scenario.network["ecn_enabled"]:
        yield "ECN thresholds", _ecn_text(scenario), "--set ecn"
    if a.overrides:
        changed = ", ".join(f"{name}={value}" for name, value in a.overrides.items())
        yield "parameters changed", changed, "--set"


_LINKS = (
    ("scale-up links", {"gpu", "scaleup"}, "--scaleup-rate, --scaleup-delay"),
    ("NIC attachment", {"pcie", "nic"}, "--attachment-rate"),
    ("NIC to switch", {"nic", "tor"}, "--set external_delay"),
)


def _links(topology: Topology, ends: set[str]) -> list[Link]:
    kinds = topology.node_kinds
    return [link for link in topology.links if {kinds[link.src], kinds[link.dst]} == ends]


def _link_text(link: Link) -> str:
    return f"{format_rate(link.rate_bps)}, {format_time(link.delay_ns)}"


def _ecn_text(scenario: Scenario) -> str:
    used = scenario.topology.switch_port_rates()
    rows = [row for row in scenario.ecn if row[0] in used]
    return "; ".join(
        f"{format_rate(rate)}: {f'{low} to {high} bytes' if most else 'never marks'}"
        for rate, low, high, most in rows
    )


def lines(outcome: Outcome) -> Iterator[str]:
    """The whole outcome as text."""
    published = load_published()["validation"]
    yield f"{published['source']}: {published['platform']}"
    yield f"  {'':<22}{'time (us)':>14}{'GB/s per rank':>16}{'ours relative to it':>22}"
    yield f"  {'ours':<22}{outcome.time_us:>14.1f}{outcome.bandwidth_gbps:>16.2f}"
    for name in ("simulated", "measured"):
        time_us = published[f"{name}_us"]
        relative = outcome.relative(time_us)
        shown = "another size" if relative is None else f"{relative:+.1%}"
        # Their bandwidth under our reading of what the size counts.
        bandwidth = _published_bandwidth(outcome, time_us)
        yield f"  {name + ', published':<22}{time_us:>14.1f}{bandwidth:>16.2f}{shown:>22}"
    yield f"  published error of the simulation: {published['relative_error']:.1%}"
    yield _busiest_link(outcome)
    yield "Not published, and assumed here (option that changes it):"
    yield from (f"  {name:<24}{value} ({option})" for name, value, option in assumption_lines(outcome))


def _busiest_link(outcome: Outcome) -> str:
    links, names = outcome.result.links, outcome.scenario.topology.node_names
    link = links[int(links["busy_ns"].argmax())]
    share = int(link["busy_ns"]) / outcome.result.simulated_ns
    return f"  busiest link: {names[link['src']]} to {names[link['dst']]}, sending {share:.1%} of the time"


def _published_bandwidth(outcome: Outcome, time_us: float) -> float:
    """GB/s per rank of a published time, with 2 GB counted as we count."""
    theirs = outcome.assumptions
    if not outcome.published_size:
        theirs = replace(theirs, size_bytes=PUBLISHED_SIZES[0])
    return theirs.bytes_per_rank(outcome.scenario.ranks) * theirs.operations / (time_us * 1e3)


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Times in us, bandwidths in GB/s per rank."""
    published = load_published()["validation"]
    return {
        "time_us": outcome.time_us,
        "bandwidth_gbps": outcome.bandwidth_gbps,
        "published": {
            name: {"time_us": published[f"{name}_us"], "relative": outcome.relative(published[f"{name}_us"])}
            for name in ("simulated", "measured")
        },
        "bytes": outcome.assumptions.size_bytes,
        "published_size": outcome.published_size,
        "packet_hops": int(outcome.result.packet_hops),
        "seconds": float(outcome.result.seconds),
        "assumptions": [
            {"what": name, "value": value, "option": option}
            for name, value, option in assumption_lines(outcome)
        ],
    }
