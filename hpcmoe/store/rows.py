"""Writes result rows in place.

Order on disk is what makes a row trustworthy: the status is set to missing, then all columns are
written and synced, then the status alone is written and synced. A kill between any two of these
leaves a row that reads as missing. Ranks share the file but never a byte of it.

RowFile does it with positioned writes and without HDF5, so it works with any h5py;
parallel.ParallelRowFile does it through HDF5 on MPI. Both leave the same bytes.
"""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hpcmoe.store import schema
from hpcmoe.store.layout import RowMap
from hpcmoe.store.result import RunRows


class RowWriter(ABC):
    """A results file in which one rank writes rows of the runs it finishes."""

    def __init__(self, path: str | os.PathLike[str], row_map: RowMap) -> None:
        self.path = Path(path)
        self._map = row_map
        self._types = {table.path: schema.dtype(table, row_map.factors) for table in schema.FIXED_TABLES}

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(failed=kind is not None)

    def abandon(self) -> None:
        """Let go without the other ranks: some of them are dead."""
        self.close(failed=True)

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """Let go of the file. `failed`: other ranks may not be closing it now."""

    @abstractmethod
    def read_run(self, run: int) -> np.ndarray:
        """The row of `run` in /runs as it is on disk (0-d structured array)."""

    @abstractmethod
    def _put(self, path: str, row: int, values: np.ndarray) -> None:
        """Write rows of table `path` from `row` on."""

    @abstractmethod
    def _put_status(self, run: int, status: str) -> None:
        """Write the status of `run` and nothing else."""

    @abstractmethod
    def _sync(self) -> None:
        """Make all that was written durable."""

    def write(self, run: int, rows: RunRows) -> None:
        """Store one run. `rows.run` is completed with the columns fixed at layout.

        Raises ValueError when the run does not fill exactly the rows laid out for it.
        """
        self.check_counts(run, rows)
        stored = self.read_run(run)
        self.write_status(run, "missing")
        row = completed_row(stored, rows)
        self._checked_put(schema.RANKS.path, int(stored["rank_offset"]), rows.ranks)
        self._checked_put(schema.LINKS.path, int(stored["link_offset"]), rows.links)
        self._checked_put(schema.RUN_PROVENANCE.path, run, rows.provenance)
        self._checked_put(schema.RUNS.path, run, row)
        self._sync()
        self.write_status(run, rows.status)

    def write_status(self, run: int, status: str) -> None:
        """Set the status of `run` alone, durably."""
        self._put_status(run, status)
        self._sync()

    def check_counts(self, run: int, rows: RunRows) -> None:
        """Raise ValueError when `rows` do not fill exactly what was laid out for `run`."""
        stored = self.read_run(run)
        for what, given in (("rank", rows.ranks), ("link", rows.links)):
            reserved = int(stored[f"{what}_count"])
            if len(given) != reserved:
                raise ValueError(f"the run gives {len(given)} {what} rows, the file has room for {reserved}")

    def _checked_put(self, path: str, row: int, values: np.ndarray) -> None:
        if row + np.size(values) > self._map.places[path].rows:
            raise ValueError(f"{path}: row {row} is outside the dataset")
        self._put(path, row, values.astype(self._types[path], copy=False))


LAYOUT_COLUMNS = frozenset({"key", *schema.FACTORS, "rank_offset", "rank_count", "link_offset", "link_count"})
"""Columns of /runs written when the file is laid out and never again."""


def completed_row(stored: np.ndarray, rows: RunRows) -> np.ndarray:
    """The row of /runs: fixed columns as stored, the rest from `rows`; its status is missing."""
    row = stored.copy()
    for name in schema.RUNS.names:
        if name in rows.values:
            row[name] = rows.values[name]
        elif name not in LAYOUT_COLUMNS:
            row[name] = np.zeros((), row.dtype[name])
    row["status"] = schema.STATUS["missing"]
    row["checksum"] = rows_checksum(row, rows.ranks, rows.links)
    return row


def rows_checksum(row: np.ndarray, ranks: np.ndarray, links: np.ndarray) -> int:
    """CRC-32 of a run's row (status and checksum counted as zero), its ranks and its links."""
    plain = row.copy()
    plain["status"] = plain["checksum"] = 0
    return zlib.crc32(links.tobytes(), zlib.crc32(ranks.tobytes(), zlib.crc32(plain.tobytes())))


class RowFile(RowWriter):
    """Positioned writes at the places where HDF5 laid the rows out."""

    def __init__(self, path: str | os.PathLike[str], row_map: RowMap) -> None:
        super().__init__(path, row_map)
        self._descriptor = os.open(self.path, os.O_RDWR)

    def close(self, *, failed: bool = False) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_run(self, run: int) -> np.ndarray:
        place, row_type = self._map.places[schema.RUNS.path], self._types[schema.RUNS.path]
        data = os.pread(self._descriptor, place.itemsize, place.offset + run * place.itemsize)
        return np.frombuffer(bytearray(data), row_type)[0]

    def _put(self, path: str, row: int, values: np.ndarray) -> None:
        place = self._map.places[path]
        write_all(self._descriptor, values.tobytes(), place.offset + row * place.itemsize)

    def _put_status(self, run: int, status: str) -> None:
        place = self._map.places[schema.RUNS.path]
        within = status_offset(self._types[schema.RUNS.path])
        code = bytes([schema.STATUS[status]])
        write_all(self._descriptor, code, place.offset + run * place.itemsize + within)

    def _sync(self) -> None:
        os.fdatasync(self._descriptor)


def status_offset(row_type: np.dtype[Any]) -> int:
    """Byte offset of the status inside a row of /runs."""
    fields = row_type.fields
    assert fields is not None
    return int(fields["status"][1])


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Positioned write of all of `data`; a short write is continued."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written
