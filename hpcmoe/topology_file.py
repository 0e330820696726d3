"""Descriptions of clusters: the YAML format of the catalog's topologies, checked and compiled to a graph.

A description has ``servers`` equal servers, optionally ``pod``s of equally many servers, and the ``fabric``
around all of them. Each of the three has nodes by kind and links. docs/your-cluster.md has the whole format.
A description may hold upstream's text of a physical topology instead, under ``physical_topology``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from hpcmoe import catalog, topology_facts, topology_text, yaml_input
from hpcmoe.errors import InputError, closest_first
from hpcmoe.topology import Topology
from hpcmoe.topology_compiler import FULL, GPU, LEVELS, MESH, Description, Level, Line, LinkType
from hpcmoe.units import parse_time_ns

_KEYS = ("title", "about", "servers", *LEVELS, "link_types")
_RAW_KEYS = ("title", "about", "physical_topology", "gpus_per_server")
_KIND = re.compile(r"[a-z]([a-z_]*[a-z])?")
_REFERENCE = re.compile(r"([a-z_]+)(?:([0-9]{1,6})(?:-([0-9]{1,6}))?)?")
_LONGEST_DELAY_NS = 10**9
_LINE_FORMS = "[from, to, type], [mesh, nodes, type] or [full, nodes, nodes, type]"
NEVER = "never"
_NEVER_MARKED = (4294967000, 4294967000, 0.0)  # the most whole kB, which is what a config.txt holds
_ECN_KEYS = ("kmin_bytes", "kmax_bytes", "pmax")


@dataclass(frozen=True)
class Physical:
    """A graph that was given node by node; delays are its own."""

    graph: Topology

    def compile(self, external_delay_ns: int) -> Topology:
        return self.graph


def load(path: str | Path, gpus_per_server: int | None = None) -> Description | Physical:
    """A file of the user's: a description if its name ends in .yaml or .yml, else upstream's text."""
    return parse(entry_of_file(path, gpus_per_server), str(path))


def entry_of_file(path: str | Path, gpus_per_server: int | None = None) -> dict[str, Any]:
    """What a file says, as an entry of the catalog that is not checked yet."""
    text = topology_text.read_text(path, "topology")
    if Path(path).suffix not in (".yaml", ".yml"):
        entry: dict[str, Any] = {"title": f"physical topology {Path(path).name}", "physical_topology": text}
        return entry if gpus_per_server is None else {**entry, "gpus_per_server": gpus_per_server}
    if gpus_per_server is not None:
        raise InputError(
            "only for a physical topology; a description says it itself", file=path, field="--gpus-per-server"
        )
    return yaml_input.parse(text, path).data


def parse(entry: Mapping[str, Any], file: str) -> Description | Physical:
    """The checked description of an entry; ``file`` is for messages."""
    return _physical(entry, file) if "physical_topology" in entry else _Parser(entry, file).description()


def _physical(entry: Mapping[str, Any], file: str) -> Physical:
    unknown = next((key for key in entry if key not in _RAW_KEYS), None)
    if unknown is not None:
        raise InputError("unknown field", file=file, field=str(unknown), allowed=_RAW_KEYS)
    graph = hosts_first(topology_text.parse_topology(str(entry["physical_topology"]), file))
    each = entry.get("gpus_per_server")
    if each is None:
        return Physical(graph)
    if isinstance(each, bool) or not isinstance(each, int) or each < 1 or graph.hosts % each:
        raise InputError(
            f"servers have equally many of the {graph.hosts} hosts",
            file=file,
            field="gpus_per_server",
            value=each,
            allowed=[n for n in range(1, graph.hosts + 1) if graph.hosts % n == 0],
        )
    graph = replace(graph, server_of_host=tuple(host // each for host in range(graph.hosts)))
    return Physical(replace(graph, fabric_ids=topology_facts.fabric_of(graph)))


def hosts_first(graph: Topology) -> Topology:
    """The graph with its hosts as nodes 0, 1, ... and its switches behind them, each in their old order."""
    order = [*graph.host_ids, *sorted(graph.switch_ids)]
    return graph if order == list(range(graph.node_count)) else renumbered(graph, order)


def renumbered(graph: Topology, order: list[int]) -> Topology:
    """The graph with its node ``order[i]`` as node i; links stay in order, names go along."""
    new = {old: node for node, old in enumerate(order)}
    links = tuple(link._replace(src=new[link.src], dst=new[link.dst]) for link in graph.links)
    return replace(
        graph,
        switch_ids=tuple(new[node] for node in graph.switch_ids),
        links=links,
        node_names=tuple(graph.node_names[old] for old in order),
        node_kinds=tuple(graph.node_kinds[old] for old in order),
        fabric_ids=tuple(new[node] for node in graph.fabric_ids),
    )


class _Parser:
    """Reads an entry; every fault names the file and the field."""

    def __init__(self, entry: Mapping[str, Any], file: str) -> None:
        self._entry, self._file, self._links = entry, file, 0

    def description(self) -> Description:
        self._check_keys(self._entry, _KEYS, "")
        for field in ("title", "about"):
            if not isinstance(self._entry.get(field, ""), str):
                self._fail("not text", field, self._entry[field])
        servers = self._count("servers", self._need("servers"), topology_text.MAX_HOSTS)
        self._types = self._link_types(self._entry.get("link_types", {}))
        self._counts = {"server": servers, "pod": self._pods(servers), "fabric": 1}
        parts = {name: self._part(name) for name in LEVELS if name == "server" or name in self._entry}
        self._nodes = {name: self._level_nodes(name, part) for name, part in parts.items()}
        self._level_of = {kind: name for name, nodes in self._nodes.items() for kind in nodes}
        self._check_sizes()
        levels = [
            Level(name, self._counts[name], self._nodes[name], tuple(self._lines(name, part)))
            for name, part in parts.items()
        ]
        return Description(self._file, tuple(levels), self._types)

    def _fail(self, message: str, field: str, value: Any = None, allowed: Any = None) -> NoReturn:
        raise InputError(message, file=self._file, field=field or None, value=value, allowed=allowed)

    def _need(self, field: str) -> Any:
        if field not in self._entry:
            self._fail("missing", field, allowed=f"a description has {', '.join(_KEYS)}")
        return self._entry[field]

    def _check_keys(self, found: Mapping[Any, Any], known: Iterable[str], field: str) -> None:
        for key in found:
            if key not in known:
                self._fail("unknown field", f"{field}{key}", allowed=closest_first(str(key), known))

    def _mapping(self, value: Any, field: str, allowed: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            self._fail("not a mapping", field, value, allowed)
        return value

    def _count(self, field: str, value: Any, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            self._fail("not a count", field, value, f"integers from 1 to {most}")
        return int(value)

    def _part(self, name: str) -> dict[Any, Any]:
        known = ("servers", "nodes", "links") if name == "pod" else ("nodes", "links")
        part = self._mapping(self._need(name), name, f"{', '.join(known)}")
        self._check_keys(part, known, f"{name}.")
        return part

    def _pods(self, servers: int) -> int:
        if "pod" not in self._entry:
            return 1
        each = self._count("pod.servers", self._part("pod").get("servers"), servers)
        if servers % each:
            divisors = [n for n in range(1, servers + 1) if servers % n == 0]
            self._fail(f"pods have equally many of the {servers} servers", "pod.servers", each, divisors)
        return servers // each

    def _level_nodes(self, name: str, part: Mapping[str, Any]) -> dict[str, int]:
        field = f"{name}.nodes"
        nodes = self._mapping(part.get("nodes"), field, "kinds with counts, such as {gpu: 8, nic: 8}")
        for kind, count in nodes.items():
            self._check_kind(kind, name)
            self._count(f"{field}.{kind}", count, topology_text.MAX_NODES)
        if name == "server" and GPU not in nodes:
            self._fail("a server has no gpu", field, nodes, "a count of gpu")
        return nodes

    def _check_kind(self, kind: Any, name: str) -> None:
        field = f"{name}.nodes"
        if not isinstance(kind, str) or not _KIND.fullmatch(kind) or kind in (MESH, FULL):
            self._fail("not a kind of node", field, kind, "a-z and _ inside, and neither mesh nor full")
        if kind == GPU and name != "server":
            self._fail("GPUs are in servers", field, kind, "other kinds")
        home = next((n for n in LEVELS[: LEVELS.index(name)] if kind in self._kinds(n)), None)
        if home is not None:
            self._fail(f"{home}.nodes has this kind already; give it another name", field, kind)

    def _kinds(self, level: str) -> Iterable[str]:
        return self._entry[level]["nodes"] if level in self._entry else ()

    def _check_sizes(self) -> None:
        gpus = self._total(GPU)
        if gpus > topology_text.MAX_HOSTS:
            self._fail("too many GPUs in all", "servers", gpus, f"up to {topology_text.MAX_HOSTS}")
        nodes = sum(self._total(kind) for kind in self._level_of)
        if nodes > topology_text.MAX_NODES:
            self._fail("too many nodes in all", "servers", nodes, f"up to {topology_text.MAX_NODES}")

    def _total(self, kind: str) -> int:
        level = self._level_of[kind]
        return self._counts[level] * self._nodes[level][kind]

    # --- link types ---------------------------------------------------------------------------------

    def _link_types(self, given: Any) -> dict[str, LinkType]:
        entries = self._mapping(given, "link_types", "types by name, such as {nvlink: {rate: 3600Gbps}}")
        types = {name: self._link_type(name, spec) for name, spec in catalog.study()["links"].items()}
        for name, spec in entries.items():
            if not isinstance(name, str):
                self._fail("not a name", "link_types", name)
            types[name] = self._link_type(name, spec)
        return types

    def _link_type(self, name: str, spec: Any) -> LinkType:
        field = f"link_types.{name}"
        self._mapping(spec, field, "rate, delay, ecn")
        self._check_keys(spec, ("rate", "delay", "ecn"), f"{field}.")
        ecn = self._ecn(spec["ecn"], f"{field}.ecn") if "ecn" in spec else None
        return LinkType(self._rate(spec.get("rate"), f"{field}.rate"), self._delay(spec, field), ecn)

    def _rate(self, value: Any, field: str) -> int:
        try:
            return topology_text.link_rate(value if isinstance(value, str) else "")
        except ValueError:
            self._fail("bad rate", field, value, "a rate with its unit such as 400Gbps, up to 100Tbps")

    def _delay(self, spec: Mapping[str, Any], field: str) -> int | None:
        if "delay" not in spec:
            return None
        value = spec["delay"]
        try:
            delay = parse_time_ns(value if isinstance(value, str) else "")
        except ValueError:
            delay = -1
        if not 0 <= delay <= _LONGEST_DELAY_NS:
            self._fail("bad delay", f"{field}.delay", value, "a time with its unit such as 0.7us, up to 1s")
        return delay

    def _ecn(self, spec: Any, field: str) -> tuple[int, int, float]:
        if spec == NEVER:
            return _NEVER_MARKED
        allowed = (
            "never; or kmin_bytes <= kmax_bytes, both integers from 0 to below 2^32, and pmax from 0 to 1"
        )
        numbers = isinstance(spec, dict) and set(spec) == set(_ECN_KEYS) and [spec[key] for key in _ECN_KEYS]
        if not numbers or any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            self._fail("bad thresholds", field, spec, allowed)
        kmin, kmax, pmax = numbers
        whole = isinstance(kmin, int) and isinstance(kmax, int)
        if not whole or not 0 <= kmin <= kmax < 2**32 or not 0 <= pmax <= 1:
            self._fail("bad thresholds", field, spec, allowed)
        return kmin, kmax, float(pmax)

    # --- links --------------------------------------------------------------------------------------

    def _lines(self, level: str, part: Mapping[str, Any]) -> Iterator[Line]:
        field = f"{level}.links"
        lines = part.get("links")
        if not isinstance(lines, list):
            self._fail("not a list of links", field, lines, f"lines {_LINE_FORMS}")
        for number, line in enumerate(lines, 1):
            checked = self._line(level, line, f"{field}, line {number}")
            self._links += self._counts[level] * checked.links
            if self._links > topology_text.MAX_LINKS:
                self._fail(
                    "too many links up to here",
                    checked.field,
                    self._links,
                    f"up to {topology_text.MAX_LINKS}",
                )
            yield checked

    def _line(self, level: str, line: Any, field: str) -> Line:
        if not isinstance(line, list) or not line or not all(isinstance(word, str) for word in line):
            self._fail("not a link", field, line, _LINE_FORMS)
        pattern = line[0] if line[0] in (MESH, FULL) else "each"
        words, link_type = line[pattern != "each" : -1], line[-1]
        if len(words) != (1 if pattern == MESH else 2):
            self._fail("not a link", field, line, _LINE_FORMS)
        if link_type not in self._types:
            self._fail("unknown link type", field, link_type, closest_first(link_type, self._types))
        nodes = tuple(self._reference(level, word, field) for word in words)
        self._check_numbers(pattern, nodes, line, field)
        return Line(field, pattern, nodes, link_type)

    def _reference(self, level: str, word: str, field: str) -> tuple[str, int, int]:
        """(kind, first, last) of 'nic', 'nic3' or 'nic0-7'."""
        match = _REFERENCE.fullmatch(word)
        kind = match.group(1) if match else word
        if match is None or kind not in self._level_of:
            self._fail(
                "no such node", field, word, f"a kind of {', '.join(self._level_of)}, as nic, nic3, nic0-7"
            )
        size = self._size(level, kind)
        if match.group(2) is None:
            return kind, 0, size - 1
        first = int(match.group(2))
        last = int(match.group(3) or first)
        if not first <= last < size:
            self._fail(f"out of range seen from a {level}", field, word, f"{kind}0 to {kind}{size - 1}")
        return kind, first, last

    def _size(self, level: str, kind: str) -> int:
        """How many of a kind a line of this level can name."""
        outer = max(level, self._level_of[kind], key=LEVELS.index)
        return self._total(kind) // self._counts[outer]

    def _check_numbers(
        self, pattern: str, nodes: tuple[tuple[str, int, int], ...], line: list[str], field: str
    ) -> None:
        counts = [last - first + 1 for _, first, last in nodes]
        if pattern == MESH and counts[0] < 2:
            self._fail("a mesh joins two nodes or more", field, line)
        if pattern == "each" and counts[0] % counts[1]:
            self._fail(
                f"{counts[0]} nodes cannot be shared out evenly over {counts[1]}",
                field,
                line,
                "as many on both sides, or a multiple on the left; [full, ...] joins all with all",
            )
