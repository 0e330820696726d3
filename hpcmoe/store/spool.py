"""Variable-size output of one run, kept in a file of its own until it is committed.

A spool file appears complete or not at all: it is written under a temporary name, synced and
renamed. It goes only after the results file that took it over was read back (merge.py).
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hpcmoe.errors import HpcmoeError
from hpcmoe.store import schema
from hpcmoe.store.paths import ResultPaths, sync_folder
from hpcmoe.store.result import RunTraces
from hpcmoe.store.trouble import discard, storing


def write_spool(paths: ResultPaths, key: str, traces: RunTraces, writer: int) -> Path:
    """Store the traces of run `key` durably; `writer` is the MPI rank, for the temporary name."""
    temporary, final = paths.spool_temporary(key, writer), paths.spool_file(key, traces.digest)
    with storing(paths.spool):
        try:
            paths.spool.mkdir(exist_ok=True)
            _write(temporary, traces)
        except OSError:
            discard(temporary)
            raise
        os.replace(temporary, final)
        sync_folder(paths.spool)
    return final


def _write(path: Path, traces: RunTraces) -> None:
    with open(path, "wb") as stream:
        np.savez(
            stream,
            digest=_text(traces.digest),
            config=_text(traces.config),
            **{name: getattr(traces, name) for name in schema.VARIABLE_TABLES},
        )
        stream.flush()
        os.fsync(stream.fileno())


def read_spool(path: Path, kinds: tuple[str, ...] = schema.TRACE_KINDS) -> RunTraces:
    """Read a spool file; only the trace kinds named are loaded, the others come back empty.

    Raises HpcmoeError when it is damaged.
    """
    with _intact(path), open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in (*kinds, "repeats")}
        digest, config = (archive[name].tobytes().decode() for name in ("digest", "config"))
        return RunTraces(digest, config, **arrays)


@contextlib.contextmanager
def _intact(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise HpcmoeError(
            f"{path}: damaged ({error}); remove it, and the same sweep does this run again"
        ) from error


def spooled_counts(path: Path) -> dict[str, int]:
    """Rows of each table in a spool file; only the heads of the arrays are read."""
    counts = {}
    with _intact(path), zipfile.ZipFile(path) as archive:
        for name in schema.VARIABLE_TABLES:
            with archive.open(f"{name}.npy") as stream:
                np.lib.format.read_magic(stream)
                shape, _, _ = np.lib.format.read_array_header_1_0(stream)
                counts[name] = int(shape[0])
    return counts


def clear_leftovers(paths: ResultPaths) -> int:
    """Remove what killed ranks did not finish; returns how many files that were."""
    leftovers = [*paths.spool_leftovers(), *filter(Path.exists, paths.temporaries)]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def remove_spool(paths: ResultPaths) -> None:
    """Remove the spool folder with everything in it. Only for when nothing there is needed."""
    sessions = map(paths.session_file, paths.session_numbers())
    for path in (*paths.spooled(), *paths.spool_leftovers(), *sessions):
        path.unlink(missing_ok=True)
    paths.live.unlink(missing_ok=True)
    paths.lock.unlink(missing_ok=True)
    try:
        paths.spool.rmdir()
    except OSError:
        return  # already gone, or it holds a file that is not ours to remove


def _text(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)
