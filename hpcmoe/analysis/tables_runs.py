"""Tables about the file itself: what it holds, what failed, single runs beside published points."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.compare import compare
from hpcmoe.analysis.runtable import RunTable
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import FRACTION, INTEGER, LABEL, SECONDS, Cell, Column, Table, label, plain
from hpcmoe.analysis.tables_model import Published, point_levels


def overview_tables(study: Study) -> Iterator[Table]:
    """Runs by factor and the failed ones."""
    yield inventory_table(study.runs)
    yield failed_table(study.runs)


def _study_counts(factor: str) -> Counter[str]:
    return Counter(getattr(key, factor) for key in design.all_runs())


def inventory_table(runs: RunTable) -> Table:
    """Planned, finished, failed and missing runs, in all and per level of each factor."""
    statuses = runs.text["status"]
    rows = [_inventory_row("all", "", len(design.all_runs()), list(statuses))]
    for factor in ("model", *sets.FACTORS):
        in_study = _study_counts(factor)
        known = list(getattr(design, _LEVEL_NAMES[factor]))
        levels = known + sorted(set(runs.text[factor]) - set(known))
        for level in levels:
            held = [s for s, value in zip(statuses, runs.text[factor], strict=True) if value == level]
            shown = level if level in known else f"{level} (not in the study)"
            rows.append(_inventory_row(factor, shown, in_study[level], held))
    columns = tuple(Column(name) for name in ("factor", "level")) + tuple(
        Column(name, INTEGER) for name in ("in the study", "in this file", "present", "failed", "missing")
    )
    return Table(
        "inventory",
        "",
        "Runs in this file",
        columns,
        tuple(tuple(row) for row in rows),
        notes=(
            (
                "in the study: of the 768 published configurations; in this file: planned when it was made; "
                "missing: planned and not run yet."
            ),
        ),
    )


_LEVEL_NAMES = {
    "model": "MODELS",
    "topology": "TOPOLOGIES",
    "strategy": "STRATEGIES",
    "collective": "COLLECTIVES",
    "network": "NETWORKS",
}


def _inventory_row(factor: str, level: str, in_study: int, held: list[str]) -> list[Cell]:
    numbers = (in_study, len(held), held.count("ok"), held.count("failed"), held.count("missing"))
    return [label(factor), label(level), *(plain(INTEGER, number) for number in numbers)]


def failed_table(runs: RunTable) -> Table:
    """Key and error of every failed run.  Always made, so that a new report replaces an old list."""
    rows = tuple(
        (label(key), label(error or "no reason recorded"))
        for key, error, status in zip(runs.text["key"], runs.text["error"], runs.text["status"], strict=True)
        if status == "failed"
    )
    return Table(
        "failed", "", "Failed runs", (Column("run"), Column("error")), rows, notes=() if rows else ("None.",)
    )


def points_table(study: Study, published: Published) -> Table:
    """Every single run that the study publishes a time for."""
    rows = []
    for point in published["points"]:
        levels = point_levels(point)
        wall = levels.pop("wall")
        key = "/".join([point["model"], *levels.values()])
        cell = compare(study, [point["model"]], SECONDS, metrics.single(point["model"], **levels), wall)
        rows.append((label(key), label(point["source"]), cell))
    columns = (Column("run"), Column("source"), Column("wall", SECONDS, compared=True))
    return Table(
        "points",
        "",
        "Published single points",
        columns,
        tuple(rows),
        notes=_points_notes(rows),
        present=sum(row[2].present or 0 for row in rows),
        expected=len(rows),
    )


def _points_notes(rows: list[tuple[Cell, Cell, Cell]]) -> tuple[str, ...]:
    found = [abs(row[2].difference) for row in rows if isinstance(row[2].difference, float)]
    if not found:
        return ("No published point can be compared with a run of this file.",)
    scaled = sum(row[2].scaled is not None for row in rows)
    basis = f" ({scaled} of them on scaled times, not simulated)" if scaled else ""
    return (
        (
            f"{len(found)} of {len(rows)} points compared{basis}: median difference {median(found):.1f} %, "
            f"largest {max(found):.1f} %, {sum(d <= 5 for d in found)} within 5 %."
        ),
    )


RUN_COUNTS = (
    ("tokens", "tokens"),
    ("layers simulated", "layers_simulated"),
    ("layers added", "layers_added"),
    ("bottleneck rank", "bottleneck_rank"),
    ("events", "events"),
    ("packet hops", "packet_hops"),
    ("ECN marks", "ecn_marks"),
    ("PFC pauses", "pfc_pauses"),
)
"""Column and field of the counts of a run."""


def runs_table(runs: RunTable) -> Table:
    """Every run of the file, as simulated."""
    columns = (
        Column("run"),
        Column("status"),
        Column("wall", SECONDS),
        Column("GPU", SECONDS),
        Column("communication", SECONDS),
        Column("communication fraction", FRACTION),
        *(Column(name, INTEGER) for name, _ in RUN_COUNTS),
    )
    rows = tuple(_run_row(runs, i) for i in range(len(runs)))
    notes = (
        (
            "Times are those of the bottleneck rank for the layers the run holds. layers added: equal to a "
            "simulated layer by proof, counted and not simulated again."
        ),
    )
    return Table(
        "runs",
        "",
        "All runs",
        columns,
        rows,
        notes=notes,
        present=runs.count("ok"),
        expected=len(runs),
        sortable=True,
    )


def _run_row(runs: RunTable, position: int) -> tuple[Cell, ...]:
    status = runs.text["status"][position]
    head = (label(runs.text["key"][position]), label(status))
    if status != "ok":
        width = 4 + len(RUN_COUNTS)
        return (*head, *(Cell(LABEL, ours="") for _ in range(width)))
    numbers = {name: int(column[position]) for name, column in runs.numbers.items()}
    wall, gpu, comm = (numbers[name] / metrics.NS_PER_S for name in ("wall_ns", "gpu_ns", "comm_ns"))
    fraction = comm / wall if wall else None
    return (
        *head,
        plain(SECONDS, wall),
        plain(SECONDS, gpu),
        plain(SECONDS, comm),
        plain(FRACTION, fraction),
        *(plain(INTEGER, numbers[name]) for _, name in RUN_COUNTS),
    )
