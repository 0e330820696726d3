"""Physical topologies: nodes, links, and the study's six built from the catalog.

Hosts (GPUs) never forward; every other node is a switch to the simulator, whatever it is in reality.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hpcmoe import catalog
from hpcmoe.errors import InputError
from hpcmoe.units import parse_time_ns


class Link(NamedTuple):
    """A full-duplex link; rate and one-way delay hold for both directions."""

    src: int
    dst: int
    rate_bps: int
    delay_ns: int
    error_rate: float = 0.0


@dataclass(frozen=True)
class Topology:
    """Nodes 0..node_count-1; those not in ``switch_ids`` are hosts. Rank r runs on node r.

    ``server_of_host[h]`` is the server of host h; empty where servers are unknown. ``fabric_ids`` are the
    nodes outside of servers. ``ecn`` has the thresholds that the description gives for rates of its own, as
    (rate_bps, kmin_bytes, kmax_bytes, pmax).
    """

    node_count: int
    switch_ids: tuple[int, ...]
    links: tuple[Link, ...]
    node_names: tuple[str, ...]
    node_kinds: tuple[str, ...]
    server_of_host: tuple[int, ...] = ()
    fabric_ids: tuple[int, ...] = ()
    ecn: tuple[tuple[int, int, int, float], ...] = ()

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.node_count - len(self.switch_ids)

    @cached_property
    def host_ids(self) -> tuple[int, ...]:
        switches = set(self.switch_ids)
        return tuple(node for node in range(self.node_count) if node not in switches)

    def is_host(self, node: int) -> bool:
        return 0 <= node < self.node_count and node not in self._switch_set

    @cached_property
    def _switch_set(self) -> frozenset[int]:
        return frozenset(self.switch_ids)

    @cached_property
    def neighbors(self) -> tuple[tuple[int, ...], ...]:
        """Neighbours of each node, in link order."""
        lists: list[list[int]] = [[] for _ in range(self.node_count)]
        for link in self.links:
            lists[link.src].append(link.dst)
            lists[link.dst].append(link.src)
        return tuple(map(tuple, lists))

    def switches_from(self, host: int) -> dict[int, int]:
        """Switches crossed on a shortest path to each node that ``host`` can reach; only switches forward."""
        hops, queue = {host: 0}, deque([host])
        while queue:
            node = queue.popleft()
            if node != host and self.is_host(node):
                continue
            for peer in self.neighbors[node]:
                if peer not in hops:
                    hops[peer] = hops[node] + 1
                    queue.append(peer)
        return {node: max(0, count - 1) for node, count in hops.items()}

    def reachable_from(self, host: int) -> frozenset[int]:
        """Nodes that packets of ``host`` can get to."""
        return frozenset(self.switches_from(host))

    @cached_property
    def links_apart(self) -> np.ndarray:
        """int16 [hosts, hosts]: links on a shortest path between hosts in the order of ``host_ids``; 0 to
        itself, -1 where no path leads. Breadth first from all hosts at once, a bit per host."""
        hosts = np.array(self.host_ids)
        frontier = np.zeros((self.node_count, -(-len(hosts) // 8)), np.uint8)
        frontier[hosts] = np.packbits(np.eye(len(hosts), dtype=np.uint8), axis=1, bitorder="little")
        reached, apart = frontier.copy(), np.full((len(hosts), len(hosts)), -1, np.int16)
        np.fill_diagonal(apart, 0)
        steps = 0
        while frontier.any():
            steps += 1
            frontier = self._spread(frontier) & ~reached
            reached |= frontier
            bits = np.unpackbits(frontier[hosts], axis=1, count=len(hosts), bitorder="little")
            apart[bits.T.astype(bool)] = steps
            frontier[hosts] = 0  # hosts do not forward
        return apart

    def _spread(self, marks: np.ndarray) -> np.ndarray:
        """Per node, the marks of its neighbours together."""
        sources, targets, starts = self._edges
        gathered = np.zeros_like(marks)
        if len(sources):
            gathered[targets] = np.bitwise_or.reduceat(marks[sources], starts, axis=0)
        return gathered

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sending ends of all directed links, ordered by receiving end; each receiving end, and where its
        links begin."""
        ends = np.array([(link.src, link.dst) for link in self.links], dtype=np.int64).reshape(-1, 2)
        ends = np.concatenate([ends, ends[:, ::-1]])
        ends = ends[np.argsort(ends[:, 1], kind="stable")]
        targets, starts = np.unique(ends[:, 1], return_index=True)
        return ends[:, 0], targets, starts

    def switch_port_rates(self) -> dict[int, Link]:
        """Each rate that a switch port has, with the first link of that rate."""
        rates: dict[int, Link] = {}
        for link in self.links:
            if link.src in self._switch_set or link.dst in self._switch_set:
                rates.setdefault(link.rate_bps, link)
        return rates


def unnamed(node_count: int, switch_ids: Iterable[int], links: Iterable[Link]) -> Topology:
    """A topology from a file without names: hosts are 'host3', switches 'switch8'."""
    switches = tuple(switch_ids)
    members = frozenset(switches)
    kinds = tuple("switch" if node in members else "host" for node in range(node_count))
    names = tuple(f"{kind}{node}" for node, kind in enumerate(kinds))
    return Topology(node_count, switches, tuple(links), names, kinds)


def check(topology: Topology, file: str | None = None) -> None:
    """InputError for ids out of range, self and parallel links, no hosts."""
    count = topology.node_count
    if len(set(topology.switch_ids)) != len(topology.switch_ids):
        raise InputError("a switch id is listed twice", file=file, field="switches")
    for node in topology.switch_ids:
        _check_node(node, count, file, "switches")
    if topology.hosts < 1:
        raise InputError("no host: every node is a switch", file=file, field="switches")
    seen: dict[tuple[int, int], int] = {}
    for index, link in enumerate(topology.links):
        field = f"link {index} ({link.src} {link.dst})"
        _check_node(link.src, count, file, field)
        _check_node(link.dst, count, file, field)
        if link.src == link.dst:
            raise InputError("a link from a node to itself", file=file, field=field)
        if not 0 <= link.error_rate < 1:
            raise InputError(
                "bad error rate", file=file, field=field, value=link.error_rate, allowed="0 to below 1"
            )
        pair = (min(link.src, link.dst), max(link.src, link.dst))
        if pair in seen:
            raise InputError(
                f"parallel links: link {seen[pair]} joins the same two nodes", file=file, field=field
            )
        seen[pair] = index


def _check_node(node: int, count: int, file: str | None, field: str) -> None:
    if not 0 <= node < count:
        raise InputError(
            "node id out of range", file=file, field=field, value=node, allowed=f"0 to {count - 1}"
        )


def external_delay_ns(network: str) -> int:
    """One-way delay of links without one of their own, in a network mode of the catalog."""
    value = catalog.load("networks", network).get("external_delay")
    try:
        return parse_time_ns(value if isinstance(value, str) else "")
    except ValueError:
        raise InputError(
            "bad delay",
            file=catalog.file_of("networks", network),
            field="external_delay",
            value=value,
            allowed="a time with its unit such as 0.7us",
        ) from None


def build(name: str, external_delay_ns: int) -> Topology:
    """A topology of the catalog; the network mode gives the delay of links that have none of their own."""
    from hpcmoe import topology_file  # it needs the types of this module

    entry = topology_file.parse(catalog.load("topologies", name), str(catalog.file_of("topologies", name)))
    return entry.compile(external_delay_ns)
