"""Writes result rows in place, without HDF5.

Order on disk is what makes a row trustworthy: the status byte is set to missing, then all
columns are written and synced, then the status byte alone is written and synced. A kill between
any two of these leaves a row that reads as missing. Ranks share the file but never a byte of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hpcmoe.store import schema
from hpcmoe.store.layout import RowMap
from hpcmoe.store.result import RunRows


class RowFile:
    """An open results file in which one rank writes rows of the runs it finishes."""

    def __init__(self, path: str | os.PathLike[str], row_map: RowMap) -> None:
        self.path = Path(path)
        self._map = row_map
        self._types = {table.path: schema.dtype(table, row_map.factors) for table in schema.FIXED_TABLES}
        self._descriptor = os.open(self.path, os.O_RDWR)

    def __enter__(self) -> RowFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_run(self, run: int) -> np.ndarray:
        """The row of `run` in /runs as it is on disk (0-d structured array)."""
        place, row_type = self._map.places[schema.RUNS.path], self._types[schema.RUNS.path]
        data = os.pread(self._descriptor, place.itemsize, place.offset + run * place.itemsize)
        return np.frombuffer(bytearray(data), row_type)[0]

    def write(self, run: int, rows: RunRows) -> None:
        """Store one run. `rows.run` is completed with the columns fixed at layout.

        Raises ValueError when the run does not fill exactly the rows laid out for it.
        """
        self.check_counts(run, rows)
        stored = self.read_run(run)
        self._write_status(run, "missing")
        self._put(schema.RANKS.path, int(stored["rank_offset"]), rows.ranks)
        self._put(schema.LINKS.path, int(stored["link_offset"]), rows.links)
        self._put(schema.RUN_PROVENANCE.path, run, rows.provenance)
        for name in schema.RUNS.names:
            if name in rows.values:
                stored[name] = rows.values[name]
            elif name not in LAYOUT_COLUMNS:
                stored[name] = np.zeros((), stored.dtype[name])
        stored["status"] = schema.STATUS["missing"]
        self._put(schema.RUNS.path, run, stored)
        os.fdatasync(self._descriptor)
        self._write_status(run, rows.status)

    def check_counts(self, run: int, rows: RunRows) -> None:
        """Raise ValueError when `rows` do not fill exactly what was laid out for `run`."""
        stored = self.read_run(run)
        for what, given in (("rank", rows.ranks), ("link", rows.links)):
            reserved = int(stored[f"{what}_count"])
            if len(given) != reserved:
                raise ValueError(f"the run gives {len(given)} {what} rows, the file has room for {reserved}")

    def _put(self, path: str, row: int, values: np.ndarray) -> None:
        place = self._map.places[path]
        data = values.astype(self._types[path], copy=False).tobytes()
        if row * place.itemsize + len(data) > place.rows * place.itemsize:
            raise ValueError(f"{path}: row {row} is outside the dataset")
        write_all(self._descriptor, data, place.offset + row * place.itemsize)

    def _write_status(self, run: int, status: str) -> None:
        place = self._map.places[schema.RUNS.path]
        within = status_offset(self._types[schema.RUNS.path])
        write_all(
            self._descriptor, bytes([schema.STATUS[status]]), place.offset + run * place.itemsize + within
        )
        os.fdatasync(self._descriptor)


LAYOUT_COLUMNS = frozenset({"key", *schema.FACTORS, "rank_offset", "rank_count", "link_offset", "link_count"})
"""Columns of /runs written when the file is laid out and never again."""


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
