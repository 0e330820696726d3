"""Compares what a sweep was asked for with the file that is there, and lists what is left to do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from hpcmoe import design
from hpcmoe.errors import InputError
from hpcmoe.placement import CONTIGUOUS
from hpcmoe.store import schema
from hpcmoe.store.committed import has_traces
from hpcmoe.store.layout import FileSpec, RowMap, RunSpec, create, read_row_map
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.reader import open_checked
from hpcmoe.store.trouble import reading
from hpcmoe.sweep.arguments import Options
from hpcmoe.sweep.cost import predicted_cost
from hpcmoe.sweep.simulator import Simulator, real_simulator


@dataclass(frozen=True)
class Task:
    """One run to do: its row, and the digest with which the stored result may be kept ('' if none).

    `error` is that of a stored failure. `expected_s` is how long the run should take, for a worker
    that is asked to stop in the middle; it knows nothing better.
    """

    run: int
    keep: str = ""
    error: str = ""
    expected_s: float = math.inf


@dataclass(frozen=True)
class Plan:
    """What every rank needs to know. Rank 0 sends it around before work begins."""

    options: Options
    keys: tuple[design.RunKey, ...]
    row_map: RowMap
    deadline_unix_s: float = math.inf

    @property
    def paths(self) -> ResultPaths:
        return ResultPaths(self.options.file)


def expected_s(key: design.RunKey, options: Options) -> float:
    """CPU seconds that a run will take, by the cost model."""
    settings = options.settings(key)
    return predicted_cost(key, settings.tokens, settings.layers)


def factor_levels(keys: Iterable[design.RunKey]) -> dict[str, tuple[str, ...]]:
    """Names that a results file has codes for: the study's, then those that the runs have beside them."""
    ordered = sorted(keys)
    return {
        factor: tuple(dict.fromkeys((*studied, *(getattr(key, factor) for key in ordered))))
        for factor, studied in design.FACTORS.items()
    }


def make_plan(
    options: Options,
    simulator: Simulator,
    software: Mapping[str, str],
    session: Mapping[str, Any],
    deadline_unix_s: float = math.inf,
) -> tuple[Plan, list[Task], list[str]]:
    """Plan, tasks in the order to hand out, and remarks for the user. Lays the file out if new.

    Raises InputError when the options are bad or do not fit the existing file.
    """
    keys = options.keys()
    remarks: list[str] = []
    if not options.file.exists():
        check_scenarios(options, simulator)  # refuse bad options before there is a file
        row_map = create(options.file, file_spec(options, keys, simulator.shape, software, session))
        tasks = [Task(run) for run in range(len(keys))]
        renewed = False
    else:
        row_map, tasks, renewed = _continue(options, keys, software, remarks)
    plan = Plan(options, keys, row_map, deadline_unix_s)
    return plan, order_tasks(tasks, keys, options, renewed=renewed), remarks


def check_scenarios(options: Options, simulator: Simulator | None = None) -> None:
    """Build runs that have, all together, every level of every factor. InputError for what cannot run."""
    build = (simulator or real_simulator()).scenario
    keys = options.keys()
    covering = [keys[0]] if options.study is None else _covering(keys)
    for key in covering:
        try:
            build(key, options)
        except InputError as error:
            if options.study is None:
                raise
            raise InputError(f"{key}: {error}") from None


def _covering(keys: Iterable[design.RunKey]) -> list[design.RunKey]:
    """The first run of each level."""
    first: dict[tuple[str, str], design.RunKey] = {}
    for key in keys:
        for level in (*vars(key).items(), *design.settings_of(key.variant).items()):
            first.setdefault(level, key)
    return list(dict.fromkeys(first.values()))


def file_spec(
    options: Options,
    keys: Sequence[design.RunKey],
    shape: Callable[[design.RunKey], tuple[int, int]],
    software: Mapping[str, str],
    session: Mapping[str, Any],
) -> FileSpec:
    """What the store needs to lay out a new file. `shape` gives the rows of /ranks and /links of a run."""
    runs = [RunSpec(str(key), *shape(key)) for key in keys]
    provenance = {name: value for name, value in session.items() if name in schema.PROVENANCE_ATTRIBUTES}
    return FileSpec(
        runs,
        factor_levels(keys) if options.study is None else options.study.levels,
        options.tokens,
        options.layers,
        options.overrides,
        options.select,
        options.traces,
        software,
        {"created": session["started"], **provenance},
        options.placement.to_json(),
        None if options.study is None else options.study.to_json(),
    )


