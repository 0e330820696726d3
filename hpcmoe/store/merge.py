"""Takes spooled traces over into the results file.

The file that a sweep has filled is never changed by HDF5. A complete new one is written beside
it (rows copied, traces in run-key order), closed, opened again and compared, and only then takes
the old one's name; the spool goes last. A kill at any point leaves either file whole, and the
spool for as long as it is needed.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcmoe.errors import HpcmoeError
from hpcmoe.store import schema
from hpcmoe.store.layout import create_fixed_table, stored_factors
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.result import RunTraces, traces_checksum
from hpcmoe.store.spool import read_spool, remove_spool

CHUNK_BYTES = 1 << 19
COMPRESSION_LEVEL = 4
CONFIG_GROUP = "/config"
SESSIONS = "/provenance/sessions"


@dataclass(frozen=True)
class MergeReport:
    """What a merge did: runs whose traces came from the spool, and rows per kind in the file."""

    runs: int
    rows: Mapping[str, int]


def has_traces(source: h5py.File, paths: ResultPaths) -> np.ndarray:
    """Per run, whether what belongs to its row (same digest) is in the spool or in the file."""
    runs = source[schema.RUNS.path][...]
    return _in_file(source, runs) | _in_spool(paths, runs)


def needs_merge(path: Path) -> bool:
    """Whether the spool holds anything of a finished run that the file does not have yet."""
    with h5py.File(path, "r", locking=False) as source:
        runs = source[schema.RUNS.path][...]
        known = runs["status"] != schema.STATUS["missing"]
        return bool(np.any(known & _in_spool(ResultPaths(path), runs) & ~_in_file(source, runs)))


def merge(path: str | os.PathLike[str], software: Mapping[str, Any] | None = None) -> MergeReport:
    """Write the spool of `path` into it. `software` replaces root attributes (version, commit).

    Raises HpcmoeError when the new file does not read back as written; nothing is removed then.
    """
    paths = ResultPaths(Path(path))
    with h5py.File(paths.file, "r", locking=False) as source:
        with h5py.File(paths.commit_temporary, "w", locking=False) as target:
            _copy_fixed(source, target, software or {})
            _write_sessions(source, target, paths)
            checks = _write_traces(source, target, paths)
        report = _verify(source, paths.commit_temporary, checks)
    publish(paths.commit_temporary, paths.file)
    remove_spool(paths)
    return report


@dataclass(frozen=True)
class _Check:
    """Expected checksum of one run's traces, and whether they came from the spool."""

    spooled: bool
    crc: Mapping[str, int]


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


def _copy_fixed(source: h5py.File, target: h5py.File, software: Mapping[str, Any]) -> None:
    target.attrs.update({name: source.attrs[name] for name in source.attrs})
    target.attrs.update(software)
    for table in schema.FIXED_TABLES:
        rows = source[table.path][...]
        create_fixed_table(target, table, rows.astype(schema.dtype(table, stored_factors(source))))
    provenance = source["/provenance"].attrs
    target["/provenance"].attrs.update({name: provenance[name] for name in provenance})


def _write_sessions(source: h5py.File, target: h5py.File, paths: ResultPaths) -> None:
    """One JSON list of what started when and where, earlier sessions first."""
    sessions = read_sessions(source)
    sessions += [json.loads(paths.session_file(n).read_text()) for n in paths.session_numbers()]
    target[SESSIONS] = _text_scalar(json.dumps(sessions, indent=1))


def read_sessions(source: h5py.File) -> list[dict[str, Any]]:
    """Sessions recorded in a file by earlier merges."""
    return json.loads(source[SESSIONS][()].decode()) if SESSIONS in source else []


def _text_scalar(text: str) -> np.ndarray:
    data = text.encode()
    return np.array(data, h5py.string_dtype("utf-8", max(len(data), 1)))


def _load(
    source: h5py.File, paths: ResultPaths, number: int, run: np.void, spooled: bool, stored: bool
) -> RunTraces | None:
    if run["status"] == schema.STATUS["missing"]:
        return None
    if spooled:
        return read_spool(_spool_of(paths, run))
    return stored_traces(source, number, run["key"].decode()) if stored else None


