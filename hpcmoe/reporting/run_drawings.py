"""Drawings of one run as SVG: parts, time line, link utilisation, slowdown of messages.

Written by hand and not through a plotting library, so that a page for every run costs milliseconds.
Text takes the colour of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise

import numpy as np

from hpcmoe.figures import layout
from hpcmoe.figures.kinds import in_order, style_of
from hpcmoe.inspect_run import Inspection
from hpcmoe.inspect_run.critical import PARTS
from hpcmoe.inspect_run.inspection import LinkUse

PART_COLORS = dict(
    zip(
        PARTS,
        ("#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#e69f00", "#f0e442", "#009e73", "#8a949e"),
        strict=True,
    )
)
ROLE_COLORS = {"compute": "#8a949e", "ar1": "#0072b2", "ar2": "#56b4e9", "disp": "#e69f00", "comb": "#f0e442"}
UTILIZATION_COLORS = ("#b8c0c8", "#8cb8d8", "#4f86c6", "#a5509b", "#d81b60")
UTILIZATION_STEPS = (0.0, 0.1, 0.3, 0.5, 0.7)
_LINE_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_DASHES = ("", "6 3", "2 2", "8 3 2 3")


Place = Callable[[int], float]
"""From a time in ns to x."""


def _svg(width: float, height: float, name: str, body: Iterator[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(name)}" font-size="11" '
        f'fill="currentColor">{"".join(body)}</svg>'
    )


def _text(x: float, y: float, shown: str, anchor: str = "start", size: float = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}">{escape(shown)}</text>'


def _rect(x: float, y: float, width: float, height: float, color: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    box = f'x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.1):.2f}" height="{height:g}"'
    return f'<rect {box} fill="{color}">{inside}</rect>'


def key(entries: Sequence[tuple[str, str]]) -> str:
    """A legend as HTML: (name, colour)."""
    return (
        '<p class="key">'
        + "".join(f'<span><i style="background:{c}"></i>{escape(n)}</span>' for n, c in entries)
        + "</p>"
    )


def parts_bar(inspection: Inspection) -> str:
    """The layer's time as one bar of parts."""

    def body() -> Iterator[str]:
        path, x = inspection.path, 0.0
        for part, time_ns in path.parts.items():
            width = 1000 * time_ns / path.total_ns
            yield (
                _rect(
                    x,
                    0,
                    width,
                    30,
                    PART_COLORS[part],
                    f"{part}: {time_ns / 1e3:.3f} us, {time_ns / path.total_ns:.1%}",
                )
                if time_ns
                else ""
            )
            x += width

    return _svg(1000, 30, "Parts of the critical path", body())


# --- time line -----------------------------------------------------------------------------------

_LEFT, _ROW, _WIDTH = 58, 15, 1000


def timeline(inspection: Inspection) -> str:
    """One row per rank: compute and collectives, chunks as ticks, the critical path as a line."""
    spans = inspection.spans
    begin, end = min(s.start_ns for s in spans), max(s.end_ns for s in spans)
    scale = (_WIDTH - _LEFT - 8) / max(1, end - begin)
    rows_end = inspection.ranks * _ROW + 4

    def x(time_ns: int) -> float:
        return _LEFT + (time_ns - begin) * scale

    def body() -> Iterator[str]:
        for rank in range(inspection.ranks):
            yield _text(_LEFT - 6, rank * _ROW + 12, f"rank {rank}", "end", 9.5)
        for span in spans:
            color = ROLE_COLORS["compute" if span.node.is_compute else span.node.role]
            title = f"rank {span.rank}, {span.node.title}: {(span.end_ns - span.start_ns) / 1e3:.3f} us"
            top = span.rank * _ROW + 3
            yield _rect(x(span.start_ns), top, (span.end_ns - span.start_ns) * scale, _ROW - 4, color, title)
            for _, start, _ in span.chunks[1:]:
                yield f'<path d="M{x(start):.1f} {top}v{_ROW - 4}" stroke="#fff" stroke-width=".6"/>'
        yield from _path_line(inspection, x)
        yield from _axis(begin, end, x, rows_end)

    return _svg(_WIDTH, rows_end + 34, f"Time line of layer {inspection.layer}", body())


def _path_line(inspection: Inspection, x: Place) -> Iterator[str]:
    """The critical path: along a rank, and from sender to receiver for messages."""
    points = []
    for item in inspection.path.segments:
        segment = item.segment
        start = segment.flow.src if segment.flow else segment.rank
        for rank, time_ns in ((start, segment.begin_ns), (segment.rank, segment.end_ns)):
            points.append(f"{x(time_ns):.1f} {rank * _ROW + 8.5:.1f}")
    line = "M" + "L".join(points)
    for color, width in (("#ffffff", 3.2), ("#000000", 1.4)):
        pen = f'stroke="{color}" stroke-width="{width}" stroke-linejoin="round"'
        yield f'<path d="{line}" fill="none" {pen}/>'


