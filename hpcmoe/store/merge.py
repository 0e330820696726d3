"""Takes spooled traces over into the results file.

The file that a sweep has filled is never changed by HDF5. A complete new one is written beside
it (rows copied, traces in run-key order), closed, opened again and compared, and only then takes
the old one's name; the spool goes last. A kill at any point leaves either file whole, and the
spool for as long as it is needed.

With parallel HDF5 every rank writes, and reads back, the traces of its share of the runs; the datasets
have their final size before, so where a run's rows go does not depend on who writes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcmoe.errors import HpcmoeError
from hpcmoe.store import parallel, schema
from hpcmoe.store.committed import (
    CONFIG_GROUP,
    SESSIONS,
    CommittedTraces,
    TracesOfRuns,
    TraceSource,
    read_sessions,
)
from hpcmoe.store.guarded import guarded_file
from hpcmoe.store.layout import create_fixed_table, stored_factors
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.result import RunTraces, traces_checksum
from hpcmoe.store.spool import remove_spool
from hpcmoe.store.texts import text_scalar
from hpcmoe.store.trouble import discard, storing

CHUNK_BYTES = 1 << 19
COMPRESSION_LEVEL = 4
UNTOUCHED = (
    "the results file and its spool are as they were; make room, then 'hpcmoe merge', or the same sweep again"
)


@dataclass(frozen=True)
class MergeReport:
    """What a merge did: runs whose traces came from the spool, and rows per kind in the file."""

    runs: int
    rows: Mapping[str, int]


@dataclass(frozen=True)
class _Written:
    """What the rank that wrote a run's traces knows of them."""

    number: int
    digest: str
    config: str
    checksum: int


def merge(
    path: str | os.PathLike[str],
    software: Mapping[str, Any] | None = None,
    *,
    on_run: Callable[[], None] = lambda: None,
    comm: Any = None,
) -> MergeReport:
    """Write the spool of `path` into it. `software` replaces root attributes (version, commit);
    `on_run` is called after each run, for signs of life. With `comm` (mpi4py, h5py with MPI) this is
    rank 0's part, and all other ranks call take_part.

    Raises HpcmoeError when the new file does not read back as written, StorageError when it cannot be
    written; nothing is removed then.
    """
    paths = ResultPaths(Path(path))
    try:
        with (
            storing(paths.commit_temporary, UNTOUCHED),
            h5py.File(paths.file, "r", locking=False) as source,
        ):
            report = _rebuild(source, paths, software or {}, on_run, comm)
            publish(paths.commit_temporary, paths.file)
    except BaseException:
        discard(paths.commit_temporary)
        raise
    remove_spool(paths)
    return report


def take_part(path: str | os.PathLike[str], comm: Any) -> None:
    """What every rank but 0 does in a merge through parallel HDF5."""
    paths = ResultPaths(Path(path))
    with storing(paths.commit_temporary, UNTOUCHED), h5py.File(paths.file, "r", locking=False) as source:
        traces = TraceSource(source, paths)
        index = comm.bcast(None)
        comm.gather(_write_share(paths.commit_temporary, traces, index, lambda: None, comm))
        comm.barrier()
        comm.gather(_wrong_runs(paths.commit_temporary, traces, comm, lambda: None))


def _rebuild(
    source: h5py.File, paths: ResultPaths, software: Mapping[str, Any], on_run: Callable[[], None], comm: Any
) -> MergeReport:
    traces = TraceSource(source, paths)

    def copy_fixed(target: h5py.File) -> None:
        _copy_fixed(source, target, software)
        write_sessions(target, all_sessions(source, paths))

    index = write_whole(paths.commit_temporary, traces, copy_fixed, on_run, comm)
    for table in schema.FIXED_TABLES:
        check_read_back(paths.commit_temporary, table, source[table.path][...])
    rows = {name: int(index[f"{name}_count"].sum()) for name in schema.VARIABLE_TABLES}
    return MergeReport(int(np.sum(traces.spooled)), rows)


def write_whole(
    new: Path,
    traces: TracesOfRuns,
    write_fixed: Callable[[h5py.File], None],
    on_run: Callable[[], None] = lambda: None,
    comm: Any = None,
) -> np.ndarray:
    """Write a file with everything in it: first what `write_fixed` does, then the traces of all runs, which
    are read back. Returns /traces/index without checksums. HpcmoeError where traces read back differently."""
    index = _index_of(traces)
    with guarded_file(new, "w") as target:
        write_fixed(target)
        for name, table in schema.VARIABLE_TABLES.items():
            _create_trace(target, table, int(index[f"{name}_count"].sum()))
    written = _gathered(comm, _shared(comm, index), lambda i: _write_share(new, traces, i, on_run, comm))
    with guarded_file(new, "r+") as target:
        _write_index(target, traces, index, written)
    if comm is not None:
        comm.barrier()
    if wrong := _gathered(comm, None, lambda _: _wrong_runs(new, traces, comm, on_run)):
        raise _verify_error(new, f"/traces of {traces.key(wrong[0])}")
    return index


def _shared(comm: Any, value: Any) -> Any:
    return value if comm is None else comm.bcast(value)


def _gathered(comm: Any, argument: Any, work: Callable[[Any], list[Any]]) -> list[Any]:
    """`work` of all ranks, one after the other."""
    own = work(argument)
    return own if comm is None else [item for part in comm.gather(own) for item in part]


