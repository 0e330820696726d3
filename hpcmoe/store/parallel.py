"""Writes result rows through parallel HDF5, where h5py was built with MPI.

Every rank has the one file open through MPI-IO. Rows are independent writes into contiguous datasets that
were allocated when the file was laid out, so that no write changes the structure of the file and a kill
leaves every completed row readable. HDF5 knows no independent flush: rows are synced with a descriptor of
our own, which covers all that this node wrote.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import h5py
import numpy as np
from h5py import h5fd, h5p, h5s, h5t

from hpcmoe.store import schema
from hpcmoe.store.guarded import guarded_file
from hpcmoe.store.layout import RowMap
from hpcmoe.store.rows import RowWriter


def available() -> bool:
    """Whether this h5py can open a file on several ranks."""
    return bool(h5py.get_config().mpi)


_ABANDONED: list[h5py.File] = []
"""Kept alive for good: even the garbage collector would close them collectively, and wait for ever."""


class ParallelRowFile(RowWriter):
    """Opening and closing are collective: every rank of `comm` (mpi4py) has to."""

    def __init__(self, path: str | os.PathLike[str], row_map: RowMap, comm: Any) -> None:
        super().__init__(path, row_map)
        self._descriptor = os.open(self.path, os.O_RDWR)
        self._file: h5py.File | None = h5py.File(self.path, "r+", driver="mpio", comm=comm)
        self._datasets = {table.path: self._file[table.path] for table in schema.FIXED_TABLES}

    def close(self, *, failed: bool = False) -> None:
        """Close on every rank; after a failure only let go, because the others may not come."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._file is not None:
            if failed:
                _ABANDONED.append(self._file)
            else:
                self._file.close()
            self._file = None

    def read_run(self, run: int) -> np.ndarray:
        return self._datasets[schema.RUNS.path][run : run + 1][0]

    def _put(self, path: str, row: int, values: np.ndarray) -> None:
        rows = np.atleast_1d(values)
        if len(rows):
            self._datasets[path][row : row + len(rows)] = rows

    def _put_status(self, run: int, status: str) -> None:
        # HDF5 reads the row, replaces the field and writes the row: nobody else writes this row.
        code = np.array([schema.STATUS[status]], "u1")
        self._datasets[schema.RUNS.path]["status", run : run + 1] = code

    def _sync(self) -> None:
        os.fdatasync(self._descriptor)


def open_shared(path: str | os.PathLike[str], comm: Any) -> AbstractContextManager[h5py.File]:
    """An existing file for writing: on every rank of `comm`, or by this process alone when that is None."""
    return guarded_file(path, "r+") if comm is None else _opened_by_all(path, comm)


@contextlib.contextmanager
def _opened_by_all(path: str | os.PathLike[str], comm: Any) -> Iterator[h5py.File]:
    file = h5py.File(path, "r+", driver="mpio", comm=comm)
    try:
        yield file
    except BaseException:
        _ABANDONED.append(file)  # to close it here would wait for ranks that are inside another call
        raise
    file.close()


def write_rows(dataset: h5py.Dataset, start: int, rows: np.ndarray, comm: Any) -> None:
    """Write `rows` from `start` on. With `comm` every rank has to call this, also with no rows at all:
    compressed chunks are only written by all ranks together."""
    if comm is None:
        if len(rows):
            dataset[start : start + len(rows)] = rows
        return
    transfer = h5p.create(h5p.DATASET_XFER)
    transfer.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE)
    memory, file = h5s.create_simple((max(len(rows), 1),)), dataset.id.get_space()
    if len(rows):
        file.select_hyperslab((start,), (len(rows),))
    else:
        memory.select_none()
        file.select_none()
    data = rows if len(rows) else np.zeros(1, dataset.dtype)
    dataset.id.write(memory, file, np.ascontiguousarray(data), h5t.py_create(dataset.dtype), transfer)
