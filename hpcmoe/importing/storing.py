"""Puts an imported run into a results file, new or with earlier imports."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe import design
from hpcmoe.errors import InputError
from hpcmoe.importing.folder import Imported
from hpcmoe.store import schema
from hpcmoe.store.committed import TraceSource, read_sessions
from hpcmoe.store.layout import FileSpec, RunSpec, create
from hpcmoe.store.merge import merge
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.reader import open_checked
from hpcmoe.store.result import RunRows, RunTraces, provenance_row, take_columns
from hpcmoe.store.rows import LAYOUT_COLUMNS, RowFile
from hpcmoe.store.spool import remove_spool, write_spool
from hpcmoe.store.trouble import discard, reading, storing
from hpcmoe.sweep.comm import SerialComm
from hpcmoe.sweep.lock import exclusive
from hpcmoe.sweep.session import describe_session, record_session, software

# What no file of upstream has. A column that could not be filled is 0 in the file, and listed here.
_ALWAYS_MISSING = {
    "/runs": ("events", "packet_hops", "ecn_marks", "drops", "ignored_int_flows", "quiet_moments"),
    "/links": schema.LINKS.names,
    "/traces/fct": ("node_id", "layer", "chunk", "step"),
    "/provenance/runs": ("seconds", "peak_memory_bytes", "host"),
}


@dataclass(frozen=True)
class _Held:
    """A run as it goes into the new file."""

    key: str
    rows: RunRows
    traces: RunTraces


def add_run(path: str | os.PathLike[str], run: Imported, program: str) -> int:
    """Stores the run and returns how many runs the file has now. ``program`` says where the numbers are from.

    The file is written anew beside the old one and then takes its place. InputError when the file is not one
    of imports, has this run already, or was made for other tokens or layers.
    """
    paths = ResultPaths(Path(path))
    with exclusive(paths):
        held, sessions = _held_runs(paths.file, run) if paths.file.exists() else ([], [])
        sessions = [*sessions, _session(run, program)]
        try:
            _write(paths, sorted([*held, _new(run, program)], key=_order), sessions, run.scenario)
        finally:
            remove_spool(ResultPaths(paths.import_temporary))
            discard(paths.import_temporary)
    return len(held) + 1


def missing(run: Imported) -> dict[str, list[str]]:
    """Columns that hold nothing, by dataset; where all of a dataset are listed it has no rows of the run."""
    lacking = {path: list(names) for path, names in _ALWAYS_MISSING.items()}
    if run.flows is not None and "layer" in (run.flows.dtype.names or ()):
        del lacking["/traces/fct"]
    if run.flows is None:
        lacking["/ranks"] = ["bytes_sent", "bytes_received"]
        lacking["/runs"].append("pfc_pauses")
        lacking |= {table.path: list(table.names) for table in (schema.FCT, schema.PFC)}
    if run.queues is None:
        lacking["/traces/qlen"] = list(schema.QLEN.names)
    if run.scenario.tokens is None:
        lacking["/runs"] += ["tokens"]
    return lacking


def _session(run: Imported, program: str) -> dict[str, Any]:
    record = {"run": run.key, "program": program, "files": dict(run.files), "missing": missing(run)}
    return {**describe_session(SerialComm()), "import": record}


def _order(run: _Held) -> tuple[Any, ...]:
    """Run-key order, with names that the catalog does not have after those of the study."""
    parts = run.key.split("/")
    ranked = []
    for part, levels in zip(parts, design.FACTORS.values(), strict=True):
        ranked.append((levels.index(part), "") if part in levels else (len(levels), part))
    return tuple(ranked)


def _new(run: Imported, program: str) -> _Held:
    text = json.dumps([program, run.scenario.digest(), *sorted(run.files.items())])
    digest = hashlib.sha256(text.encode()).hexdigest()
    config = json.dumps(run.scenario.to_json(), sort_keys=True)
    ranks = _ranks(run)
    provenance = provenance_row(
        seconds=np.nan, peak_memory_bytes=0, finished_unix_s=run.finished_unix_s, rank=0, host=""
    )
    rows = RunRows(
        "ok", _values(run, ranks, digest), ranks, np.zeros(0, schema.dtype(schema.LINKS)), provenance
    )
    return _Held(run.key, rows, _traces(run, digest, config))


def _ranks(run: Imported) -> np.ndarray:
    extra = ("bytes_sent", "bytes_received")
    whole = np.zeros(len(run.ranks), [*run.ranks.dtype.descr, *((name, "<u8") for name in extra)])
    for name in run.ranks.dtype.names or ():
        whole[name] = run.ranks[name]
    if run.flows is not None:
        for name, end in zip(extra, ("src", "dst"), strict=True):
            inside = run.flows[run.flows[end] < len(whole)]
            np.add.at(whole[name], inside[end], inside["bytes"])
    return take_columns(schema.RANKS, whole, 0)


def _values(run: Imported, ranks: np.ndarray, digest: str) -> dict[str, Any]:
    slowest = int(np.argmax(ranks["wall_ns"]))
    layers = max((int(graph.layer.max(initial=-1)) + 1 for graph in run.scenario.traces), default=0)
    pauses = 0 if run.pauses is None else int(np.sum(run.pauses["pause"] == 1))
    times = {name: ranks[name][slowest] for name in ("wall_ns", "gpu_ns", "comm_ns")}
    return {
        **times,
        "bottleneck_rank": slowest,
        "simulated_ns": ranks["finish_ns"].max(),
        "pfc_pauses": pauses,
        "tokens": run.scenario.tokens or 0,
        "layers": layers,
        "layers_simulated": layers,
        "digest": digest.encode(),
    }


def _traces(run: Imported, digest: str, config: str) -> RunTraces:
    tables = {}
    for name, rows in (("fct", run.flows), ("pfc", run.pauses), ("qlen", run.queues)):
        if rows is not None:
            tables[name] = _filled(schema.TRACE_TABLES[name], rows)
    return RunTraces(digest, config, **tables)


def _filled(table: schema.Table, rows: np.ndarray) -> np.ndarray:
    """The table's columns out of ``rows``; -1 marks an unknown layer, other columns that lack are 0."""
    whole = np.zeros(len(rows), schema.dtype(table))
    given = rows.dtype.names or ()
    if "layer" in table.names and "layer" not in given:
        whole["layer"] = -1
    known = replace(table, columns=tuple(column for column in table.columns if column.name in given))
    for name, values in ((name, take_columns(known, rows)[name]) for name in known.names):
        whole[name] = values
    return whole