def _share(count: int, comm: Any) -> range:
    """Runs that this rank handles: all, or a part of them side by side."""
    if comm is None:
        return range(count)
    return range(comm.rank * count // comm.size, (comm.rank + 1) * count // comm.size)


def _index_of(traces: TracesOfRuns) -> np.ndarray:
    """/traces/index with offsets and counts; the rest is known when the traces were read."""
    index = np.zeros(len(traces.runs), schema.dtype(schema.TRACE_INDEX))
    counts = [traces.counts(number) for number in range(len(index))]
    for name in schema.VARIABLE_TABLES:
        column = np.array([count[name] for count in counts], "<u8")
        index[f"{name}_count"] = column
        index[f"{name}_offset"] = np.cumsum(column) - column
    return index


def _copy_fixed(source: h5py.File, target: h5py.File, software: Mapping[str, Any]) -> None:
    target.attrs.update({name: source.attrs[name] for name in source.attrs})
    target.attrs.update(software)
    for table in schema.FIXED_TABLES:
        rows = source[table.path][...]
        create_fixed_table(target, table, rows.astype(schema.dtype(table, stored_factors(source))))
    provenance = source["/provenance"].attrs
    target["/provenance"].attrs.update({name: provenance[name] for name in provenance})


def all_sessions(source: h5py.File, paths: ResultPaths) -> list[dict[str, Any]]:
    """What started when and where, earlier sessions first."""
    waiting = [json.loads(paths.session_file(n).read_text()) for n in paths.session_numbers()]
    return read_sessions(source) + waiting


def write_sessions(target: h5py.File, sessions: Sequence[Mapping[str, Any]]) -> None:
    """Sessions as one JSON list."""
    target[SESSIONS] = text_scalar(json.dumps(list(sessions), indent=1))


def _create_trace(target: h5py.File, table: schema.Table, count: int) -> None:
    row_type = schema.dtype(table)
    dataset = target.create_dataset(
        table.path,
        shape=(count,),
        maxshape=(None,),
        dtype=row_type,
        chunks=(max(1, CHUNK_BYTES // row_type.itemsize),),
        compression="gzip",
        compression_opts=COMPRESSION_LEVEL,
        shuffle=True,
    )
    schema.describe(dataset, table)


def _write_share(
    path: Path, traces: TracesOfRuns, index: np.ndarray, on_run: Callable[[], None], comm: Any
) -> list[_Written]:
    """Write the traces of this rank's runs into the new file; every rank takes as many steps."""
    own = _share(len(index), comm)
    steps = len(own) if comm is None else max(comm.allgather(len(own)))
    written = []
    with parallel.open_shared(path, comm) as target:
        tables = {name: target[table.path] for name, table in schema.VARIABLE_TABLES.items()}
        for step in range(steps):
            found = None
            if step < len(own) and (found := traces.load(own[step])) is not None:
                config, crc = found.config, traces_checksum(found)
                written.append(_Written(own[step], found.digest, config, crc))
            for name, start, rows in _pieces(found, index, own, step):
                parallel.write_rows(tables[name], start, rows, comm)
            on_run()
    return written


def _pieces(
    found: RunTraces | None, index: np.ndarray, own: range, step: int
) -> Iterator[tuple[str, int, np.ndarray]]:
    """(table, first row, rows) for each table, rows being empty where there is nothing to write."""
    for name, table in schema.VARIABLE_TABLES.items():
        if found is None:
            yield name, 0, np.zeros(0, schema.dtype(table))
        else:
            yield name, int(index[own[step]][f"{name}_offset"]), getattr(found, name)


def _write_index(target: h5py.File, traces: TracesOfRuns, index: np.ndarray, written: list[_Written]) -> None:
    group = target.create_group(CONFIG_GROUP)
    for run in written:
        row = index[run.number]
        row["digest"], row["checksum"] = run.digest.encode(), run.checksum
        row["status"] = traces.runs["status"][run.number]
        group[traces.key(run.number)] = text_scalar(run.config)
    target[schema.TRACE_INDEX.path] = index
    schema.describe(target[schema.TRACE_INDEX.path], schema.TRACE_INDEX)


def _wrong_runs(path: Path, traces: TracesOfRuns, comm: Any, on_run: Callable[[], None]) -> list[int]:
    """Runs of this rank's share whose traces do not read back from `path` with what they were read from."""
    wrong = []
    with h5py.File(path, "r", locking=False) as target:
        committed = CommittedTraces(target)
        for number in _share(len(traces.runs), comm):
            expected = traces.load(number)
            if expected is not None:
                found = committed.load(number, traces.key(number))
                if traces_checksum(found) != traces_checksum(expected):
                    wrong.append(number)
            on_run()
    return wrong


def check_read_back(path: Path, table: schema.Table, rows: np.ndarray) -> None:
    """HpcmoeError where the table of a new file does not hold these rows."""
    with h5py.File(path, "r", locking=False) as target:
        if target[table.path][...].tobytes() != rows.tobytes():
            raise _verify_error(path, table.path)


def _verify_error(path: Path, dataset: str) -> HpcmoeError:
    return HpcmoeError(
        f"{path}: {dataset} does not read back as written; what it was made from is as it was. "
        "Check the file system, then start the same command again"
    )