def _axis(begin: int, end: int, x: Place, top: float) -> Iterator[str]:
    step = nice_step((end - begin) / 8)
    yield f'<path d="M{_LEFT} {top}H{_WIDTH - 8}" stroke="currentColor" stroke-width=".8"/>'
    for i in range(int((end - begin) // step) + 1):
        at = x(begin + int(i * step))
        yield f'<path d="M{at:.1f} {top}v4" stroke="currentColor" stroke-width=".8"/>'
        yield _text(at, top + 15, f"{i * step / 1e3:g}", "middle", 10)
    yield _text(_WIDTH / 2, top + 30, "time since the first rank began the layer (us)", "middle")


def nice_step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten above ``rough``."""
    power = 10.0 ** np.floor(np.log10(max(rough, 1e-9)))
    return float(next(power * f for f in (1, 2, 5, 10) if power * f >= rough * 0.999))


# --- links ---------------------------------------------------------------------------------------

_SIZE = 720
_MOST_NAMED = 64  # hosts


def utilization(inspection: Inspection) -> str:
    """Every link of the topology, coloured by the busier of its directions; the links that carry half of
    the critical path have an outline."""
    topology = inspection.record.topology
    points = layout.radial(topology, range(topology.node_count))
    main = {link // 2 for link in inspection.path.main_links()}
    named = topology.hosts <= _MOST_NAMED

    def at(node: int) -> tuple[float, float]:
        x, y = points[node]
        return _SIZE / 2 + x * (_SIZE / 2 - 46), _SIZE / 2 - y * (_SIZE / 2 - 46)

    def body() -> Iterator[str]:
        uses = inspection.links
        for index, link in sorted(enumerate(topology.links), key=lambda item: _busier(uses, item[0])):
            if link.src not in points or link.dst not in points:
                continue
            (x0, y0), (x1, y1) = at(link.src), at(link.dst)
            line = f'd="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"'
            if index in main:
                yield f'<path {line} stroke="currentColor" stroke-width="9" stroke-linecap="round"/>'
            share = _busier(uses, index)
            title = "; ".join(f"{u.name}: {u.utilization:.1%}" for u in uses[2 * index : 2 * index + 2])
            pen = f'stroke="{utilization_color(share)}" stroke-width="{2 + 4 * share:.1f}"'
            yield f"<path {line} {pen}><title>{escape(title)}</title></path>"
        for node, name in enumerate(topology.node_names):
            if node not in points:
                continue
            x, y = at(node)
            color = style_of(topology.node_kinds[node]).color
            circle = f'cx="{x:.1f}" cy="{y:.1f}" r="{5.5 if named else 2}" fill="{color}"'
            yield f"<circle {circle}><title>{escape(name)}</title></circle>"
            if named and topology.is_host(node):
                px, py = points[node]
                yield _text(
                    _SIZE / 2 + px * (_SIZE / 2 - 20),
                    _SIZE / 2 - py * (_SIZE / 2 - 20) + 4,
                    name,
                    "middle",
                    10,
                )

    return _svg(_SIZE, _SIZE, "Link utilisation", body())


def _busier(uses: Sequence[LinkUse], index: int) -> float:
    return max(use.utilization for use in uses[2 * index : 2 * index + 2])


def utilization_color(share: float) -> str:
    return UTILIZATION_COLORS[sum(share >= step for step in UTILIZATION_STEPS) - 1]


def node_key(inspection: Inspection) -> str:
    held = inspection.record.topology.node_kinds
    return key([(style_of(kind).title, style_of(kind).color) for kind in in_order(held)])


def utilization_key() -> str:
    steps = [*UTILIZATION_STEPS, 1.0]
    names = [f"{low:.0%} to {high:.0%}" for low, high in pairwise(steps)]
    return key([*zip(names, UTILIZATION_COLORS, strict=True)])


# --- messages ------------------------------------------------------------------------------------


def slowdowns(inspection: Inspection) -> str:
    """Cumulative share of a collective's messages by completion time over the least possible, log scale."""
    held = inspection.statistics
    top = max(1.2, max((float(s.slowdowns[-1]) for s in held if s.flows), default=2.0))
    decades = np.log10(top)
    left, width, height = 62, 640, 230

    def body() -> Iterator[str]:
        for share in (0, 0.25, 0.5, 0.75, 1):
            y = 10 + height * (1 - share)
            yield f'<path d="M{left} {y:.1f}h{width}" stroke="#8a949e" stroke-width=".5" opacity=".6"/>'
            yield _text(left - 6, y + 4, f"{share:.0%}", "end", 10)
        for value in _ratio_ticks(top):
            x = left + width * np.log10(value) / decades
            yield f'<path d="M{x:.1f} {10 + height}v4" stroke="currentColor" stroke-width=".8"/>'
            yield _text(x, 10 + height + 16, f"{value:g}", "middle", 10)
        for place, s in enumerate(held):
            yield _curve(s.slowdowns, decades, left, width, height, place)
        middle = 10 + height / 2
        upright = _text(14, middle, "share of the messages", "middle")
        yield f'<g transform="rotate(-90 14 {middle:g})">{upright}</g>'
        yield _text(
            left + width / 2, height + 42, "completion time over the least possible (1, log scale)", "middle"
        )

    return _svg(
        left + width + 12, height + 50, "Completion times of messages over the least possible", body()
    )


def _ratio_ticks(top: float) -> list[float]:
    """Round values from 1 to ``top`` for a logarithmic scale."""
    if top < 2:
        step = 0.05 if top < 1.5 else 0.1
        return [round(1 + i * step, 2) for i in range(int((top - 1) / step + 1e-9) + 1)]
    return [v for v in (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if v <= top]


def _curve(values: np.ndarray, decades: float, left: float, width: float, height: float, place: int) -> str:
    """A step curve through at most 200 quantiles."""
    shares = np.linspace(0, 1, min(200, max(2, len(values))))
    x = left + width * np.log10(np.quantile(values, shares)) / decades
    points = "L".join(f"{a:.1f} {10 + height * (1 - b):.1f}" for a, b in zip(x, shares, strict=True))
    dash = f' stroke-dasharray="{_DASHES[place % 4]}"' if _DASHES[place % 4] else ""
    return f'<path d="M{points}" fill="none" stroke="{_LINE_COLORS[place % 4]}" stroke-width="2"{dash}/>'


def slowdown_key(inspection: Inspection) -> str:
    return key(
        [(f"{s.node.title}, n = {s.flows}", _LINE_COLORS[i % 4]) for i, s in enumerate(inspection.statistics)]
    )
