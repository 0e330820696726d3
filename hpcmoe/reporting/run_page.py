"""The page on one run, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from hpcmoe.analysis.table import Table
from hpcmoe.inspect_run import Comparison, Inspection
from hpcmoe.reporting import html, run_drawings, run_tables, text
from hpcmoe.reporting.run_drawings import PART_COLORS, ROLE_COLORS


def page_name(key: str) -> str:
    """File name of the page on a run."""
    return key.replace("/", "__") + ".html"


def render(inspection: Inspection, back: str | None = None) -> str:
    """The page. ``back`` is where its link to the report leads."""
    sections = list(_sections(inspection))
    return html.page(
        inspection.key,
        _navigation(sections, back),
        [f"<h1>{_key(inspection.key)}</h1>", *_lead(inspection), *_bodies(sections)],
    )


def _key(key: str) -> str:
    return escape(key).replace("/", "/<wbr>")


def _navigation(sections: list[tuple[str, list[str]]], back: str | None) -> Iterator[str]:
    if back:
        yield f'<p><a href="{escape(back)}">The whole report</a></p>'
    yield "<details><summary>Contents</summary><ul>"
    for number, (title, _) in enumerate(sections):
        yield f'<li><a href="#part-{number}">{escape(title)}</a></li>'
    yield "</ul></details>"


def _lead(inspection: Inspection) -> Iterator[str]:
    config = inspection.record.config
    layers = "all" if config["layers"] is None else config["layers"]
    facts = (
        ("tokens per rank", config["tokens"]), ("MoE layers", layers), ("layer looked at", inspection.layer),
        ("profile", config["profile"]),
    )  # fmt: skip
    shown = "".join(f"<span>{name} <b>{escape(str(value))}</b></span>" for name, value in facts)
    yield f'<div class="origin">{shown}</div>'
    yield from (f'<p class="lead">{escape(line)}</p>' for line in run_tables.summary(inspection))


def _bodies(sections: list[tuple[str, list[str]]]) -> Iterator[str]:
    for number, (title, body) in enumerate(sections):
        yield f'<section id="part-{number}"><h2>{escape(title)}</h2>'
        yield from body
        yield "</section>"


NO_COUNTERS = "The program that made this run does not count what links carry."


def _sections(inspection: Inspection) -> Iterator[tuple[str, list[str]]]:
    drawings = run_drawings
    yield (
        f"Critical path of layer {inspection.layer}",
        [
            drawings.key(list(PART_COLORS.items())),
            _drawing(
                drawings.parts_bar(inspection),
                18,
                f"The parts; the bar is the layer's {inspection.path.total_ns / 1e3:.3f} us.",
            ),
            *_tables(
                run_tables.parts_table(inspection),
                run_tables.main_links_table(inspection),
                run_tables.nodes_table(inspection),
            ),
        ],
    )
    roles = [(title, ROLE_COLORS[role]) for title, role in _roles(inspection).items()]
    yield (
        "Time line",
        [
            drawings.key([*roles, ("critical path", "#000000")]),
            _drawing(
                drawings.timeline(inspection), 52,
                f"n = {inspection.ranks} ranks. White ticks: a collective starts its next chunk. The black "
                "line is the critical path; where it changes rank it follows a message.",
            ),
        ],
    )  # fmt: skip
    yield "Links", _links(inspection)
    yield (
        "Messages",
        [
            drawings.slowdown_key(inspection),
            _drawing(
                drawings.slowdowns(inspection),
                36,
                "Cumulative share of the layer's messages (%) by completion time over the least possible.",
            ),
            *_tables(run_tables.statistics_table(inspection), run_tables.stragglers_table(inspection)),
        ],
    )
    yield "Every segment", list(html.table(run_tables.segments_table(inspection)))


def _links(inspection: Inspection) -> list[str]:
    if not inspection.links:
        return [f"<p>{escape(NO_COUNTERS)}</p>"]
    return [
        run_drawings.utilization_key(),
        run_drawings.node_key(inspection),
        _drawing(
            run_drawings.utilization(inspection), 34,
            "Share of simulated time in which the busier direction of a link was sending, over the whole "
            "run; outlined: links that carry half of the critical path. Point at a link for names.",
        ),
        *_tables(run_tables.links_table(inspection)),
    ]  # fmt: skip


def _roles(inspection: Inspection) -> dict[str, str]:
    found = {"compute": "compute"}
    return found | {node.title: node.role for node in inspection.nodes if not node.is_compute}


def _tables(*tables: Table) -> Iterator[str]:
    for item in tables:
        yield from html.table(item)


def _drawing(svg: str, min_width_rem: int, caption: str) -> str:
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{escape(caption[:40])}">'
        f'<div style="min-width: {min_width_rem}rem">{svg}</div></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


# --- for a terminal ------------------------------------------------------------------------------


def describe(inspection: Inspection) -> str:
    """The finding and its tables as plain text."""
    tables = (
        run_tables.parts_table(inspection),
        run_tables.main_links_table(inspection),
        run_tables.nodes_table(inspection),
        *([run_tables.links_table(inspection)] if inspection.links else []),
        run_tables.statistics_table(inspection),
        run_tables.stragglers_table(inspection),
    )
    return "\n".join([inspection.key, "", *run_tables.summary(inspection), *map(plain_table, tables)])


def describe_comparison(comparison: Comparison) -> str:
    """Both runs, what differs and which part explains it, as plain text."""
    first, second = comparison.first, comparison.second
    gap = comparison.layer_gap_ns
    part = comparison.explaining_part
    share = f", {comparison.parts[part] / gap:.1%} of it" if gap else ""
    walls = [int(i.record.run["wall_ns"]) for i in (first, second)]
    return "\n".join(
        [
            f"first   {first.key}: {walls[0] / 1e6:.6f} ms",
            f"second  {second.key}: {walls[1] / 1e6:.6f} ms ({walls[1] / walls[0] - 1:+.1%})",
            f"One layer: {gap / 1e3:+.3f} us in the second.",
            f"The part that explains most of it: {part}, {comparison.parts[part] / 1e3:+.3f} us{share}.",
            *(
                f"{name}: {run_tables.main_links_sentence(i, i.path)}"
                for name, i in (("first", first), ("second", second))
            ),
            *map(plain_table, run_tables.comparison_tables(comparison)),
        ]
    )


def plain_table(item: Table) -> str:
    """A table in aligned columns."""
    rows = [[text.heading(column) for column in item.columns]]
    rows += [[text.value_text(cell.quantity, cell.ours) for cell in row] for row in item.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numbers = [column.quantity.is_number for column in item.columns]
    lines = [
        "  " + "  ".join(
            value.rjust(width) if number else value.ljust(width)
            for value, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in rows
    ]  # fmt: skip
    return "\n".join(["", item.title, *lines])
