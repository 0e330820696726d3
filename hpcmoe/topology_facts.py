"""What a topology offers: nodes, links, distances, bisection bandwidth, oversubscription of each tier."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hpcmoe import catalog
from hpcmoe.parameters import PARAMETERS
from hpcmoe.topology import Topology
from hpcmoe.units import parse_rate_bps

_RESERVE_BYTES = 4096  # of each port of a switch


class LinkKind(NamedTuple):
    """Kinds of the two ends, rate and one-way delay."""

    first: str
    second: str
    rate_bps: int
    delay_ns: int


@dataclass(frozen=True)
class Tier:
    """All switches of a kind at the same distance from the nearest host (``level``), taken together: rates of
    their links towards hosts and away from them."""

    kind: str
    level: int
    switches: int
    down_bps: int
    up_bps: int

    @property
    def oversubscription(self) -> float | None:
        """Down over up; None at the top."""
        return self.down_bps / self.up_bps if self.up_bps else None


def node_counts(topology: Topology) -> dict[str, int]:
    """Nodes by kind, in the order of their ids."""
    return dict(Counter(topology.node_kinds))


def link_counts(topology: Topology) -> dict[LinkKind, int]:
    """Links by kind, in the order of the first of each."""
    kinds = topology.node_kinds
    return dict(Counter(LinkKind(kinds[a], kinds[b], rate, delay) for a, b, rate, delay, _ in topology.links))


def switches_between_hosts(topology: Topology) -> dict[int, int]:
    """Ordered pairs of different hosts by the number of switches on a shortest path; -1: no path."""
    apart = topology.links_apart[~np.eye(topology.hosts, dtype=bool)]
    numbers, counts = np.unique(apart, return_counts=True)
    return {int(n) - 1 if n > 0 else -1: int(count) for n, count in zip(numbers, counts, strict=True)}


def levels(topology: Topology) -> list[int]:
    """Links from each node to the nearest host; -1 for switches that none reaches."""
    found = [-1] * topology.node_count
    queue = deque(topology.host_ids)
    for host in queue:
        found[host] = 0
    while queue:
        node = queue.popleft()
        for peer in topology.neighbors[node]:
            if found[peer] < 0:
                found[peer] = found[node] + 1
                queue.append(peer)
    return found


def tiers(topology: Topology) -> list[Tier]:
    """Tiers from the hosts upwards."""
    level = levels(topology)
    rates: dict[tuple[int, str], list[int]] = {}
    for node in topology.switch_ids:
        rates.setdefault((level[node], topology.node_kinds[node]), [0, 0, 0])[0] += 1
    for link in topology.links:
        for node, peer in ((link.src, link.dst), (link.dst, link.src)):
            if not topology.is_host(node) and level[node] != level[peer]:
                side = 1 if level[peer] < level[node] else 2
                rates[level[node], topology.node_kinds[node]][side] += link.rate_bps
    return [Tier(kind, at, *numbers) for (at, kind), numbers in sorted(rates.items())]


def bisection_bps(topology: Topology) -> int:
    """The most that the first half of the hosts can send to the second half, by links alone: the smallest cut
    between the two (max-flow min-cut; E. A. Dinic, 1970). With an odd number the second half has one more."""
    hosts = topology.host_ids
    side = dict.fromkeys(hosts[: len(hosts) // 2], -2) | dict.fromkeys(hosts[len(hosts) // 2 :], -1)
    flow = _MaxFlow()
    for link in topology.links:
        flow.add(side.get(link.src, link.src), side.get(link.dst, link.dst), link.rate_bps)
    return flow.value(-2, -1) if len(hosts) > 1 else 0


class _MaxFlow:
    """Dinic's algorithm on links that have their rate in each direction."""

    def __init__(self) -> None:
        self._left: dict[int, dict[int, int]] = {}

    def add(self, first: int, second: int, rate: int) -> None:
        for a, b in ((first, second), (second, first)):
            self._left.setdefault(a, {}).setdefault(b, 0)
            self._left[a][b] += rate

    def value(self, source: int, sink: int) -> int:
        total = 0
        while sink in (depth := self._depths(source)):
            ways = {node: iter(peers) for node, peers in self._left.items()}
            current = {node: next(way, None) for node, way in ways.items()}
            while pushed := self._push(source, sink, depth, ways, current):
                total += pushed
        return total

    def _depths(self, source: int) -> dict[int, int]:
        depth, queue = {source: 0}, deque([source])
        while queue:
            node = queue.popleft()
            for peer, left in self._left.get(node, {}).items():
                if left and peer not in depth:
                    depth[peer] = depth[node] + 1
                    queue.append(peer)
        return depth

    def _push(self, source: int, sink: int, depth: dict[int, int], ways: dict, current: dict) -> int:
        """One path along rising depths, as much as it takes; 0 when there is none left."""
        path = [source]
        while path[-1] != sink:
            node = path[-1]
            peer = current[node]
            if peer is None:
                path.pop()
                if not path:
                    return 0
                current[path[-1]] = next(ways[path[-1]], None)
            elif self._left[node][peer] and depth.get(peer, -1) == depth[node] + 1:
                path.append(peer)
            else:
                current[node] = next(ways[node], None)
        steps = list(pairwise(path))
        pushed = min(self._left[a][b] for a, b in steps)
        for a, b in steps:
            self._left[a][b] -= pushed
            self._left[b][a] += pushed
        return pushed


