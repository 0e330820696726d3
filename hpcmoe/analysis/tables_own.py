"""Tables of a study of the user's own: what was run, levels against each other, best configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hpcmoe.analysis.facts import ModelFacts
from hpcmoe.analysis.own import OwnStudy
from hpcmoe.analysis.table import (
    FRACTION,
    INTEGER,
    RATIO,
    Cell,
    Column,
    Notice,
    Quantity,
    Section,
    Table,
    label,
    plain,
)
from hpcmoe.analysis.tables_model import ARCHITECTURE, ARCHITECTURE_NOTE
from hpcmoe.analysis.tables_runs import failed_table, runs_table
from hpcmoe.store.factors import Factor

_MICROSECONDS = Quantity("microseconds", "us", 1, 3, "relative")
_MILLISECONDS = Quantity("milliseconds", "ms", 1, 3, "relative")


def own_sections(study: OwnStudy, facts: Mapping[str, ModelFacts]) -> list[Section]:
    """Everything a report on such a study shows, in order."""
    overview = (levels_table(study), settings_table(study), models_table(study, facts))
    return [
        Section(OVERVIEW, (*overview, failed_table(study.runs))),
        Section(BEST, tuple(best_tables(study))),
        Section(EFFECTS, tuple(effect_tables(study)), _EFFECTS_INTRO),
        Section(BARS, (), "Every finished run, compute time before communication time."),
        Section("All runs", (runs_table(study.runs),)),
    ]


OVERVIEW, BEST, EFFECTS, BARS = (
    "What was run",
    "Best configurations",
    "Levels against each other",
    "Time of every run",
)
_EFFECTS_INTRO = (
    "Each level beside the first one of its factor, over pairs of runs that are equal in every other factor. "
    "mean: geometric, of the ratios of all pairs; communication, mean: the same of communication time; at "
    "the largest: levels of the other factors where the ratio is largest."
)


def own_notices(study: OwnStudy) -> list[Notice]:
    """How complete the file is."""
    runs = study.runs
    text = f"{runs.count('ok')} of {len(runs)} runs finished"
    if runs.count("ok") == len(runs):
        return [Notice(f"{text}.")]
    rest = f"{runs.count('failed')} failed, {runs.count('missing')} have not run yet"
    return [Notice(f"{text}; {rest}. What follows is about the finished ones.", True)]


def levels_table(study: OwnStudy) -> Table:
    """Runs per level of each factor."""
    status = study.runs.text["status"]
    rows = [
        (label(factor.name), label(level), *_counts(status, factor.values, level))
        for factor in study.factors
        for level in factor.held
    ]
    columns = (
        Column("factor"),
        Column("level"),
        *(Column(name, INTEGER) for name in ("planned", "finished", "failed", "missing")),
    )
    return Table("own-levels", "", "Factors and their levels", columns, tuple(rows))


def _counts(status: Sequence[str], values: Sequence[str], level: str) -> list[Cell]:
    held = [state for state, value in zip(status, values, strict=True) if value == level]
    numbers = (len(held), held.count("ok"), held.count("failed"), held.count("missing"))
    return [plain(INTEGER, number) for number in numbers]


def settings_table(study: OwnStudy) -> Table:
    """What all runs share: counts and parameters, and combinations left out."""
    made = study.made.get("study") or {}
    settings = made.get("settings") or {"tokens": study.made.get("tokens"), **study.made.get("overrides", {})}
    rows = [(label(name), label(value)) for name, value in settings.items()]
    for name, levels in made.get("variants", {}).items():
        rows += [
            (label(f"{name}={level['name']}"), label(_assignments(level["settings"])))
            for level in levels
            if list(level["settings"]) != [name]
        ]
    rows += [(label(name), label("  ".join(made[name]))) for name in ("include", "exclude") if made.get(name)]
    columns = (Column("setting"), Column("value"))
    return Table("own-settings", "", "Settings of all runs", columns, tuple(rows))


def models_table(study: OwnStudy, facts: Mapping[str, ModelFacts]) -> Table:
    """Architectures of the models that the catalog has."""
    models = [facts[name] for name in study.factors[0].held if name in facts]
    rows = [
        (label(model.name), *(plain(quantity, getattr(model, name)) for _, quantity, name, _ in ARCHITECTURE))
        for model in models
    ]
    columns = (Column("model"), *(Column(name, quantity) for name, quantity, *_ in ARCHITECTURE))
    notes = (ARCHITECTURE_NOTE,)
    return Table("own-models", "", "Architectures and communication proxies", columns, tuple(rows), notes)


def _assignments(settings: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "nothing set"


def effect_tables(study: OwnStudy) -> Iterator[Table]:
    """A table per factor that varies."""
    for factor in study.varying:
        replicated = _replicated(study) and factor.name == "strategy"
        rows = tuple(tuple(_effect_row(study, factor, level, replicated)) for level in factor.held)
        per_token = [Column("per token, mean", RATIO)] * replicated
        yield Table(
            f"own-effect-{factor.name}",
            "",
            f"{factor.name}: wall time over that of {factor.held[0]}",
            (*_EFFECT_COLUMNS[:-1], *per_token, _EFFECT_COLUMNS[-1]),
            rows,
            notes=(_PER_TOKEN,) * replicated,
        )


def _replicated(study: OwnStudy) -> bool:
    return len(set(study.replicas.tolist())) > 1


_PER_TOKEN = "per token: wall time over the tokens of all replicas. Each replica (DP) has tokens of its own."


_EFFECT_COLUMNS = (
    Column("level"),
    Column("pairs", INTEGER),
    Column("mean", RATIO),
    Column("smallest", RATIO),
    Column("largest", RATIO),
    Column("communication, mean", RATIO),
    Column("at the largest"),
)


def _effect_row(study: OwnStudy, factor: Factor, level: str, per_token: bool) -> Iterator[Cell]:
    pairs = [pair for pair in study.pairs(factor, level) if all(map(study.wall_ns, pair))]
    yield label(level)
    yield plain(INTEGER, len(pairs))
    walls, comms = (_ratios(study, name, pairs) for name in ("wall_ns", "comm_ns"))
    if not len(walls):
        yield from (Cell(RATIO, present=0, expected=1, sample="pairs") for _ in range(4 + per_token))
        yield label("")
        return
    yield plain(RATIO, _geometric(walls))
    yield plain(RATIO, float(walls.min()))
    yield plain(RATIO, float(walls.max()))
    yield plain(RATIO, _geometric(comms)) if len(comms) else label("none")
    if per_token:
        shares = [study.replicas[first] / study.replicas[second] for first, second in pairs]
        yield plain(RATIO, _geometric(walls * np.array(shares)))
    largest = pairs[int(np.argmax(walls))][1]
    yield label("" if level == factor.held[0] else study.name(largest, [factor.name]))


def _ratios(study: OwnStudy, name: str, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Level over first level; pairs with a zero are left out."""
    values = study.runs.numbers[name].astype(float)
    kept = [(a, b) for a, b in pairs if values[a] > 0 and values[b] > 0]
    return np.array([values[b] / values[a] for a, b in kept])


