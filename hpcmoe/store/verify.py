"""Checks a results file from end to end: bounds, checksums, and what must agree within each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from hpcmoe.errors import HpcmoeError
from hpcmoe.store import schema
from hpcmoe.store.committed import TraceSource
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.reader import open_checked
from hpcmoe.store.result import RunTraces
from hpcmoe.store.rows import rows_checksum
from hpcmoe.store.trouble import DAMAGE, reading


@dataclass(frozen=True)
class Fault:
    """Something wrong with one run; `number` is its row in /runs, -1 for the file as a whole."""

    number: int
    key: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What a check of a file found. `checked` runs are finished or failed; `waiting` have their traces in
    the spool only."""

    runs: int
    checked: int
    missing: int
    waiting: int
    faults: tuple[Fault, ...]

    @property
    def to_redo(self) -> list[int]:
        """Runs with faults, in file order."""
        return sorted({fault.number for fault in self.faults if fault.number >= 0})


def verify(path: Path, on_run: Callable[[], None] = lambda: None) -> Verdict:
    """Check every run of `path`. Raises InputError when it is no results file at all."""
    with open_checked(path) as file, reading(path):
        traces = TraceSource(file, ResultPaths(path))
        faults = [Fault(-1, "", text) for text in _table_faults(file, traces.runs)]
        bounded = not faults
        status = traces.runs["status"]
        for number in np.flatnonzero(status != schema.STATUS["missing"]).tolist():
            key = traces.key(number)
            found = _run_faults(file, traces, number) if bounded else iter(())
            faults += [Fault(number, key, text) for text in found]
            on_run()
        missing = int(np.sum(status == schema.STATUS["missing"]))
        waiting = int(np.sum(traces.spooled))
        return Verdict(len(status), len(status) - missing, missing, waiting, tuple(faults))


def _table_faults(file: h5py.File, runs: np.ndarray) -> Iterator[str]:
    """Ranges of all runs tile their tables, row by row, without gap or overlap."""
    for table, what in ((schema.RANKS, "rank"), (schema.LINKS, "link")):
        counts, offsets = runs[f"{what}_count"].astype("u8"), runs[f"{what}_offset"]
        if not np.array_equal(offsets, np.cumsum(counts) - counts) or counts.sum() != len(file[table.path]):
            yield f"/runs: {what}_offset and {what}_count do not divide {table.path} among the runs"
    if len(file[schema.RUN_PROVENANCE.path]) != len(runs):
        yield f"{schema.RUN_PROVENANCE.path} has not one row per run"
    if schema.TRACE_INDEX.path in file:
        yield from _index_faults(file, len(runs))


def _index_faults(file: h5py.File, run_count: int) -> Iterator[str]:
    index = file[schema.TRACE_INDEX.path][...]
    if len(index) != run_count:
        yield f"{schema.TRACE_INDEX.path} has not one row per run"
    for name, table in schema.VARIABLE_TABLES.items():
        counts = index[f"{name}_count"]
        ends = np.cumsum(counts)
        if not np.array_equal(index[f"{name}_offset"], ends - counts) or counts.sum() != len(
            file[table.path]
        ):
            yield f"{schema.TRACE_INDEX.path}: the ranges of {name} do not divide {table.path} among the runs"


def _run_faults(file: h5py.File, traces: TraceSource, number: int) -> Iterator[str]:
    row = traces.runs[number]
    ranks, links = (
        file[table.path][int(row[f"{what}_offset"]) : int(row[f"{what}_offset"] + row[f"{what}_count"])]
        for table, what in ((schema.RANKS, "rank"), (schema.LINKS, "link"))
    )
    if rows_checksum(row, ranks, links) != row["checksum"]:
        yield "the checksum of its rows is wrong"
        return
    if row["status"] == schema.STATUS["failed"]:
        return
    yield from _row_faults(number, row, ranks, links)
    if not traces.present[number]:
        yield "its traces are neither in the file nor in the spool"
    else:
        yield from _trace_faults(traces, number, row, ranks)


