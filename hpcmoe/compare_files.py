"""The same runs in two results files: how ranks' times and flows differ."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcmoe.errors import InputError
from hpcmoe.store.reader import Results

TIMES = ("wall_ns", "gpu_ns", "comm_ns")
FLOW_VALUES = ("bytes", "start_ns", "fct_ns")


@dataclass(frozen=True)
class Column:
    """One value over the rows that both files have: how many differ, and those that do most as (row, ours,
    theirs), the largest difference first."""

    name: str
    differing: int
    largest: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class RunDifference:
    """A run in both files. ``times``: (ours, theirs) of the bottleneck rank by name. ``flows`` are
    numbers: in both files, only in ours, only in theirs; None where a file has no flows of the run."""

    key: str
    times: dict[str, tuple[int, int]]
    ranks: int
    rank_columns: tuple[Column, ...]
    flows: tuple[int, int, int] | None
    flow_columns: tuple[Column, ...]

    @property
    def equal(self) -> bool:
        """Whether every time of every rank agrees, and every flow where both files have flows."""
        same = not any(column.differing for column in (*self.rank_columns, *self.flow_columns))
        return same and (self.flows is None or self.flows[1:] == (0, 0))


def common_keys(ours: Results, theirs: Results, globs: Sequence[str] = ()) -> list[str]:
    """Runs that are finished in both files, in run-key order. InputError when there is none."""
    finished = [set(f.runs["key"][f.runs["status"] == "ok"].tolist()) for f in (ours, theirs)]
    keys = [key for key in ours.runs["key"].tolist() if key in finished[0] & finished[1]]
    chosen = [key for key in keys if not globs or any(fnmatch.fnmatchcase(key, glob) for glob in globs)]
    if not chosen:
        field = "--select" if keys else "runs"
        shown = keys[:5] if keys else sorted(finished[1])[:5]
        raise InputError(
            f"no finished run that {theirs.path} has as well", file=ours.path, field=field,
            value=" ".join(globs) or None, allowed=shown or "none",
        )  # fmt: skip
    return chosen


def compare_run(ours: Results, theirs: Results, key: str, show: int = 1) -> RunDifference:
    """One run of both files, with the ``show`` ranks and flows that differ most in each value.

    InputError when the files have different numbers of ranks.
    """
    files = (ours, theirs)
    rows = [file.runs[file.runs["key"] == key][0] for file in files]
    ranks = [file.ranks(key) for file in files]
    if len(ranks[0]) != len(ranks[1]):
        raise InputError(
            f"the run has {len(ranks[1])} ranks there",
            file=theirs.path,
            field=key,
            allowed=f"{len(ranks[0])} ranks",
        )
    names = [f"rank {rank}" for rank in ranks[0]["rank"].tolist()]
    first, second = (file.traces(key, ("fct",), expanded=True).fct for file in files)
    flows, columns = _compare_flows(first, second, show)
    return RunDifference(
        key,
        {name: (int(rows[0][name]), int(rows[1][name])) for name in TIMES},
        len(names),
        tuple(_column(name, names, ranks[0][name], ranks[1][name], show) for name in TIMES),
        flows,
        columns,
    )


def _column(name: str, names: Any, ours: np.ndarray, theirs: np.ndarray, show: int) -> Column:
    """``names[i]`` is what row i is called."""
    gap = np.abs(theirs.astype(np.int64) - ours.astype(np.int64))
    differing = int(np.count_nonzero(gap))
    order = np.argsort(-gap, kind="stable")[: min(show, differing)].tolist()
    return Column(name, differing, tuple((names[i], int(ours[i]), int(theirs[i])) for i in order))


def _compare_flows(
    ours: np.ndarray, theirs: np.ndarray, show: int
) -> tuple[tuple[int, int, int] | None, tuple[Column, ...]]:
    """The n-th message from one rank to another is the same flow in both files, whatever its port: the
    study's profile begins ports anew when the network is empty, and upstream does not."""
    if not len(ours) or not len(theirs):
        return None, ()
    _, first, second = np.intersect1d(
        flow_ids(ours), flow_ids(theirs), assume_unique=True, return_indices=True
    )
    a, b = ours[first], theirs[second]
    names = _FlowNames(a)
    columns = tuple(_column(name, names, a[name], b[name], show) for name in FLOW_VALUES)
    return (len(first), len(ours) - len(first), len(theirs) - len(second)), columns


class _FlowNames:
    """Names of flows, made when asked for: there may be millions."""

    def __init__(self, flows: np.ndarray) -> None:
        self._flows = flows

    def __getitem__(self, index: int) -> str:
        flow = self._flows[index]
        return f"flow {flow['src']} to {flow['dst']} port {flow['sport']}"


def flow_ids(flows: np.ndarray) -> np.ndarray:
    """A number per flow: 16 bits each of source and destination, then which message of that pair it is in the
    order of posting: by start, and by port where several start together."""
    order = np.lexsort((flows["sport"], flows["start_ns"], flows["dst"], flows["src"]))
    pairs = (flows["src"].astype("u8") << 48) | (flows["dst"].astype("u8") << 32)
    ordered = pairs[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    ids = np.empty_like(pairs)
    ids[order] = ordered + (np.arange(len(ordered)) - starts).astype("u8")
    return ids


def lines(found: RunDifference) -> Iterator[str]:
    """The comparison of one run in words."""
    yield f"{'equal' if found.equal else 'DIFFERENT':<10}{found.key}"
    yield f"  {'slowest':<10}{'first file':>16} {'second file':>16}  second - first"
    for name, (ours, theirs) in found.times.items():
        yield f"  {name:<10}{ours:>16} {theirs:>16}  {_gap(ours, theirs)}"
    for column in found.rank_columns:
        yield from _column_lines(column, f"{found.ranks} ranks")
    if found.flows is None:
        yield "  flows     not compared: only one of the files has them"
        return
    both, ours, theirs = found.flows
    if ours or theirs:
        yield f"  flows     {both} in both files, {ours} only in the first, {theirs} only in the second"
    for column in found.flow_columns:
        yield from _column_lines(column, f"{both} flows")


def _column_lines(column: Column, total: str) -> Iterator[str]:
    if not column.differing:
        yield f"  {column.name:<10}equal on all {total}"
        return
    yield f"  {column.name:<10}differs on {column.differing} of {total}; most on"
    for row, ours, theirs in column.largest:
        yield f"    {row:<32} {ours:>16} {theirs:>16}  {_gap(ours, theirs)}"


def _gap(ours: int, theirs: int) -> str:
    relative = f" ({(theirs - ours) / ours:+.3%})" if ours else ""
    return f"{theirs - ours:+d}{relative}"


def to_json(found: RunDifference) -> dict[str, Any]:
    """The comparison of one run, times in ns, sizes in bytes."""
    flows = found.flows and dict(zip(("both", "only_first", "only_second"), found.flows, strict=True))
    return {
        "key": found.key,
        "equal": found.equal,
        "times": {
            name: dict(zip(("first", "second"), pair, strict=True)) for name, pair in found.times.items()
        },
        "ranks": found.ranks,
        "flows": flows,
        "columns": [
            {"of": of, "name": column.name, "differing": column.differing, "largest": _rows(column)}
            for of, columns in (("ranks", found.rank_columns), ("flows", found.flow_columns))
            for column in columns
        ],
    }


def _rows(column: Column) -> list[dict[str, Any]]:
    return [{"row": row, "first": ours, "second": theirs} for row, ours, theirs in column.largest]