def order_tasks(
    tasks: Iterable[Task], keys: Sequence[design.RunKey], options: Options, *, renewed: bool
) -> list[Task]:
    """Longest predicted run first; stored results that only need a check go last.

    With `renewed` stored results are expected to be out of date and are ordered like new runs.
    """

    def rank(task: Task) -> tuple[bool, float, int]:
        checked_last = bool(task.keep) and not renewed
        return checked_last, -expected_s(keys[task.run], options), task.run

    return sorted(tasks, key=rank)


def _continue(
    options: Options, keys: Sequence[design.RunKey], software: Mapping[str, str], remarks: list[str]
) -> tuple[RowMap, list[Task], bool]:
    """Check an existing file against the options; tasks with what may be kept, and whether that is
    expected to be out of date."""
    with open_checked(options.file) as file, reading(options.file):
        _check_same_study(options, keys, file)
        tasks = _stored_tasks(file, options, remarks)
        written_by = str(file.attrs["hpcmoe_version"])
    renewed = written_by != software["hpcmoe_version"] and any(task.keep for task in tasks)
    if renewed:
        remarks.append(
            f"the file was written by hpcmoe {written_by}, this is {software['hpcmoe_version']}: "
            "finished runs are done again"
        )
    return read_row_map(options.file), tasks, renewed


def _stored_tasks(file: h5py.File, options: Options, remarks: list[str]) -> list[Task]:
    runs = file[schema.RUNS.path][...]
    ok, failed = (runs["status"] == schema.STATUS[name] for name in ("ok", "failed"))
    whole = has_traces(file, ResultPaths(options.file))
    bare = int(np.sum(ok & ~whole))
    if bare:
        remarks.append(
            f"{bare} finished run(s) are done again: their traces are neither in the file nor beside it "
            f"(was it copied without {ResultPaths(options.file).spool.name}?)"
        )
    kept = (ok & whole) | (failed & (not options.retry_failed))
    return [
        Task(number, row["digest"].decode() if keep else "", row["error"].decode() if keep else "")
        for number, (row, keep) in enumerate(zip(runs, kept, strict=True))
    ]


def _check_same_study(options: Options, keys: Sequence[design.RunKey], file: h5py.File) -> None:
    stored = json.loads(file.attrs["design"])
    _check_same_definition(options, stored.get("study"))
    asked = {
        "tokens": options.tokens,
        "layers": options.layers,
        "overrides": dict(options.overrides),
        "traces": options.traces,
        "placement": options.placement.to_json(),
    }
    # Files of earlier versions do not say it.
    stored.setdefault("placement", CONTIGUOUS)
    flags = {
        "placement": "--placement",
        "tokens": "--tokens",
        "layers": "--layers",
        "overrides": "--set",
        "traces": "--no-traces",
    }
    differences = [
        f"{flags[name]} ({name} {shown(stored.get(name))} in the file, {shown(value)} asked for)"
        for name, value in asked.items()
        if stored.get(name) != value
    ]
    held = {key.decode() for key in file[schema.RUNS.path]["key"]}
    wanted = {str(key) for key in keys}
    if held != wanted:
        differences.append(
            f"--select ({_selection(held - wanted, wanted - held)}; "
            f"the file was made with {' '.join(stored['select'])!r})"
        )
    if differences:
        raise InputError(
            f"this results file belongs to another sweep. Different: {'; '.join(differences)}. "
            "Repeat the first command to continue it, or name another file",
            file=options.file,
        )


def _check_same_definition(options: Options, stored: Mapping[str, Any] | None) -> None:
    """The file was made for this very study, or both for none."""
    asked = None if options.study is None else json.loads(json.dumps(options.study.to_json()))
    if asked == stored:
        return
    advice = "Name another results file, or undo the change"
    if stored is None or asked is None:
        made = "without --study" if stored is None else "with --study"
        raise InputError(
            f"this results file was made {made}. Repeat the first command to continue it, "
            "or name another file",
            file=options.file,
        )
    different = [name for name in stored if name != "title" and stored[name] != asked.get(name)]
    if different:
        raise InputError(
            f"this results file belongs to another study. Different: {', '.join(different)}. {advice}",
            file=options.file,
        )


def _selection(only_file: Iterable[str], only_asked: Iterable[str]) -> str:
    parts = []
    for names, where in ((sorted(only_file), "only in the file"), (sorted(only_asked), "only asked for")):
        if names:
            parts.append(f"{len(names)} run(s) {where}, e.g. {names[0]}")
    return ", ".join(parts)


def shown(value: Any) -> str:
    """What a message says of a setting."""
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in sorted(value.items())) or "none"
    if isinstance(value, list):
        return f"of {len(value)} hosts from {value[0]} to {value[-1]}"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "all" if value is None else str(value)
