"""A results file for notebooks: pandas frames, and an xarray view over the factors.

``hpcmoe.open_study(path)`` needs the extra ``analysis`` (pandas, and xarray for :meth:`Study.xarray`).
The file is opened read-only and without locks, so a sweep may be filling it; :meth:`Study.refresh` looks
again. Column names carry their unit (``_ns``, ``_bytes``, ``_bps``); ``frame.attrs["units"]`` and
``frame.attrs["help"]`` have the unit and the meaning of every column.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
from collections.abc import Iterator
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcmoe import design
from hpcmoe.errors import HpcmoeError, InputError, closest_first
from hpcmoe.store import open_results, schema
from hpcmoe.store.factors import factors_of
from hpcmoe.store.reader import Results
from hpcmoe.store.repeats import blocks, expanded_count
from hpcmoe.store.result import RunTraces

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_TIMES = ("wall_ns", "gpu_ns", "comm_ns")
_COUNTS = ("events", "packet_hops", "ecn_marks", "pfc_pauses", "drops", "layers_simulated", "layers_added")


def open_study(path: str | os.PathLike[str]) -> Study:
    """Open a results file for reading.

    Raises InputError when it is missing, not a results file or of another format, HpcmoeError when
    pandas is not installed.
    """
    _needed("pandas")
    return Study(open_results(path))


def _needed(module: str) -> Any:
    """A module of the extra ``analysis``."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise HpcmoeError(f"this needs {module}: pip install 'hpcmoe[analysis]'") from None


class Study:
    """The runs of a results file, or some of them. A context manager.

    Every frame holds the chosen runs only; frames are read when they are first asked for and kept.
    """

    def __init__(self, results: Results, chosen: np.ndarray | None = None) -> None:
        self._results = results
        self._chosen = np.arange(len(results.runs)) if chosen is None else chosen

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {str(self._results.path)!r}: {len(self._chosen)} of {len(self._results.runs)} runs>"

    def __len__(self) -> int:
        return len(self._chosen)

    def close(self) -> None:
        self._results.close()

    def refresh(self) -> None:
        """Read again what a running sweep has added since."""
        self._results.refresh()
        for name in ("runs", "ranks", "links"):
            self.__dict__.pop(name, None)

    @property
    def attrs(self) -> dict[str, Any]:
        """Root attributes of the file as plain Python values."""
        return dict(self._results.attrs)

    @property
    def keys(self) -> list[str]:
        """Keys of the chosen runs, in run-key order."""
        return [str(key) for key in self._results.runs["key"][self._chosen]]

    # --- frames -------------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run, indexed by key. The five factors are ordered categories, and so are those of a
        study's variants that are no column anyway (tokens is one); ``status`` is ok, failed or missing, and
        the results of a run that is not ok are NA, as is what the program of an imported run does not
        report. Times in ns of the bottleneck rank: wall_ns, gpu_ns, comm_ns; counts without unit."""
        frame = self._frame(schema.RUNS, self._results.runs[self._chosen])
        pd = _needed("pandas")
        for factor in self._results.factors:
            if factor.name in design.FACTORS or factor.name not in frame:
                values = [factor.values[run] for run in self._chosen.tolist()]
                frame[factor.name] = pd.Categorical(values, factor.levels, ordered=True)
        valid = frame["status"] == "ok"
        names = [c.name for c in schema.RUNS.columns if not c.kind.startswith(("utf8", "status", "factor"))]
        results = [name for name in names if not name.endswith(("_offset", "_count"))]
        units = dict(frame.attrs)
        frame[results] = frame[results].astype("Int64").where(valid)
        for key, record in self._results.imports().items():
            frame.loc[frame["key"] == key, record["missing"]["/runs"]] = pd.NA
        frame = frame.drop(columns=[n for n in names if n not in results]).set_index("key")
        frame.attrs = units
        return frame

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """One row per rank of every finished run, indexed by (key, rank). wall_ns, gpu_ns, comm_ns,
        exposed_comm_ns and others in ns; bytes_sent and bytes_received in bytes."""
        return self._slabs(schema.RANKS, self._results.ranks).set_index(["key", "rank"])

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row per direction of every link of every finished run, indexed by (key, src, dst): node ids,
        with their names in src_name and dst_name. rate_bps in bit/s, bytes and peak_queue_bytes in bytes,
        pause_ns and busy_ns in ns; ``utilization`` is busy_ns over the run's simulated time."""
        frame = self._slabs(schema.LINKS, self._results.links, self._link_names)
        return frame.set_index(["key", "src", "dst"])

    def _link_names(self, run: int, rows: np.ndarray) -> dict[str, Any]:
        names = np.array(self._results.config(run)["node_names"])
        simulated = max(1, int(self._results.runs["simulated_ns"][run]))
        return {
            "src_name": names[rows["src"]],
            "dst_name": names[rows["dst"]],
            "utilization": rows["busy_ns"] / simulated,
        }

    def _slabs(self, table: schema.Table, read: Any, more: Any = None) -> pd.DataFrame:
        pd = _needed("pandas")
        frames = []
        for run in self._chosen.tolist():
            if self._results.runs["status"][run] == "ok":
                rows = read(run)
                frame = self._frame(table, rows)
                frame.insert(0, "key", str(self._results.runs["key"][run]))
                frames.append(frame.assign(**more(run, rows)) if more else frame)
        whole = (
            pd.concat(frames, ignore_index=True)
            if frames
            else self._frame(table, np.zeros(0, schema.dtype(table)))
        )
        if not frames:
            whole.insert(0, "key", [])
        whole.attrs = _meanings(table)
        return whole.drop(columns="run")

    @staticmethod
    def _frame(table: schema.Table, rows: np.ndarray) -> pd.DataFrame:
        frame = _needed("pandas").DataFrame({name: rows[name] for name in table.names})
        frame.attrs = _meanings(table)
        return frame

    # --- single runs --------------------------------------------------------------------------------

    def select(self, *globs: str) -> Study:
        """The runs whose key matches any of the shell globs, such as ``"flash/*/tp2ep16/*/*"``; the
        file stays shared. InputError when none does."""
        keys = self.keys
        chosen = [i for i, key in enumerate(keys) if any(fnmatch.fnmatchcase(key, glob) for glob in globs)]
        if not chosen:
            near = closest_first(globs[0], keys)[:5] if globs else keys[:5]
            raise InputError(
                "no run of this file matches", field="select", value=" ".join(globs), allowed=near
            )
        return Study(self._results, self._chosen[chosen])

    def traces(self, run: str) -> Traces:
        """Flows, queue samples and pauses of a finished run."""
        return Traces(self._results.traces(run))

    def config(self, run: str) -> dict[str, Any]:
        """The scenario that was run: parameters, topology, ECN thresholds, digests of the traces."""
        return self._results.config(run)

    # --- xarray -------------------------------------------------------------------------------------

    def xarray(self) -> xr.Dataset:
        """The chosen runs over the dimensions model, topology, strategy, collective, network, and those of a
        study's variants.

        Variables: wall_ns, gpu_ns, comm_ns and the counts of a run as float64, NaN where no run is
        finished, with their ``units``; ``status`` as text, empty where the file plans no run. The sizes
        are the levels that the chosen runs have.
        """
        xr = _needed("xarray")
        rows = self._results.runs[self._chosen]
        factors = factors_of(rows, self._results.design)
        names = tuple(factor.name for factor in factors)
        coords = {factor.name: list(factor.held) for factor in factors}
        shape = tuple(len(levels) for levels in coords.values())
        place = tuple(np.array([f.held.index(v) for v in f.values], dtype=int) for f in factors)
        ok = rows["status"] == "ok"
        units = {column.name: column.unit for column in schema.RUNS.columns}
        data: dict[str, Any] = {}
        for name in (*_TIMES, *_COUNTS):
            values = np.full(shape, np.nan)
            values[tuple(index[ok] for index in place)] = rows[name][ok]
            data[name] = (names, values, {"units": units[name]})
        status = np.full(shape, "", dtype="U8")
        status[place] = rows["status"]
        data["status"] = (names, status)
        return xr.Dataset(data, coords, {"file": self._results.path.name})


