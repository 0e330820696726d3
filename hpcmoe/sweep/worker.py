"""Does one run and stores it. The same on every rank, rank 0 included."""

from __future__ import annotations

import json
import os
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe.errors import HpcmoeError
from hpcmoe.store.result import (
    RunRows,
    RunTraces,
    failed_rows,
    finished_rows,
    provenance_row,
    result_traces,
)
from hpcmoe.store.rows import RowWriter
from hpcmoe.store.spool import write_spool
from hpcmoe.store.trouble import storing
from hpcmoe.sweep.plan import Plan, Task
from hpcmoe.sweep.simulator import ProgressCallback, Simulator
from hpcmoe.sweep.timing import Stopwatch


@dataclass(frozen=True)
class Outcome:
    """How a task ended: 'ok', 'failed', or 'kept' when the stored result is still right.

    A stored failure that is still right is 'failed' and `kept`.
    `renewed` marks a run done again because its stored result belonged to other inputs or to
    another version. `details` is the traceback of an unexpected error, headed by rank and host.
    """

    run: int
    state: str
    renewed: bool = False
    error: str = ""
    details: str = ""
    seconds: float = 0.0
    wall_s: float = 0.0
    kept: bool = False


class CallbackError(BaseException):
    """The sweep itself broke while a run was going on: not that run's failure."""


class Worker:
    """Runs tasks on this rank."""

    def __init__(self, plan: Plan, simulator: Simulator, rows: RowWriter, rank: int, size: int) -> None:
        self._plan, self._simulator, self._rows = plan, simulator, rows
        self._rank, self._size, self._host = rank, size, socket.gethostname()

    def execute(self, task: Task, progress: ProgressCallback) -> Outcome:
        """Do one run; it is on disk when this returns. Only storing it may raise (StorageError)."""
        attempt = _Attempt()
        reset_peak_memory()
        try:
            rows = self._simulate(task, progress, attempt)
        except Exception as error:
            attempt.error = error_text(error)
            attempt.details = "" if isinstance(error, HpcmoeError) else self._located_traceback()
            rows = self._failed(task, attempt)
        if rows is None:
            return Outcome(task.run, "failed" if task.error else "kept", error=task.error, kept=True)
        if attempt.traces is not None:
            write_spool(self._plan.paths, str(self._plan.keys[task.run]), attempt.traces, self._rank)
        with storing(self._plan.paths.file):
            self._rows.write(task.run, rows)
        return Outcome(
            task.run,
            rows.status,
            bool(task.keep),
            attempt.error,
            attempt.details,
            attempt.seconds(),
            attempt.wall.seconds(),
        )

    def _simulate(self, task: Task, progress: ProgressCallback, attempt: _Attempt) -> RunRows | None:
        """Rows of a finished run, or None when the stored result can stay."""
        options = self._plan.options
        scenario = self._simulator.scenario(self._plan.keys[task.run], options)
        attempt.digest = scenario.digest()
        if task.keep == attempt.digest:
            return None
        config = json.dumps(scenario.to_json(), sort_keys=True)
        attempt.traces = RunTraces(attempt.digest, config)
        result = self._simulator.run(scenario, guarded(progress), options.traces)
        rows = finished_rows(
            task.run,
            result,
            digest=attempt.digest,
            tokens=options.settings(self._plan.keys[task.run]).tokens,
            provenance=self._provenance(attempt),
        )
        self._rows.check_counts(task.run, rows)
        attempt.traces = result_traces(
            result, task.run, digest=attempt.digest, config=config, keep=options.traces
        )
        return rows

    def _failed(self, task: Task, attempt: _Attempt) -> RunRows:
        stored = self._rows.read_run(task.run)
        return failed_rows(
            task.run,
            attempt.error,
            rank_count=int(stored["rank_count"]),
            link_count=int(stored["link_count"]),
            digest=attempt.digest,
            provenance=self._provenance(attempt),
        )

    def _provenance(self, attempt: _Attempt) -> np.ndarray:
        return provenance_row(
            seconds=attempt.seconds(),
            peak_memory_bytes=peak_memory_bytes(),
            finished_unix_s=time.time(),
            rank=self._rank,
            host=self._host,
        )

    def _located_traceback(self) -> str:
        head = f"rank {self._rank} of {self._size} on {self._host}, process {os.getpid()}:\n"
        return head + traceback.format_exc()


class _Attempt:
    """What is known about a run so far, for when it fails half-way."""

    def __init__(self) -> None:
        self.digest = ""
        self.error = ""
        self.details = ""
        self.traces: RunTraces | None = None
        self.wall = Stopwatch()
        self._started_s = time.process_time()

    def seconds(self) -> float:
        """CPU time spent so far."""
        return time.process_time() - self._started_s


def guarded(progress: ProgressCallback) -> ProgressCallback:
    """`progress`, with its errors kept apart from those of the run that calls it."""

    def call(info: Any) -> None:
        try:
            progress(info)
        except Exception as error:
            raise CallbackError(str(error)) from error

    return call


def error_text(error: Exception) -> str:
    """The error as the file keeps it: the same on whatever rank and host it happened."""
    text = str(error) or "no message"
    return text if isinstance(error, HpcmoeError) else f"{type(error).__name__}: {text}"


def reset_peak_memory() -> None:
    """Let the kernel measure the peak from here on, where it can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory_bytes(read: Callable[[], str] = Path("/proc/self/status").read_text) -> int:
    """Peak resident memory since the last reset, or of the whole process; 0 when unknown."""
    try:
        lines = read().splitlines()
    except OSError:
        return _usage_peak_bytes()
    peaks: list[Any] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peaks[0]) * 1024 if peaks else _usage_peak_bytes()


def _usage_peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
