"""Writes one results file with the runs of several.

Numbers of runs, and with them places and checksums, become those of the new file. What is taken over is
checked against its old checksum first, so that no damage gets a new one that fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.store import schema
from hpcmoe.store.committed import TraceSource
from hpcmoe.store.layout import FileSpec, initial_tables, write_fixed
from hpcmoe.store.merge import check_read_back, write_sessions, write_whole
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.result import RunTraces, traces_checksum
from hpcmoe.store.rows import LAYOUT_COLUMNS, rows_checksum
from hpcmoe.store.trouble import DAMAGE, discard, reading, storing


class Part:
    """An open results file that others are joined with."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self._traces = TraceSource(file, ResultPaths(path))
        self.runs = self._traces.runs
        self.numbers = {self._traces.key(number): number for number in range(len(self.runs))}

    def finished(self, key: str) -> bool:
        """Whether the run is here, and done or failed."""
        number = self.numbers.get(key)
        return number is not None and bool(self.runs["status"][number] != schema.STATUS["missing"])

    def rows(self, key: str) -> dict[str, np.ndarray]:
        """Rows of a finished run by path, /runs included. InputError where their checksum is wrong."""
        number = self.numbers[key]
        row = self.runs[number : number + 1]
        with reading(self.path):
            found = {
                schema.RUNS.path: row,
                schema.RANKS.path: self._slab(schema.RANKS, row["rank_offset"], row["rank_count"]),
                schema.LINKS.path: self._slab(schema.LINKS, row["link_offset"], row["link_count"]),
                schema.RUN_PROVENANCE.path: self._file[schema.RUN_PROVENANCE.path][number : number + 1],
            }
        ranks, links = found[schema.RANKS.path], found[schema.LINKS.path]
        if rows_checksum(row, ranks, links) != row["checksum"][0]:
            raise self._damaged(key, "the checksum of its rows is wrong")
        return found

    def traces(self, key: str) -> RunTraces | None:
        """Traces and scenario of a finished run, None where a failed one left none. InputError for others
        that have none, and where the checksum is wrong."""
        number = self.numbers[key]
        try:
            found = self._traces.load(number)
        except (*DAMAGE, HpcmoeError) as error:
            raise self._damaged(key, f"its traces cannot be read: {error}") from None
        if found is None and self.runs["status"][number] == schema.STATUS["ok"]:
            raise self._damaged(key, "its traces are neither in the file nor in the spool")
        if found is not None and not self._traces.intact(number, found):
            raise self._damaged(key, "the checksum of its traces is wrong")
        return found

    def counts(self, key: str) -> dict[str, int]:
        """Rows of each table of traces."""
        return self._traces.counts(self.numbers[key])

    def _slab(self, table: schema.Table, offset: np.ndarray, count: np.ndarray) -> np.ndarray:
        start = int(offset[0])
        return self._file[table.path][start : start + int(count[0])]

    def _damaged(self, key: str, what: str) -> InputError:
        advice = f"'hpcmoe verify --reset {self.path}', and the sweep of this file does the run again"
        return InputError(f"{what}; {advice}", file=self.path, field=key)


@dataclass(frozen=True)
class _Taken:
    """A run with its rows as they are in the new file, and where its traces are."""

    part: Part
    key: str
    rows: Mapping[str, np.ndarray]

    def traces(self, number: int) -> RunTraces | None:
        found = self.part.traces(self.key)
        if found is not None:
            found.repeats["run"] = number
        return found

    def same(self, other: _Taken) -> bool:
        """Whether both hold the same results. What is in /provenance may differ."""
        ours, theirs = (
            [rows.tobytes() for path, rows in one.rows.items() if path != schema.RUN_PROVENANCE.path]
            for one in (self, other)
        )
        return ours == theirs and _checksum(self.traces(0)) == _checksum(other.traces(0))


def _checksum(traces: RunTraces | None) -> int | None:
    return None if traces is None else traces_checksum(traces)


class JoinedRuns:
    """The runs of `spec` out of the files that have them finished; those that none has are missing.

    `tables` has what the fixed-size tables of the new file hold. InputError for what is damaged, and for a
    run that two files have with different results.
    """

    def __init__(self, spec: FileSpec, parts: Sequence[Part]) -> None:
        self.tables = initial_tables(spec)
        self.runs = self.tables[schema.RUNS.path]
        self._taken = [self._take(number, run.key, parts) for number, run in enumerate(spec.runs)]

    def key(self, number: int) -> str:
        return self.runs["key"][number].decode()

    def counts(self, number: int) -> dict[str, int]:
        taken = self._taken[number]
        return dict.fromkeys(schema.VARIABLE_TABLES, 0) if taken is None else taken.part.counts(taken.key)

    def load(self, number: int) -> RunTraces | None:
        taken = self._taken[number]
        return None if taken is None else taken.traces(number)

    def _take(self, number: int, key: str, parts: Sequence[Part]) -> _Taken | None:
        """The first part that has the run provides it; others that have it must have the same."""
        place = self.runs[number : number + 1]
        found = [_renumbered(part, key, number, place) for part in parts if part.finished(key)]
        if not found:
            return None
        for other in found[1:]:
            if not found[0].same(other):
                raise InputError(
                    f"{found[0].part.path} has other results of this run; remove one of the two, "
                    "or do it again by the program of the other",
                    file=other.part.path,
                    field=key,
                )
        starts = {schema.RANKS.path: place["rank_offset"][0], schema.LINKS.path: place["link_offset"][0]}
        for path, rows in found[0].rows.items():
            start = int(starts.get(path, number))
            self.tables[path][start : start + len(rows)] = rows
        return found[0]


def _renumbered(part: Part, key: str, number: int, place: np.ndarray) -> _Taken:
    """The run as it is in the new file; `place` has the columns fixed at layout."""
    rows = part.rows(key)
    row, ranks, links = place.copy(), rows[schema.RANKS.path], rows[schema.LINKS.path]
    for name in schema.RUNS.names:
        if name not in LAYOUT_COLUMNS:
            row[name] = rows[schema.RUNS.path][name]
    ranks["run"] = links["run"] = number
    row["checksum"] = rows_checksum(row, ranks, links)
    return _Taken(part, key, {**rows, schema.RUNS.path: row})


def join(path: Path, spec: FileSpec, parts: Sequence[Part], sessions: Sequence[Mapping[str, Any]]) -> None:
    """Write the new file `path`; it appears complete or not at all.

    Raises InputError for what cannot be taken over, StorageError when the file cannot be written.
    """
    joined, new = JoinedRuns(spec, parts), ResultPaths(path).commit_temporary

    def write_head(target: h5py.File) -> None:
        write_fixed(target, spec, joined.tables)
        write_sessions(target, sessions)

    try:
        with storing(path, "nothing was changed"):
            write_whole(new, joined, write_head)
            for table in schema.FIXED_TABLES:
                check_read_back(new, table, joined.tables[table.path])
            publish(new, path)
    except BaseException:
        discard(new)
        raise
