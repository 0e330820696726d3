"""Figures A-1 to A-6: the topologies, drawn from their data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from hpcmoe.analysis.table import Figure
from hpcmoe.analysis.tables_design import study_topology
from hpcmoe.figures import layout, style
from hpcmoe.figures.kinds import count_text, in_order, style_of
from hpcmoe.topology import Topology

_MOST_NAMED = 64  # hosts
_MANY = 200  # nodes
_LONG_TITLE = 35  # characters
_LINES = ((0, (1, 0)), (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_LINE_COLORS = ("#6b7680", "#0072b2", "#d55e00", "#009e73")


def topology_figure(name: str) -> Figure:
    """Figure A-k of topology tk: inside a server and the cluster; one drawing where that is the same."""
    topology = study_topology(name)
    notes = [f"n = {topology.node_count} nodes and {len(topology.links)} links."]
    notes.append("Rates are per direction, delays one way.")
    if topology.fabric_ids:
        notes.append("Delays to the ToR are those of the RoCE modes; 0.7 us in the IB-like ones.")
    with drawing(topology) as figure:
        return style.finish(figure, f"A-{name[1:]}", f"Topology {name[1:]}", tuple(notes), 44)


@contextmanager
def drawing(topology: Topology) -> Iterator[Any]:
    """The drawing of any topology: inside its first server, and the cluster; the cluster alone where servers
    are unknown, the server alone where it is the only one."""
    servers = layout.servers(topology)
    kinds = link_kinds(topology)
    several = len(servers) > 1
    with style.canvas(8.6 if several else 5.6, 5.2) as figure:
        parts = figure.subplots(1, 2, width_ratios=(1, 1.25)) if several else [figure.subplots()]
        whole = layout.radial(topology, range(topology.node_count))
        if servers:
            inside = servers[0]
            _draw(parts[0], topology, layout.server_points(topology, inside), kinds, named=True)
            what, held = "(a) inside a server:" if several else "one server:", _count(topology, inside)
            parts[0].set_title(f"{what}{' ' if len(held) < _LONG_TITLE else chr(10)}{held}")
        else:
            _draw(parts[0], topology, whole, kinds, named=topology.hosts <= _MOST_NAMED)
            parts[0].set_title(f"{topology.hosts} hosts in unknown servers")
        if several:
            _draw(parts[1], topology, whole, kinds, named=False)
            parts[1].set_title(f"(b) the cluster: {len(servers)} servers, {topology.hosts} GPUs")
        _key(figure, parts[0], topology, kinds)
        yield figure


def svg(topology: Topology, title: str) -> str:
    """The drawing as an SVG document."""
    with drawing(topology) as figure:
        figure.suptitle(title)
        return style.document(figure)


def link_kinds(topology: Topology) -> dict[tuple[str, str, int, int], int]:
    """(kind, kind, rate, delay) of each kind of link, numbered in link order."""
    found: dict[tuple[str, str, int, int], int] = {}
    for link in topology.links:
        found.setdefault(_kind(topology, link), len(found))
    return found


def _kind(topology: Topology, link: Any) -> tuple[str, str, int, int]:
    return topology.node_kinds[link.src], topology.node_kinds[link.dst], link.rate_bps, link.delay_ns


def _count(topology: Topology, nodes: Iterable[int]) -> str:
    held = tuple(topology.node_kinds[node] for node in nodes)
    return ", ".join(count_text(held.count(kind), kind) for kind in in_order(held))


def _draw(
    axes: Any, topology: Topology, points: layout.Points, kinds: dict[Any, int], *, named: bool
) -> None:
    for link in topology.links:
        if link.src in points and link.dst in points:
            place = kinds[_kind(topology, link)]
            (x0, y0), (x1, y1) = points[link.src], points[link.dst]
            axes.plot(
                [x0, x1], [y0, y1], color=_LINE_COLORS[place % 4], linestyle=_LINES[place % 4],
                linewidth=1.6 if named else 0.9, zorder=1,
            )  # fmt: skip
    for kind in in_order(topology.node_kinds):
        marker, color, _ = style_of(kind)
        held = [node for node in points if topology.node_kinds[node] == kind]
        axes.plot(
            [points[n][0] for n in held], [points[n][1] for n in held], marker, color=color,
            markersize=_size(kind, named, len(points)), zorder=2, linewidth=0,
        )  # fmt: skip
    if named:
        _names(axes, topology, points)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.axis("off")


def _size(kind: str, named: bool, nodes: int) -> float:
    """Marker size in points."""
    if kind == "tor":
        return 12
    if not named:
        return 5 if nodes <= _MANY else 2
    return 9 if kind == "gpu" else 12


def _names(axes: Any, topology: Topology, points: layout.Points) -> None:
    """Hosts are named outside of the drawing; other nodes beside themselves, or by their number inside
    where lines go off in all directions."""
    round_about = any(y < 0 for _, y in points.values())
    for node, (x, y) in points.items():
        text, kind = topology.node_names[node], topology.node_kinds[node]
        if topology.is_host(node) and round_about:
            axes.text(x * 1.16, y * 1.1, text, ha="center", va="center", fontsize=7.5, zorder=3)
        elif topology.is_host(node):
            axes.annotate(
                text, (x, y), (0, -14), textcoords="offset points", ha="center", fontsize=7.5, zorder=3
            )
        elif round_about:
            ink = "#ffffff" if kind == "pcie" else "#000000"
            number = text.removeprefix(kind)
            axes.text(x, y, number, ha="center", va="center_baseline", fontsize=7.5, color=ink, zorder=3)
        else:
            axes.annotate(text, (x, y), (9, 6), textcoords="offset points", fontsize=7.5, zorder=3)


def _key(figure: Any, axes: Any, topology: Topology, kinds: dict[Any, int]) -> None:
    nodes = [
        axes.plot([], [], marker, color=color, label=name, linewidth=0)[0]
        for kind in in_order(topology.node_kinds)
        for marker, color, name in [style_of(kind)]
    ]
    lines = [
        axes.plot(
            [], [], color=_LINE_COLORS[i % 4], linestyle=_LINES[i % 4],
            label=f"{style_of(a).title} to {style_of(b).title}: {rate / 1e9:g} Gbps, {delay / 1e3:g} us",
        )[0]
        for (a, b, rate, delay), i in kinds.items()
    ]  # fmt: skip
    figure.legend(handles=[*nodes, *lines], loc="outside lower center", ncols=2, fontsize=8)
