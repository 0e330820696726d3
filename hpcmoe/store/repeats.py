"""Writes out the trace rows of layers that were added instead of simulated.

A repeat names a stretch of rows that stands for itself and for `count` more copies, each
`period_ns` later than the one before. Between copies the network is empty, so the copies come
between the stretch and what follows it, and time order is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hpcmoe.store import schema
from hpcmoe.store.result import RunTraces

_MOVED = {
    "fct": {"start_ns": "period_ns", "layer": "layer_step", "node_id": "node_step"},
    "qlen": {"time_ns": "period_ns"},
    "pfc": {"time_ns": "period_ns"},
}
"""Per trace, the columns that grow from one copy to the next, and the column of repeats that says by what."""


def blocks(traces: RunTraces, kind: str) -> Iterator[np.ndarray]:
    """All rows of trace `kind` in order, in pieces: stretches as stored, and each copy on its own."""
    rows = getattr(traces, kind)
    done = 0
    for repeat in traces.repeats:
        begin, end = int(repeat[f"{kind}_begin"]), int(repeat[f"{kind}_end"])
        yield rows[done:end]
        for number in range(1, int(repeat["count"]) + 1):
            yield _copy(rows[begin:end], kind, repeat, number)
        done = end
    yield rows[done:]


def expand(traces: RunTraces) -> RunTraces:
    """The traces with every copy written out, and no repeats."""
    fct, qlen, pfc = (np.concatenate(list(blocks(traces, kind))) for kind in schema.TRACE_KINDS)
    return replace(traces, fct=fct, qlen=qlen, pfc=pfc, repeats=traces.repeats[:0])


def expanded_count(traces: RunTraces, kind: str) -> int:
    """Rows of trace `kind` with every copy counted."""
    repeats = traces.repeats
    lengths = repeats[f"{kind}_end"] - repeats[f"{kind}_begin"]
    return len(getattr(traces, kind)) + int(np.sum(lengths * repeats["count"]))


def _copy(stretch: np.ndarray, kind: str, repeat: np.void, number: int) -> np.ndarray:
    moved = stretch.copy()
    for column, step in _MOVED[kind].items():
        # Unknown layers (-1) stay unknown.
        known = stretch[column] >= 0
        moved[column][known] += moved.dtype[column].type(number * int(repeat[step]))
    return moved