def fabric_of(topology: Topology) -> tuple[int, ...]:
    """Switches whose nearest hosts are in several servers: where only the hosts' servers are known, these are
    taken for the network outside."""
    level = levels(topology)
    servers: list[set[int]] = [set() for _ in level]
    for place, host in enumerate(topology.host_ids):
        servers[host] = {topology.server_of_host[place]}
    for node in sorted(topology.switch_ids, key=lambda node: level[node]):
        below = (peer for peer in topology.neighbors[node] if level[peer] == level[node] - 1)
        servers[node] = set().union(*(servers[peer] for peer in below))
    return tuple(node for node in topology.switch_ids if len(servers[node]) > 1)


def remarks(topology: Topology) -> list[str]:
    """What a user should know before simulating: rates without ECN thresholds, long paths, cut-off hosts,
    too little buffer."""
    buffer_bytes, factor = (PARAMETERS[name].default for name in ("buffer_bytes", "headroom_factor"))
    buffers = buffer_remarks(topology, int(buffer_bytes), factor)
    return [*_ecn_remarks(topology), *_path_remarks(topology), *buffers]


def buffer_remarks(topology: Topology, buffer_bytes: int, headroom_factor: float) -> list[str]:
    """Says so if a switch has less buffer than its ports set aside: the simulator's thresholds then wrap
    around, as upstream's do, and PFC never acts there."""
    aside = dict.fromkeys(topology.switch_ids, 0)
    for link in topology.links:
        headroom = int(link.rate_bps * link.delay_ns // (8 * 10**9) * headroom_factor)
        for node in {link.src, link.dst} & aside.keys():
            aside[node] += headroom + _RESERVE_BYTES
    worst = max(aside, key=aside.__getitem__, default=-1)
    over = sum(size > buffer_bytes for size in aside.values())
    if not over:
        return []
    size_mb, buffer_mb = aside[worst] / 1e6, buffer_bytes / 1e6
    text = f"PFC never acts on {over} switches: the ports of {topology.node_names[worst]} set {size_mb:g} MB"
    return [f"{text} aside and its buffer has {buffer_mb:g} MB; raise buffer_bytes or lower headroom_factor"]


def _ecn_remarks(topology: Topology) -> Iterable[str]:
    known = {parse_rate_bps(row["rate"]) for row in catalog.study()["ecn"]} | {row[0] for row in topology.ecn}
    for rate in sorted(topology.switch_port_rates().keys() - known):
        yield (
            f"no ECN thresholds for {rate / 1e9:g} Gbps: networks with ECN (roce_*) need them, as ecn of the "
            f"link type or with --set ecn={rate / 1e9:g}Gbps:KMIN_BYTES:KMAX_BYTES:PMAX"
        )


def _path_remarks(topology: Topology) -> Iterable[str]:
    crossed = switches_between_hosts(topology)
    limit = PARAMETERS["int_max_hops"].default
    far = sum(count for switches, count in crossed.items() if switches > limit)
    if far:
        yield (
            f"{far / sum(crossed.values()):.1%} of host pairs are more than {limit} switches apart: under "
            "HPCC they run without control (int_max_hops)"
        )
    if -1 in crossed:
        yield f"{crossed[-1]} ordered pairs of hosts have no path to each other"
