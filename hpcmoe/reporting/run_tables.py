"""What an inspection found, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcmoe.analysis.table import FRACTION, INTEGER, NUMBER, Cell, Column, Quantity, Table, label, plain
from hpcmoe.inspect_run import Comparison, Inspection
from hpcmoe.inspect_run.critical import FLOW_PARTS, PART_HELP, PARTS, CriticalPath, PathSegment
from hpcmoe.inspect_run.inspection import QUANTILES, LinkUse

MICROSECONDS = Quantity("microseconds", "us", 1e-3, 3, "none")
BYTES = Quantity("bytes", "B", 1, 0, "none")
GBPS = Quantity("rate", "Gbps", 1e-9, 0, "none")
BUSIEST = 24
MAIN_SHARE = 0.5
BEFORE = "Nodes of the layer before: a rank on the path began the layer later than the bottleneck rank did."


def _table(
    slug: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *notes: str,
    long: bool = False,
) -> Table:
    return Table(slug, "", title, tuple(columns), tuple(map(tuple, rows)), notes, sortable=long)


def parts_table(inspection: Inspection) -> Table:
    """Time of the layer by part, in all and per node of the chain."""
    path = inspection.path
    parts = path.parts
    names = {node: inspection.record.chain[node] for node in path.by_node()}
    columns = (
        Column("part"),
        Column("time", MICROSECONDS),
        Column("share of the layer", FRACTION),
        Column("what it is"),
    )
    rows = [
        [
            label(part),
            plain(MICROSECONDS, parts[part]),
            plain(FRACTION, parts[part] / path.total_ns),
            label(PART_HELP[part]),
        ]
        for part in PARTS
    ]
    rows.append(
        [
            label("sum"),
            plain(MICROSECONDS, sum(parts.values())),
            plain(FRACTION, 1.0),
            label("the layer's time, exactly"),
        ]
    )
    note = f"{len(path.segments)} segments on the path through {len(names)} nodes of the chain."
    return _table("parts", "Parts of the critical path", columns, rows, note)


def nodes_table(inspection: Inspection) -> Table:
    """Parts per node of the chain."""
    columns = (
        Column("node"),
        Column("in all", MICROSECONDS),
        *(Column(part, MICROSECONDS) for part in PARTS),
    )
    rows = []
    for node, parts in inspection.path.by_node().items():
        found = inspection.record.chain[node]
        name = found.title if found.layer == inspection.layer else f"{found.title} of layer {found.layer}"
        times = [sum(parts.values()), *parts.values()]
        rows.append([label(name), *(plain(MICROSECONDS, time_ns) for time_ns in times)])
    early = any(inspection.record.chain[node].layer != inspection.layer for node in inspection.path.by_node())
    return _table(
        "path-nodes", "The path by node of the chain", columns, rows,
        *[BEFORE] * early,
    )  # fmt: skip


def main_links_table(inspection: Inspection) -> Table:
    """The fewest links that hold at least half of the layer's time, or all that hold any."""
    path, traffic = inspection.path, inspection.traffic
    columns = (
        Column("link"),
        Column("kind"),
        Column("holds", MICROSECONDS),
        Column("share of the layer", FRACTION),
    )
    rows = [
        [label(traffic.name(link)), label(traffic.kind(link)), plain(MICROSECONDS, path.link_ns[link]),
         plain(FRACTION, path.link_ns[link] / path.total_ns)]
        for link in path.main_links(MAIN_SHARE)
    ]  # fmt: skip
    return _table(
        "main-links", "Links that carry at least half of the critical path", columns, rows,
        "A message's propagation time is held by every link of its way for its delay, the rest of its time "
        "by the link that had most to carry while it was under way.",
    )  # fmt: skip


