"""How far a results file is, and who works on it: what `hpcmoe status` shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe.design import RunKey
from hpcmoe.errors import HpcmoeError
from hpcmoe.store.committed import TraceSource
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.reader import Results, open_checked
from hpcmoe.sweep.live import read_live
from hpcmoe.sweep.lock import holder
from hpcmoe.sweep.plan import expected_s
from hpcmoe.sweep.progress import duration
from hpcmoe.sweep.stored import stored_options

SHOWN_WORKERS = 16
SHOWN_FAILURES = 10


def status(path: Path) -> dict[str, Any]:
    """Counts, rate, time left, failures, and what each rank does; also of a file that is being written.

    `sweep` is None when no sweep runs, `left_s` when there is nothing to tell the rate by.
    """
    paths = ResultPaths(path)
    with Results(path) as results:
        runs, options = results.runs, stored_options(results)
        counts = results.counts()
        recorded = results.provenance()["runs"]
        spent_s = float(np.nansum(recorded["seconds"]))
    who = holder(paths)
    live = read_live(paths) if who is not None else None
    missing = runs["key"][runs["status"] == "missing"].tolist()
    return {
        "file": str(path),
        **counts,
        "runs": len(runs),
        "cpu_seconds": spent_s,
        "predicted_cpu_seconds_left": sum(expected_s(RunKey.parse(key), options) for key in missing),
        **_trace_counts(path),
        "failures": {str(row["key"]): str(row["error"]) for row in runs[runs["status"] == "failed"]},
        "sweep": None if who is None else {**who, **(live or {})},
    }


def _trace_counts(path: Path) -> dict[str, int]:
    with open_checked(path) as file:
        traces = TraceSource(file, ResultPaths(path))
        done = traces.runs["status"] == 1
        return {
            "waiting_for_merge": int(np.sum(traces.spooled)),
            "without_traces": int(np.sum(done & ~traces.present)),
        }


def describe(found: dict[str, Any]) -> Iterator[str]:
    """The status as lines for people."""
    counts = f"{found['ok']} done, {found['failed']} failed, {found['missing']} left"
    yield f"{found['file']}: {found['runs']} runs, {counts}"
    yield f"  CPU time so far       {duration(found['cpu_seconds'])}"
    if found["missing"]:
        yield f"  predicted CPU left    {duration(found['predicted_cpu_seconds_left'])}"
    if found["without_traces"]:
        yield (
            f"  {found['without_traces']} finished run(s) lack their traces (file copied without its .spool "
            "folder?): the next sweep does them again"
        )
    yield from _describe_sweep(found)
    failures = list(found["failures"].items())
    yield from (f"  failed: {key}: {error}" for key, error in failures[:SHOWN_FAILURES])
    if len(failures) > SHOWN_FAILURES:
        yield f"  ... and {len(failures) - SHOWN_FAILURES} more failed"


def _describe_sweep(found: dict[str, Any]) -> Iterator[str]:
    sweep = found["sweep"]
    if sweep is None:
        if found["missing"]:
            yield "  no sweep is running; the same command continues"
        elif found["waiting_for_merge"]:
            yield f"  {found['waiting_for_merge']} runs wait in the spool: 'hpcmoe merge' completes the file"
        return
    if "process" in sweep:
        yield f"  running since {sweep['started']} (process {sweep['process']} on {sweep['host']})"
    if "working" not in sweep:
        return
    age_s = max(0.0, time.time() - sweep["written_unix_s"])
    left = "unknown" if sweep["left_s"] is None else f"about {duration(sweep['left_s'])}"
    yield f"  rate                  {sweep['runs_per_hour']:.0f} runs/h, time left {left}"
    stopping = ", stopping" if sweep["stopping"] else ""
    yield f"  {len(sweep['working'])} of {sweep['ranks']} ranks at work{stopping} ({age_s:.0f} s ago):"
    for work in sweep["working"][:SHOWN_WORKERS]:
        yield f"    rank {work['rank']:<5} {duration(work['seconds'] + age_s):>8}  {work['run']}"
    if len(sweep["working"]) > SHOWN_WORKERS:
        yield f"    ... and {len(sweep['working']) - SHOWN_WORKERS} more"


def check_idle(path: Path) -> None:
    """Raise HpcmoeError when a sweep is at work on `path`."""
    if holder(ResultPaths(path)) is not None:
        raise HpcmoeError(f"{path}: a sweep is writing this file; wait for it, or stop it first")
