"""Where the traces of each run are: in the results file, in its spool, or nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np

from hpcmoe.store import schema
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.result import RunTraces, traces_checksum
from hpcmoe.store.spool import read_spool, spooled_counts
from hpcmoe.store.trouble import reading

CONFIG_GROUP = "/config"
SESSIONS = "/provenance/sessions"


def has_traces(source: h5py.File, paths: ResultPaths) -> np.ndarray:
    """Per run, whether what belongs to its row (same digest) is in the spool or in the file."""
    runs = source[schema.RUNS.path][...]
    return _in_file(source, runs) | _in_spool(paths, runs)


def needs_merge(path: Path) -> bool:
    """Whether the spool holds anything of a finished run that the file does not have yet."""
    with h5py.File(path, "r", locking=False) as source, reading(path):
        runs = source[schema.RUNS.path][...]
        known = runs["status"] != schema.STATUS["missing"]
        return bool(np.any(known & _in_spool(ResultPaths(path), runs) & ~_in_file(source, runs)))


class TracesOfRuns(Protocol):
    """Rows of /runs and the traces that go with them, for a file to be written."""

    runs: np.ndarray

    def key(self, number: int) -> str: ...
    def counts(self, number: int) -> dict[str, int]: ...
    def load(self, number: int) -> RunTraces | None: ...


class TraceSource:
    """The traces of every run of an open file, wherever they are. A run without any gives None."""

    def __init__(self, source: h5py.File, paths: ResultPaths) -> None:
        self._paths = paths
        with reading(paths.file):
            self._committed = CommittedTraces(source) if schema.TRACE_INDEX.path in source else None
            self.runs = source[schema.RUNS.path][...]
            self._in_file = _in_file(source, self.runs)
            known = self.runs["status"] != schema.STATUS["missing"]
            self.spooled = known & _in_spool(paths, self.runs) & ~self._in_file
        self.present = known & (self.spooled | self._in_file)

    def key(self, number: int) -> str:
        return self.runs["key"][number].decode()

    def counts(self, number: int) -> dict[str, int]:
        """Rows of each table of run `number`, without reading them."""
        if self.spooled[number]:
            return spooled_counts(_spool_of(self._paths, self.runs[number]))
        if self.present[number] and self._committed is not None:
            index = self._committed.index[number]
            return {name: int(index[f"{name}_count"]) for name in schema.VARIABLE_TABLES}
        return dict.fromkeys(schema.VARIABLE_TABLES, 0)

    def load(self, number: int, kinds: tuple[str, ...] = schema.TRACE_KINDS) -> RunTraces | None:
        """Traces of run `number`; kinds not named come back empty."""
        if self.spooled[number]:
            return read_spool(_spool_of(self._paths, self.runs[number]), kinds)
        if self.present[number] and self._committed is not None:
            return self._committed.load(number, self.key(number), kinds)
        return None

    def intact(self, number: int, found: RunTraces) -> bool:
        """Whether what was loaded of run `number` is what was written. The spool has no checksums."""
        if self.spooled[number] or self._committed is None:
            return True
        return bool(self._committed.index[number]["checksum"] == traces_checksum(found))


def _in_file(source: h5py.File, runs: np.ndarray) -> np.ndarray:
    if schema.TRACE_INDEX.path not in source:
        return np.zeros(len(runs), bool)
    index = source[schema.TRACE_INDEX.path][...]
    same = (index["digest"] == runs["digest"]) & (index["status"] == runs["status"])
    return same & (index["digest"] != b"")


def _in_spool(paths: ResultPaths, runs: np.ndarray) -> np.ndarray:
    spooled = paths.spooled()
    return np.array([_spool_of(paths, run) in spooled for run in runs], bool)


def _spool_of(paths: ResultPaths, run: np.void) -> Path:
    return paths.spool_file(run["key"].decode(), run["digest"].decode())


class CommittedTraces:
    """Traces that are in the file. Its datasets stay open, and with them the chunks last unpacked."""

    def __init__(self, source: h5py.File) -> None:
        self._tables = {name: source[table.path] for name, table in schema.VARIABLE_TABLES.items()}
        self._config = source[CONFIG_GROUP]
        self.index = source[schema.TRACE_INDEX.path][...]

    def load(self, number: int, key: str, kinds: tuple[str, ...] = schema.TRACE_KINDS) -> RunTraces:
        """Traces of run `number`; kinds not named come back empty."""
        index = self.index[number]
        arrays = {name: self._tables[name][_rows(index, name)] for name in (*kinds, "repeats")}
        return RunTraces(index["digest"].decode(), self._config[key][()].decode(), **arrays)


def _rows(index: np.void, name: str) -> slice:
    start = int(index[f"{name}_offset"])
    return slice(start, start + int(index[f"{name}_count"]))


def read_sessions(source: h5py.File) -> list[dict[str, Any]]:
    """Sessions recorded in a file by earlier merges."""
    return json.loads(source[SESSIONS][()].decode()) if SESSIONS in source else []