def links_table(inspection: Inspection) -> Table:
    """The busiest links over the whole run."""
    columns = (
        Column("link"),
        Column("kind"),
        Column("rate", GBPS),
        Column("carried", BYTES),
        Column("utilization", FRACTION),
        Column("peak queue", BYTES),
        Column("ECN marks", INTEGER),
        Column("paused", MICROSECONDS),
        Column("critical path of the layer", MICROSECONDS),
    )
    uses = inspection.busiest_links(BUSIEST)
    note = f"{len(uses)} of {len(inspection.links)} directed links, over the whole run."
    meaning = "Utilization: time sending over simulated time."
    return _table("links", "Busiest links", columns, [_link_row(use) for use in uses], note, meaning)


def _link_row(use: LinkUse) -> list[Cell]:
    return [
        label(use.name),
        label(use.kind),
        plain(GBPS, use.rate_bps),
        plain(BYTES, use.bytes),
        plain(FRACTION, use.utilization),
        plain(BYTES, use.peak_queue_bytes),
        plain(INTEGER, use.ecn_marks),
        plain(MICROSECONDS, use.pause_ns),
        plain(MICROSECONDS, use.critical_ns),
    ]


def statistics_table(inspection: Inspection) -> Table:
    """Completion times of the layer's messages against the least possible, per collective."""
    names = ("least", "median", "90 %", "99 %", "most")
    columns = (
        Column("collective"),
        Column("algorithm"),
        Column("messages", INTEGER),
        Column("bytes", BYTES),
        Column("median least time", MICROSECONDS),
        *(Column(f"time, {name}", MICROSECONDS) for name in names),
        *(Column(f"over least, {name}", NUMBER) for name in names),
    )
    rows = [
        [
            label(s.node.title),
            label(s.node.algorithm),
            plain(INTEGER, s.flows),
            plain(BYTES, s.bytes),
            plain(MICROSECONDS, s.ideal_ns[1]),
            *(plain(MICROSECONDS, value) for value in s.fct_ns),
            *(plain(NUMBER, value) for value in s.slowdown),
        ]
        for s in inspection.statistics
    ]
    assert len(names) == len(QUANTILES)
    return _table(
        "fct", "Message completion times", columns, rows,
        "The least time is that of the message alone on its way: its packets one behind the other through "
        "the slowest link, one packet through every other, the last acknowledgement back, and all delays.",
    )  # fmt: skip


def stragglers_table(inspection: Inspection) -> Table:
    """The messages that lost most time."""
    columns = (
        Column("message"), Column("collective"), Column("chunk", INTEGER), Column("step", INTEGER),
        Column("bytes", BYTES), *(Column(name, MICROSECONDS) for name in ("start", "time", "lost")),
        Column("over least", NUMBER), Column("way"),
    )  # fmt: skip
    rows = []
    for s in inspection.stragglers:
        hops = [inspection.traffic.name(link).split(" → ")[1] for link in s.path[:-1]]
        rows.append(
            [
                label(f"rank {s.flow.src} → rank {s.flow.dst}"),
                label(s.node.title),
                plain(INTEGER, s.flow.chunk),
                plain(INTEGER, s.flow.step),
                plain(BYTES, s.flow.bytes),
                plain(MICROSECONDS, s.flow.start_ns - inspection.path.begin_ns),
                plain(MICROSECONDS, s.flow.fct_ns),
                plain(MICROSECONDS, s.lost_ns),
                plain(NUMBER, s.flow.fct_ns / s.ideal_ns),
                label(" → ".join(hops)),
            ]
        )
    return _table(
        "stragglers", "Stragglers", columns, rows, "Start is counted from the beginning of the layer."
    )


def segments_table(inspection: Inspection) -> Table:
    """Every segment of the path."""
    columns = (
        Column("from", MICROSECONDS), Column("time", MICROSECONDS), Column("what"), Column("node"),
        Column("chunk", INTEGER), Column("step", INTEGER),
        *(Column(part, MICROSECONDS) for part in FLOW_PARTS),
        Column("held by"),
    )  # fmt: skip
    rows = [list(_segment_row(inspection, item)) for item in inspection.path.segments]
    note = "In order of time, counted from the beginning of the layer; each begins where the one before ends."
    return _table("segments", "The path, segment by segment", columns, rows, note, long=True)


