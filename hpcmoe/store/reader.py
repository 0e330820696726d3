"""Reads a results file, also one that a sweep is still filling."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import h5py
import numpy as np

from hpcmoe import catalog
from hpcmoe.errors import InputError, closest_first
from hpcmoe.store import schema
from hpcmoe.store.committed import CommittedTraces, read_sessions
from hpcmoe.store.factors import Factor, factors_of
from hpcmoe.store.layout import stored_factors
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.repeats import expand
from hpcmoe.store.result import RunTraces
from hpcmoe.store.spool import read_spool
from hpcmoe.store.trouble import reading

_P = ParamSpec("_P")
_R = TypeVar("_R")


def open_results(path: str | os.PathLike[str]) -> Results:
    """Open a results file for reading.

    Raises InputError when it is missing, not a results file, or of another format version.
    """
    return Results(path)


def _from_file(
    method: Callable[Concatenate[Results, _P], _R],
) -> Callable[Concatenate[Results, _P], _R]:
    """A method that reads from the file: damage is an InputError."""

    @functools.wraps(method)
    def read(self: Results, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with reading(self.path):
            return method(self, *args, **kwargs)

    return read


class Results:
    """A results file, read-only. A context manager; a run is named by its key or its number.

    attrs   root attributes as plain Python values (layers is -1 when all were asked for)
    design  what the file was made for: factors, select, tokens, layers, overrides, traces, placement, and
            study where a study file said so; what that defines is in the catalog of the process from here on
    runs    structured array, one row per run in run-key order, text columns as str; result
            columns are valid where status == 'ok'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = open_checked(self.path)
        with reading(self.path):
            self._read_head()

    def _read_head(self) -> None:
        self.attrs: dict[str, Any] = {name: _plain(value) for name, value in self._file.attrs.items()}
        self.design: dict[str, Any] = json.loads(self.attrs["design"])
        if definitions := self.design.get("study", {}).get("definitions"):
            catalog.define(definitions, self.path)  # names in its run keys
        self._committed: CommittedTraces | None = None
        self.runs = self._read_runs()
        self._numbers = {key: number for number, key in enumerate(self.runs["key"].tolist())}

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {status}" for status, number in self.counts().items())
        return f"<Results {str(self.path)!r}: {counts}>"

    def close(self) -> None:
        self._committed = None
        self._file.close()

    @_from_file
    def refresh(self) -> None:
        """Read again what a running sweep has added since."""
        self._file.close()
        self._file = open_checked(self.path)
        self.runs = self._read_runs()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The five factors of run keys and those of a study's variants, with the level of every run."""
        return factors_of(self.runs, self.design)

    def counts(self) -> dict[str, int]:
        """Number of runs per status, every status present."""
        return {status: int(np.sum(self.runs["status"] == status)) for status in schema.STATUS_NAMES}

    @_from_file
    def ranks(self, run: str | int) -> np.ndarray:
        """One row per rank of a finished run (columns: /ranks)."""
        return self._slab(schema.RANKS, "rank", run)

    @_from_file
    def links(self, run: str | int) -> np.ndarray:
        """Two rows per link of a finished run, one per direction (columns: /links)."""
        return self._slab(schema.LINKS, "link", run)

    @_from_file
    def traces(
        self, run: str | int, kinds: tuple[str, ...] = schema.TRACE_KINDS, *, expanded: bool = False
    ) -> RunTraces:
        """Traces fct, qlen and pfc of a finished run as they are stored, and its repeats.

        Only `kinds` are read. With `expanded` the layers that fast-forward added are written out
        and `repeats` is empty: the rows of a run that was simulated in full. For large runs,
        repeats.blocks gives the same rows piece by piece. Before the merge at the end of a sweep
        traces come from the spool.
        """
        stored = self._variable(self._finished(run), kinds)
        return expand(stored) if expanded else stored

    @_from_file
    def config(self, run: str | int) -> dict[str, Any]:
        """The scenario that was run."""
        number = self._number(run)
        return json.loads(self._variable(number, ()).config)

    @_from_file
    def provenance(self) -> dict[str, Any]:
        """Attributes of the file's creation, `sessions` (list) and `runs` (structured array)."""
        group = self._file["/provenance"]
        rows = _decoded(schema.RUN_PROVENANCE, group["runs"][...], {})
        return {
            **{name: _plain(value) for name, value in group.attrs.items()},
            "sessions": read_sessions(self._file),
            "runs": rows,
        }

    @_from_file
    def imports(self) -> dict[str, dict[str, Any]]:
        """What is known about runs that another program did, by key; empty for a sweep's file.

        program   which one
        files     SHA-256 of each output file that was read
        missing   columns, by dataset, that the program does not report: what stands there means nothing
        """
        found = (session.get("import") for session in read_sessions(self._file))
        return {record["run"]: record for record in found if record}

    @_from_file
    def units(self, path: str) -> dict[str, str]:
        """Unit of each column of a dataset, e.g. '/runs'."""
        return json.loads(self._file[path].attrs["units"])

    def _variable(self, number: int, kinds: tuple[str, ...]) -> RunTraces:
        row = self.runs[number]
        key, digest = str(row["key"]), str(row["digest"])
        spooled = ResultPaths(self.path).spool_file(key, digest)
        if spooled.exists():
            return read_spool(spooled, kinds)
        if self._committed is not None:
            index = self._committed.index[number]
            if (index["digest"].decode(), index["status"]) == (digest, schema.STATUS[row["status"]]):
                return self._committed.load(number, key, kinds)
        raise InputError(
            f"neither the file nor its spool has traces of this run (status {row['status']}); "
            "run the sweep again to complete it",
            file=self.path,
            field=key,
        )

    def _slab(self, table: schema.Table, what: str, run: str | int) -> np.ndarray:
        row = self.runs[self._finished(run)]
        start = int(row[f"{what}_offset"])
        return self._file[table.path][start : start + int(row[f"{what}_count"])]

    def _number(self, run: str | int) -> int:
        if isinstance(run, str):
            if run not in self._numbers:
                raise InputError(
                    "no such run in this file",
                    file=self.path,
                    value=run,
                    allowed=closest_first(run, self._numbers)[:5],
                )
            return self._numbers[run]
        if not -len(self.runs) <= run < len(self.runs):
            raise InputError(
                "no such run in this file", file=self.path, value=run, allowed=f"0 to {len(self.runs) - 1}"
            )
        return int(run) % len(self.runs)

    def _finished(self, run: str | int) -> int:
        number = self._number(run)
        row = self.runs[number]
        if row["status"] != "ok":
            reason = f"failed: {row['error']}" if row["status"] == "failed" else "is not finished"
            raise InputError(f"this run {reason}", file=self.path, field=str(row["key"]))
        return number

    def _read_runs(self) -> np.ndarray:
        self._committed = CommittedTraces(self._file) if schema.TRACE_INDEX.path in self._file else None
        return _decoded(schema.RUNS, self._file[schema.RUNS.path][...], stored_factors(self._file))