def _row_faults(number: int, row: np.void, ranks: np.ndarray, links: np.ndarray) -> Iterator[str]:
    slowest = int(np.argmax(ranks["wall_ns"]))
    times = ("wall_ns", "gpu_ns", "comm_ns")
    yield from _unless(
        {
            "rows of /ranks or /links name another run": all(
                np.all(rows["run"] == number) for rows in (ranks, links)
            ),
            "ranks are not numbered in order": np.array_equal(ranks["rank"], np.arange(len(ranks))),
            "a rank did not finish its trace": bool(np.all(ranks["finished"] == 1)),
            "bottleneck_rank is not the rank with the longest wall time": row["bottleneck_rank"] == slowest,
            "wall, GPU and communication time are not those of the bottleneck rank": all(
                row[name] == ranks[name][slowest] for name in times
            ),
            "a rank finished after the end": bool(np.all(ranks["finish_ns"] <= row["simulated_ns"])),
            "bytes sent and received differ": ranks["bytes_sent"].sum() == ranks["bytes_received"].sum(),
            "packet_hops is not what the links carried": (links["data_packets"] + links["ack_packets"]).sum()
            == row["packet_hops"],
            "ecn_marks is not what the links marked": links["ecn_marks"].sum() == row["ecn_marks"],
            "packets were dropped": row["drops"] == 0,
            "layers is not layers_simulated + layers_added": row["layers"]
            == row["layers_simulated"] + row["layers_added"],
        }
    )


def _trace_faults(traces: TraceSource, number: int, row: np.void, ranks: np.ndarray) -> Iterator[str]:
    try:
        found = traces.load(number)
    except (*DAMAGE, HpcmoeError) as error:
        yield f"its traces cannot be read: {error}"
        return
    assert found is not None
    if not traces.intact(number, found):
        yield "the checksum of its traces is wrong"
        return
    if found.digest != row["digest"].decode():
        yield "its traces belong to another scenario"
    yield from _unless(_repeat_checks(number, found))
    if len(found.fct):
        yield from _unless(_flow_checks(found, row, ranks))


def _repeat_checks(number: int, found: RunTraces) -> dict[str, bool]:
    repeats = found.repeats
    ordered = all(
        np.all(np.diff(_edges(repeats, kind)) >= 0)
        and np.all(repeats[f"{kind}_end"] <= len(getattr(found, kind)))
        for kind in schema.TRACE_KINDS
    )
    return {
        "repeats name rows that are not there, or overlap": ordered,
        "repeats name another run": bool(np.all(repeats["run"] == number)),
    }


def _edges(repeats: np.ndarray, kind: str) -> np.ndarray:
    """begin and end of each stretch in turn."""
    return np.stack([repeats[f"{kind}_begin"], repeats[f"{kind}_end"]], axis=1).ravel().astype("i8")


def _flow_checks(found: RunTraces, row: np.void, ranks: np.ndarray) -> dict[str, bool]:
    flows, count = found.fct, len(ranks)
    return {
        "a flow names a rank that is not there": bool(
            np.all((flows["src"] < count) & (flows["dst"] < count))
        ),
        "a flow ends after the end": bool(np.all(flows["start_ns"] + flows["fct_ns"] <= row["simulated_ns"])),
        "flows carry other bytes than the ranks sent": _flow_bytes(found) == int(ranks["bytes_sent"].sum()),
    }


def _flow_bytes(found: RunTraces) -> int:
    """Payload of all flows, copies included."""
    ends = np.concatenate([[0], np.cumsum(found.fct["bytes"], dtype="u8")])
    repeats = found.repeats
    stretches = ends[repeats["fct_end"]] - ends[repeats["fct_begin"]]
    return int(ends[-1] + np.sum(stretches * repeats["count"], dtype="u8"))


def _unless(checks: dict[str, bool]) -> Iterator[str]:
    return (text for text, holds in checks.items() if not holds)