def _segment_row(inspection: Inspection, item: PathSegment) -> Iterator[Cell]:
    segment = item.segment
    flow = segment.flow
    yield plain(MICROSECONDS, segment.begin_ns - inspection.path.begin_ns)
    yield plain(MICROSECONDS, segment.duration_ns)
    yield label(f"message {flow.src} → {flow.dst}" if flow else f"{segment.kind}, rank {segment.rank}")
    yield label(inspection.record.chain[segment.node].title)
    for value in (segment.chunk if segment.chunk >= 0 else None, flow.step if flow else None):
        yield label("") if value is None else plain(INTEGER, value)
    for part in FLOW_PARTS:
        yield plain(MICROSECONDS, item.parts[part]) if flow else label("")
    yield label(inspection.traffic.name(item.holder) if flow else "")


def comparison_tables(comparison: Comparison) -> Iterator[Table]:
    """Inputs that differ, then the parts of both paths."""
    first, second = comparison.first, comparison.second
    columns = (Column("input"), Column(first.key), Column(second.key))
    rows = [[label(d.name), label(d.first), label(d.second)] for d in comparison.differences]
    yield _table("inputs", "What differs", columns, rows, *(() if rows else ("The inputs are the same.",)))
    gap = comparison.layer_gap_ns
    heads = ("first", "second", "difference")
    sides = [
        Column("part"),
        *(Column(n, MICROSECONDS) for n in heads),
        Column("share of the difference", FRACTION),
    ]
    one, two = first.path.parts, second.path.parts
    rows = [
        [label(part), *(plain(MICROSECONDS, value) for value in (one[part], two[part], time_ns)),
         plain(FRACTION, time_ns / gap) if gap else label("")]
        for part, time_ns in comparison.parts.items()
    ]  # fmt: skip
    rows.append(
        [label("sum"), plain(MICROSECONDS, first.path.total_ns), plain(MICROSECONDS, second.path.total_ns),
         plain(MICROSECONDS, gap), plain(FRACTION, 1.0) if gap else label("")]
    )  # fmt: skip
    note = (
        f"Layer {first.layer} of the first run, layer {second.layer} of the second; the differences add up."
    )
    yield _table("parts", "Which part explains it", sides, rows, note)


def summary(inspection: Inspection) -> list[str]:
    """The finding in sentences: time, largest part, main links."""
    run, path = inspection.record.run, inspection.path
    wall, gpu, comm = (f"{int(run[name]) / 1e6:.6f} ms" for name in ("wall_ns", "gpu_ns", "comm_ns"))
    largest = path.largest_part
    layer = f"Layer {path.layer} takes {path.total_ns / 1e3:.3f} us on that rank."
    return [
        f"Completion time {wall} on rank {path.rank}, the last to finish: {gpu} GPU, {comm} communication.",
        f"{layer} Largest part of its critical path: {largest}, {path.parts[largest] / path.total_ns:.1%}.",
        main_links_sentence(inspection, path),
    ]


def main_links_sentence(inspection: Inspection, path: CriticalPath) -> str:
    """The links that carry at least half of the path, by name."""
    links = path.main_links(MAIN_SHARE)
    held = sum(path.link_ns[link] for link in links) / path.total_ns
    traffic = inspection.traffic
    named = ", ".join(
        f"{traffic.name(link)} ({traffic.kind(link)}, {path.link_ns[link] / path.total_ns:.1%})"
        for link in links
    )
    if held < MAIN_SHARE:
        return f"Links hold {held:.1%} of it, less than half: {named or 'none'}."
    return f"{'These links carry' if len(links) > 1 else 'This link carries'} {held:.1%} of it: {named}."