def stored_traces(
    source: h5py.File, number: int, key: str, kinds: tuple[str, ...] = schema.TRACE_KINDS
) -> RunTraces:
    """Committed traces of run `number`; kinds not named come back empty."""
    index = source[schema.TRACE_INDEX.path][number]
    names = (*kinds, "repeats")
    arrays = {name: source[schema.VARIABLE_TABLES[name].path][_rows(index, name)] for name in names}
    config = source[f"{CONFIG_GROUP}/{key}"][()].decode()
    return RunTraces(index["digest"].decode(), config, **arrays)


def _rows(index: np.ndarray, kind: str) -> slice:
    start = int(index[f"{kind}_offset"])
    return slice(start, start + int(index[f"{kind}_count"]))


def _all_traces(source: h5py.File, paths: ResultPaths) -> Iterator[tuple[int, str, bool, RunTraces | None]]:
    """Run by run in file order: number, key, whether from the spool, traces (None: no such)."""
    runs = source[schema.RUNS.path][...]
    in_file, in_spool = _in_file(source, runs), _in_spool(paths, runs)
    for number, run in enumerate(runs):
        fresh = bool(in_spool[number] and not in_file[number])
        traces = _load(source, paths, number, run, fresh, bool(in_file[number]))
        yield number, run["key"].decode(), fresh, traces


def _write_traces(source: h5py.File, target: h5py.File, paths: ResultPaths) -> list[_Check]:
    datasets = {name: _create_trace(target, table) for name, table in schema.VARIABLE_TABLES.items()}
    target.create_group(CONFIG_GROUP)
    status = source[schema.RUNS.path]["status"]
    index = np.zeros(len(status), schema.dtype(schema.TRACE_INDEX))
    checks = []
    for number, key, spooled, traces in _all_traces(source, paths):
        crc = {}
        for name, dataset in datasets.items():
            rows = np.zeros(0) if traces is None else getattr(traces, name)
            index[number][f"{name}_offset"] = _append(dataset, rows)
            index[number][f"{name}_count"] = len(rows)
            crc[name] = zlib.crc32(rows.tobytes())
        if traces is not None:
            index[number]["digest"] = traces.digest.encode()
            index[number]["status"] = status[number]
            index[number]["checksum"] = traces_checksum(traces)
            target[f"{CONFIG_GROUP}/{key}"] = _text_scalar(traces.config)
        checks.append(_Check(spooled and traces is not None, crc))
    target[schema.TRACE_INDEX.path] = index
    schema.describe(target[schema.TRACE_INDEX.path], schema.TRACE_INDEX)
    return checks


def _create_trace(target: h5py.File, table: schema.Table) -> h5py.Dataset:
    row_type = schema.dtype(table)
    dataset = target.create_dataset(
        table.path,
        shape=(0,),
        maxshape=(None,),
        dtype=row_type,
        chunks=(CHUNK_BYTES // row_type.itemsize,),
        compression="gzip",
        compression_opts=COMPRESSION_LEVEL,
        shuffle=True,
    )
    schema.describe(dataset, table)
    return dataset


def _append(dataset: h5py.Dataset, rows: np.ndarray) -> int:
    """Add rows at the end; returns the number of the first."""
    start = int(dataset.shape[0])
    if len(rows):
        dataset.resize((start + len(rows),))
        dataset[start:] = rows
    return start


def _verify(source: h5py.File, path: Path, checks: list[_Check]) -> MergeReport:
    """Read the new file back and compare it with what was to be written."""
    with h5py.File(path, "r", locking=False) as target:
        for table in schema.FIXED_TABLES:
            if source[table.path][...].tobytes() != target[table.path][...].tobytes():
                raise _verify_error(path, table.path)
        index = target[schema.TRACE_INDEX.path][...]
        rows = {}
        for name, table in schema.VARIABLE_TABLES.items():
            dataset = target[table.path]
            rows[name] = int(dataset.shape[0])
            for number, check in enumerate(checks):
                if zlib.crc32(dataset[_rows(index[number], name)].tobytes()) != check.crc[name]:
                    raise _verify_error(path, dataset.name)
    return MergeReport(sum(check.spooled for check in checks), rows)


def _verify_error(path: Path, dataset: str) -> HpcmoeError:
    return HpcmoeError(
        f"{path}: {dataset} does not read back as written; the results file and its spool "
        "are as they were. Check the file system, then start the sweep again to merge again."
    )