def _geometric(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(ratios).mean()))


def best_tables(study: OwnStudy) -> Iterator[Table]:
    """The shortest step, and where replicas make a difference the least time per token."""
    yield best_table(study)
    if _replicated(study):
        yield throughput_table(study)


def _places(study: OwnStudy) -> tuple[Factor, ...]:
    """Factors that are given, not chosen: the workload and the topology."""
    return (*study.workloads, *(factor for factor in study.factors if factor.name == "topology"))


def throughput_table(study: OwnStudy) -> Table:
    """The run with the least time per token of each workload on each topology."""
    fixed = _places(study)
    names = [factor.name for factor in fixed]
    rows = []
    for levels, runs in study.grouped(fixed).items():
        best = min(runs, key=study.ns_per_token)
        cells = (plain(_MICROSECONDS, study.ns_per_token(best) / 1e3), plain(INTEGER, len(runs)))
        rows.append((*map(label, levels), label(study.name(best, names)), *cells))
    columns = (
        *map(Column, names),
        Column("least time per token"),
        Column("per token", _MICROSECONDS),
        Column("runs", INTEGER),
    )
    title = "Highest throughput of each workload and topology"
    return Table("own-throughput", "", title, columns, tuple(rows), (_PER_TOKEN,))


def best_table(study: OwnStudy) -> Table:
    """The fastest run of each workload on each topology."""
    fixed = _places(study)
    names = [factor.name for factor in fixed]
    rows = [
        (*(label(level) for level in levels), *_best_cells(study, runs, names))
        for levels, runs in study.grouped(fixed).items()
    ]
    columns = (
        *(Column(name) for name in names),
        Column("fastest"),
        Column("wall", _MILLISECONDS),
        Column("communication fraction", FRACTION),
        Column("slowest"),
        Column("slowest over fastest", RATIO),
        Column("runs", INTEGER),
    )
    notes = ("Levels of the other factors that vary. Only finished runs take part.",)
    return Table("own-best", "", "Fastest run of each workload and topology", columns, tuple(rows), notes)


def _best_cells(study: OwnStudy, runs: list[int], names: list[str]) -> Iterator[Cell]:
    fastest, slowest = min(runs, key=study.wall_ns), max(runs, key=study.wall_ns)
    wall_ns, comm_ns = study.wall_ns(fastest), int(study.runs.numbers["comm_ns"][fastest])
    yield label(study.name(fastest, names))
    yield plain(_MILLISECONDS, wall_ns / 1e6)
    yield plain(FRACTION, comm_ns / wall_ns if wall_ns else None)
    yield label(study.name(slowest, names))
    yield plain(RATIO, study.wall_ns(slowest) / wall_ns if wall_ns else None)
    yield plain(INTEGER, len(runs))
