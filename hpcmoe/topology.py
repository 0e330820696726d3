"""Physical topologies: nodes, links, and the study's six built from the catalog.

Hosts (GPUs) never forward; every other node is a switch to the simulator, whatever it is in reality.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from hpcmoe import catalog
from hpcmoe.errors import InputError
from hpcmoe.units import parse_rate_bps, parse_time_ns

_RANGE = re.compile(r"([a-z]+)(\d+)(?:-(\d+))?")


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

    ``server_of_host[h]`` is the server of host h; empty where servers are unknown.
    """

    node_count: int
    switch_ids: tuple[int, ...]
    links: tuple[Link, ...]
    node_names: tuple[str, ...]
    node_kinds: tuple[str, ...]
    server_of_host: tuple[int, ...] = ()

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


def build(name: str, external_delay_ns: int) -> Topology:
    """A topology of the catalog; the network mode gives the delay of its external links."""
    return _Builder(catalog.load("topologies", name), external_delay_ns).build()


class _Builder:
    """Expands a catalog entry. Nodes: GPUs, then the nodes of each block in order, then the ToR."""

    def __init__(self, spec: dict[str, Any], external_delay_ns: int) -> None:
        self._spec = spec
        self._gpus: int = catalog.study()["gpus"]
        self._block_gpus: int = spec["block"]["gpus"]
        self._blocks = self._gpus // self._block_gpus
        self._block_nodes = [
            (kind, i) for kind, count in spec["block"]["nodes"].items() for i in range(count)
        ]
        self._external_delay_ns = external_delay_ns
        self._by_kind: dict[str, list[int]] = {"gpu": list(range(self._gpus))}

    def build(self) -> Topology:
        names, kinds = self._nodes()
        links = [
            link for block in range(self._blocks) for link in self._links(self._spec["block"]["links"], block)
        ]
        links += self._links(self._spec.get("after", []), None)
        count = len(names)
        servers = tuple(host // self._spec["gpus_per_server"] for host in range(self._gpus))
        switches = tuple(range(self._gpus, count))
        return Topology(count, switches, tuple(links), tuple(names), tuple(kinds), servers)

    def _nodes(self) -> tuple[list[str], list[str]]:
        names = [f"gpu{i}" for i in range(self._gpus)]
        kinds = ["gpu"] * self._gpus
        for block in range(self._blocks):
            for kind, i in self._block_nodes:
                members = self._by_kind.setdefault(kind, [])
                names.append(f"cpu{block}.{i}" if kind == "cpu" else f"{kind}{len(members)}")
                members.append(len(kinds))
                kinds.append(kind)
        if self._spec["tor"]:
            self._by_kind["tor"] = [len(kinds)]
            names.append("tor")
            kinds.append("tor")
        return names, kinds

    def _links(self, lines: list[list[str]], block: int | None) -> Iterator[Link]:
        for first, second, kind in lines:
            rate, delay = self._link_type(kind)
            for src, dst in self._pairs(first, second, block):
                yield Link(src, dst, rate, delay)

    def _pairs(self, first: str, second: str, block: int | None) -> Iterable[tuple[int, int]]:
        targets = self._ids(second, block)
        if first == "mesh":
            return itertools.combinations(targets, 2)
        sources = self._ids(first, block)
        return zip(sources, targets * len(sources) if len(targets) == 1 else targets, strict=True)

    def _ids(self, text: str, block: int | None) -> list[int]:
        """Node ids of 'pcie1' or 'gpu4-7': indices inside the block, or over all blocks for None."""
        if text == "tor":
            return self._by_kind["tor"]
        match = _RANGE.fullmatch(text)
        assert match is not None, text
        kind, low = match.group(1), int(match.group(2))
        high = int(match.group(3) or low)
        base = 0 if block is None else block * (len(self._by_kind[kind]) // self._blocks)
        return self._by_kind[kind][base + low : base + high + 1]

    def _link_type(self, kind: str) -> tuple[int, int]:
        spec = catalog.study()["links"][kind]
        delay = self._external_delay_ns if kind == "external" else parse_time_ns(spec["delay"])
        return parse_rate_bps(spec["rate"]), delay