def _held_runs(path: Path, run: Imported) -> tuple[list[_Held], list[dict[str, Any]]]:
    """Runs and sessions of an existing file of imports."""
    with open_checked(path) as file, reading(path):
        sessions = read_sessions(file)
        imported = {session["import"]["run"] for session in sessions if "import" in session}
        keys = {key.decode() for key in file[schema.RUNS.path]["key"]}
        if keys - imported:
            raise InputError(
                "made by a sweep: imported runs go into a file of their own, and 'hpcmoe compare' takes both",
                file=path,
            )
        if run.key in keys:
            raise InputError("has this run already: name another file or --key", file=path, value=run.key)
        _check_same(path, file.attrs, run)
        source = TraceSource(file, ResultPaths(path))
        return [_held(file, source, number) for number in range(len(source.runs))], sessions


def _check_same(path: Path, attrs: Mapping[str, Any], run: Imported) -> None:
    """A file has one number of tokens and one of layers."""
    for name, value in _size(run.scenario).items():
        if int(attrs[name]) != value:
            raise InputError(
                "runs of one size go into one file: name another file",
                file=path, field=name, value=value, allowed=str(int(attrs[name])),
            )  # fmt: skip


def _size(scenario: Any) -> dict[str, int]:
    return {"tokens": scenario.tokens or 0, "layers": -1 if scenario.layers is None else scenario.layers}


def _held(file: Any, source: TraceSource, number: int) -> _Held:
    row = source.runs[number]
    kept = set(schema.RUNS.names) - LAYOUT_COLUMNS - {"status", "checksum"}
    slabs = {}
    for name, table, what in (("ranks", schema.RANKS, "rank"), ("links", schema.LINKS, "link")):
        start = int(row[f"{what}_offset"])
        slabs[name] = file[table.path][start : start + int(row[f"{what}_count"])]
    rows = RunRows(
        schema.STATUS_NAMES[row["status"]],
        {name: row[name] for name in kept},
        **slabs,
        provenance=file[schema.RUN_PROVENANCE.path][number : number + 1],
    )
    traces = source.load(number)
    assert traces is not None
    return _Held(source.key(number), rows, traces)


def _write(paths: ResultPaths, runs: list[_Held], sessions: list[dict[str, Any]], scenario: Any) -> None:
    temporary = ResultPaths(paths.import_temporary)
    discard(temporary.file)
    row_map = create(temporary.file, _spec(runs, sessions[0], scenario))
    with storing(temporary.file), RowFile(temporary.file, row_map) as rows:
        for number, run in enumerate(runs):
            for table in (run.rows.ranks, run.rows.links, run.traces.repeats):
                table["run"] = number
            write_spool(temporary, run.key, run.traces, 0)
            rows.write(number, run.rows)
    for session in sessions:
        record_session(temporary, session)
    merge(temporary.file)
    with storing(paths.file):
        publish(temporary.file, paths.file)


def _spec(runs: list[_Held], session: Mapping[str, Any], scenario: Any) -> FileSpec:
    specs = [RunSpec(run.key, len(run.rows.ranks), len(run.rows.links)) for run in runs]
    provenance = {name: value for name, value in session.items() if name in schema.PROVENANCE_ATTRIBUTES}
    return FileSpec(
        specs,
        _factors(runs),
        scenario.tokens or 0,
        scenario.layers,
        select=[run.key for run in runs],
        traces=any(len(run.traces.fct) for run in runs),
        software=software(),
        provenance={"created": session["started"], **provenance},
    )


def _factors(runs: list[_Held]) -> dict[str, tuple[str, ...]]:
    """The study's levels of each factor, then those that only the runs have."""
    named: Iterator[tuple[str, ...]] = zip(*(run.key.split("/") for run in runs), strict=True)
    return {
        factor: tuple(dict.fromkeys((*levels, *sorted(parts))))
        for (factor, levels), parts in zip(design.FACTORS.items(), named, strict=True)
    }
