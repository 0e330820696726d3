"""A checked description of a cluster and how it becomes a graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hpcmoe.errors import InputError
from hpcmoe.topology import Link, Topology

GPU = "gpu"
MESH, FULL = "mesh", "full"
LEVELS = ("server", "pod", "fabric")  # from the inside


@dataclass(frozen=True)
class LinkType:
    """``delay_ns`` None is the network mode's delay; ``ecn`` is (kmin_bytes, kmax_bytes, pmax)."""

    rate_bps: int
    delay_ns: int | None
    ecn: tuple[int, int, float] | None = None


@dataclass(frozen=True)
class Line:
    """One line of links. ``nodes`` are what it names, each as (kind, first, last), counted in the widest of
    the levels that it speaks of; ``pattern`` is 'each', 'mesh' or 'full'."""

    field: str
    pattern: str
    nodes: tuple[tuple[str, int, int], ...]
    link_type: str

    @property
    def links(self) -> int:
        """How many links it stands for."""
        left, *right = (last - first + 1 for _, first, last in self.nodes)
        if self.pattern == MESH:
            return left * (left - 1) // 2
        return left * right[0] if self.pattern == FULL else left


@dataclass(frozen=True)
class Level:
    """Servers, pods or the fabric: how many there are, and the nodes and links of each one."""

    name: str
    count: int
    nodes: Mapping[str, int]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Description:
    """A checked description; levels from the inside."""

    file: str
    levels: tuple[Level, ...]
    link_types: Mapping[str, LinkType]

    def compile(self, external_delay_ns: int) -> Topology:
        """The graph; ``external_delay_ns`` is for link types without a delay. InputError for links that
        repeat or join a node to itself, and for GPUs that cannot reach each other."""
        return _Compiler(self, external_delay_ns).topology()


class _Compiler:
    """Nodes: GPUs of all servers, then the other nodes server by server, pod by pod, and the fabric's.
    Links in the same order, line by line."""

    def __init__(self, description: Description, external_delay_ns: int) -> None:
        self._description = description
        self._external_delay_ns = external_delay_ns
        self._levels = {level.name: level for level in description.levels}
        self._level_of = {kind: level.name for level in description.levels for kind in level.nodes}
        self._by_kind: dict[str, list[int]] = {kind: [] for kind in self._level_of}
        self._names: list[str] = []
        self._kinds: list[str] = []

    def topology(self) -> Topology:
        servers = self._levels["server"]
        each = servers.nodes[GPU]
        hosts = servers.count * each
        self._add_nodes()
        links = self._links()
        topology = Topology(
            len(self._names),
            tuple(range(hosts, len(self._names))),
            tuple(links),
            tuple(self._names),
            tuple(self._kinds),
            tuple(host // each for host in range(hosts)),
            tuple(n for n, kind in enumerate(self._kinds) if self._level_of[kind] != "server"),
            tuple(self._ecn()),
        )
        self._check_connected(topology)
        return topology

    def _add_nodes(self) -> None:
        servers = self._levels["server"]
        for _ in range(servers.count * servers.nodes[GPU]):
            self._add_node(GPU, f"gpu{len(self._names)}")
        for level in self._description.levels:
            for place in range(level.count):
                for kind, i in ((k, i) for k, n in level.nodes.items() if k != GPU for i in range(n)):
                    self._add_node(kind, self._name(level, kind, place, i))

    def _add_node(self, kind: str, name: str) -> None:
        self._by_kind[kind].append(len(self._names))
        self._names.append(name)
        self._kinds.append(kind)

    def _name(self, level: Level, kind: str, place: int, i: int) -> str:
        """CPUs are named as in 'cpu 1 of server 3', the only one of the fabric by its kind alone, others by
        their number in the cluster."""
        if kind == "cpu":
            return f"cpu{place}.{i}"
        alone = level.name == "fabric" and level.nodes[kind] == 1
        return kind if alone else f"{kind}{len(self._by_kind[kind])}"

    def _links(self) -> list[Link]:
        fields: dict[tuple[int, int], str] = {}
        links = []
        for level in self._description.levels:
            for place in range(level.count):
                for line in level.lines:
                    rate, delay = self._rate_and_delay(line.link_type)
                    for src, dst in self._pairs(line, level, place):
                        self._check_new(src, dst, line.field, fields)
                        links.append(Link(src, dst, rate, delay))
        return links

    def _rate_and_delay(self, name: str) -> tuple[int, int]:
        kind = self._description.link_types[name]
        return kind.rate_bps, self._external_delay_ns if kind.delay_ns is None else kind.delay_ns

    def _pairs(self, line: Line, level: Level, place: int) -> Iterable[tuple[int, int]]:
        sides = [self._ids(reference, level, place) for reference in line.nodes]
        if line.pattern == MESH:
            return itertools.combinations(sides[0], 2)
        if line.pattern == FULL:
            return itertools.product(sides[0], sides[1])
        share = len(sides[0]) // len(sides[1])
        return ((node, sides[1][i // share]) for i, node in enumerate(sides[0]))

    def _ids(self, reference: tuple[str, int, int], level: Level, place: int) -> list[int]:
        """Node ids of a reference in the line of one server, pod or fabric: counted within it, or for kinds
        of a level outside of it within the one around it."""
        kind, first, last = reference
        outer = self._levels[max(level.name, self._level_of[kind], key=LEVELS.index)]
        members = self._by_kind[kind]
        size = len(members) // outer.count
        start = place * outer.count // level.count * size
        return members[start + first : start + last + 1]

    def _check_new(self, src: int, dst: int, field: str, fields: dict[tuple[int, int], str]) -> None:
        names = f"{self._names[src]} to {self._names[dst]}"
        if src == dst:
            raise InputError("a link from a node to itself", file=self._file, field=field, value=names)
        pair = (min(src, dst), max(src, dst))
        if pair in fields:
            raise InputError(
                f"a second link between two nodes, after {fields[pair]}; give one link the sum of the rates",
                file=self._file,
                field=field,
                value=names,
            )
        fields[pair] = field

    @property
    def _file(self) -> str:
        return self._description.file

    def _ecn(self) -> Iterator[tuple[int, int, int, float]]:
        """Thresholds that link types in use give, by rate."""
        used = {line.link_type for level in self._description.levels for line in level.lines}
        rows: dict[int, tuple[int, int, float]] = {}
        for name in sorted(used):
            kind = self._description.link_types[name]
            if kind.ecn is not None and rows.setdefault(kind.rate_bps, kind.ecn) != kind.ecn:
                raise InputError(
                    "another link type of this rate has other thresholds; switches have one pair per rate",
                    file=self._file,
                    field=f"link_types.{name}.ecn",
                    value=kind.ecn,
                )
        yield from ((rate, *rows[rate]) for rate in sorted(rows))

    def _check_connected(self, topology: Topology) -> None:
        cut = (topology.links_apart < 0).nonzero()
        if len(cut[0]):
            first, second = (self._names[int(ends[0])] for ends in cut)
            raise InputError(
                f"no path between {first} and {second}; join them over switches (GPUs do not forward)",
                file=self._file,
                field="links",
            )
