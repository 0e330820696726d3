"""A small copy of a results file: everything but the traces, compressed. To publish, to keep, to send."""

from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import numpy as np

from hpcmoe.errors import InputError
from hpcmoe.store import schema
from hpcmoe.store.committed import CONFIG_GROUP, SESSIONS, TraceSource, read_sessions
from hpcmoe.store.guarded import guarded_file
from hpcmoe.store.layout import stored_factors
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.result import RunTraces, traces_checksum
from hpcmoe.store.texts import text_scalar
from hpcmoe.store.trouble import discard, reading, storing

_COMPRESSION_LEVEL = 9
_MOST_CHUNK_ROWS = 4096


def pack(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Writes the copy; like the file of a sweep without traces, it can be read, verified and reported.

    InputError when ``path`` exists; StorageError when it cannot be written, and then it is not there.
    """
    paths = ResultPaths(Path(path))
    if paths.file.exists():
        raise InputError("exists already; name another file or remove it", file=paths.file)
    try:
        with (
            storing(paths.file, "nothing was changed"),
            h5py.File(source, "r", locking=False) as old,
            reading(Path(source)),
            guarded_file(paths.layout_temporary, "w") as new,
        ):
            _copy(old, new, TraceSource(old, ResultPaths(Path(source))))
        publish(paths.layout_temporary, paths.file)
    except BaseException:
        discard(paths.layout_temporary)
        raise


def _copy(old: h5py.File, new: h5py.File, traces: TraceSource) -> None:
    new.attrs.update(old.attrs)
    design = {**json.loads(old.attrs["design"]), "traces": False}
    new.attrs.update({"traces": 0, "design": json.dumps(design, sort_keys=True)})
    for table in schema.FIXED_TABLES:
        _write(new, table, old[table.path][...].astype(schema.dtype(table, stored_factors(old))))
    for table in schema.VARIABLE_TABLES.values():
        _write(new, table, np.zeros(0, schema.dtype(table)))
    _write(new, schema.TRACE_INDEX, _configs(new, traces))
    new["/provenance"].attrs.update(old["/provenance"].attrs)
    new[SESSIONS] = text_scalar(json.dumps(read_sessions(old), indent=1))


def _configs(new: h5py.File, traces: TraceSource) -> np.ndarray:
    """Writes the scenario of each run and gives the index of traces that have no rows."""
    index = np.zeros(len(traces.runs), schema.dtype(schema.TRACE_INDEX))
    group = new.create_group(CONFIG_GROUP)
    for number, run in enumerate(traces.runs):
        found = traces.load(number, kinds=())
        if found is not None:
            bare = RunTraces(found.digest, found.config)
            group[traces.key(number)] = text_scalar(found.config)
            index[number]["digest"], index[number]["status"] = run["digest"], run["status"]
            index[number]["checksum"] = traces_checksum(bare)
    return index


def _write(file: h5py.File, table: schema.Table, rows: np.ndarray) -> None:
    dataset = file.create_dataset(
        table.path,
        data=rows,
        maxshape=(None,),
        chunks=(max(1, min(len(rows), _MOST_CHUNK_ROWS)),),
        compression="gzip",
        compression_opts=_COMPRESSION_LEVEL,
        shuffle=True,
    )
    schema.describe(dataset, table)