def open_checked(path: Path) -> h5py.File:
    """Open for reading without locks, so that a sweep may be writing; refuse what is not ours."""
    if not path.is_file():
        raise InputError("no such results file", file=path)
    file = _open_without_lock(path)
    try:
        with reading(path):
            _check_format(path, file)
    except BaseException:
        file.close()
        raise
    return file


def _open_without_lock(path: Path) -> h5py.File:
    try:
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        if "locking flag" not in str(error):
            raise InputError(f"not an HDF5 file, or damaged: {error}", file=path) from None
    # This process has the file open with locks already, and HDF5 wants both alike.
    return h5py.File(path, "r")


def _check_format(path: Path, file: h5py.File) -> None:
    filetype = file.attrs.get("filetype")
    if filetype != schema.FILETYPE:
        raise InputError(
            "an HDF5 file, but not written by an hpcmoe sweep",
            file=path,
            field="filetype",
            value=_plain(filetype),
            allowed=schema.FILETYPE,
        )
    version = tuple(int(part) for part in np.atleast_1d(file.attrs.get("format_version", ())))
    if not version or version[0] != schema.FORMAT_VERSION[0]:
        newer = bool(version) and version[0] > schema.FORMAT_VERSION[0]
        advice = "use a newer hpcmoe" if newer else "use the hpcmoe that wrote it, or run the sweep again"
        message = f"results file of another format version; {advice}"
        raise InputError(
            message,
            file=path,
            field="format_version",
            value=".".join(map(str, version)),
            allowed=f"{schema.FORMAT_VERSION[0]}.x",
        )


def _text_dtype(table: schema.Table) -> np.dtype[Any]:
    """Row type with str columns where the file has encoded text or codes."""

    def kind(column: schema.Column) -> str:
        if column.kind.startswith("utf8:"):
            return f"U{column.kind.removeprefix('utf8:')}"
        return {"status": "U8", "factor": "U32"}.get(column.kind, column.kind)

    return np.dtype([(column.name, kind(column)) for column in table.columns])


def _decoded(table: schema.Table, stored: np.ndarray, factors: Mapping[str, Sequence[str]]) -> np.ndarray:
    """`stored` rows with text and codes turned into str."""
    rows = np.zeros(len(stored), _text_dtype(table))
    for column in table.columns:
        names = schema.STATUS_NAMES if column.kind == "status" else factors.get(column.name)
        values = stored[column.name]
        if column.kind.startswith("utf8:"):
            rows[column.name] = [value.decode() for value in values]
        else:
            rows[column.name] = values if names is None else np.array(names)[values]
    return rows


def _plain(value: Any) -> Any:
    """A root attribute as a Python value."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