def _meanings(table: schema.Table) -> dict[str, Any]:
    return {
        "units": {column.name: column.unit for column in table.columns},
        "help": {column.name: column.help for column in table.columns},
    }


class Traces:
    """Traces of one run. Layers that were added as equal to a simulated one are written out when a frame
    is first asked for; :meth:`pieces` gives the same rows one stretch at a time."""

    def __init__(self, stored: RunTraces) -> None:
        self._stored = stored

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(kind)} {kind}" for kind in schema.TRACE_KINDS)
        return f"<Traces: {counts}; {len(self._stored.repeats)} repeats>"

    @cached_property
    def fct(self) -> pd.DataFrame:
        """One row per flow in order of completion: src and dst (ranks), sport, bytes, start_ns, fct_ns,
        standalone_ns (all ns), node_id, layer, chunk, step."""
        return self._whole("fct")

    @cached_property
    def qlen(self) -> pd.DataFrame:
        """One row per non-empty queue and sample: time_ns, src and dst (nodes), bytes."""
        return self._whole("qlen")

    @cached_property
    def pfc(self) -> pd.DataFrame:
        """One row per PFC event: time_ns, node and peer (nodes), port, is_switch, pause (1, or 0 resume)."""
        return self._whole("pfc")

    @property
    def repeats(self) -> pd.DataFrame:
        """Which stored rows stand for copies as well (columns: /traces/repeats)."""
        return Study._frame(schema.REPEATS, self._stored.repeats)

    def count(self, kind: str) -> int:
        """Rows of fct, qlen or pfc, copies included; writes nothing out."""
        return expanded_count(self._stored, kind)

    def pieces(self, kind: str) -> Iterator[pd.DataFrame]:
        """The rows of fct, qlen or pfc in order, stretch by stretch."""
        for rows in blocks(self._stored, kind):
            if len(rows):
                yield Study._frame(schema.TRACE_TABLES[kind], rows)

    def _whole(self, kind: str) -> pd.DataFrame:
        rows = np.concatenate(list(blocks(self._stored, kind)))
        return Study._frame(schema.TRACE_TABLES[kind], rows)
