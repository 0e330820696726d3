"""One layer out of traces in which some rows stand for several equal layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hpcmoe.store.result import RunTraces


def layer_flows(traces: RunTraces, layer: int) -> np.ndarray:
    """Flows of one layer, whether stored themselves or as a copy; no other copy is written out."""
    fct = traces.fct
    return np.concatenate([fct[fct["layer"] == layer], *_copies(traces, layer)])


def _copies(traces: RunTraces, layer: int) -> Iterator[np.ndarray]:
    for repeat, of in _stretch_layers(traces):
        copy, rest = divmod(layer - of, int(repeat["layer_step"]))
        if rest == 0 and 1 <= copy <= int(repeat["count"]):
            rows = traces.fct[int(repeat["fct_begin"]) : int(repeat["fct_end"])]
            moved = rows[rows["layer"] == of].copy()
            moved["start_ns"] += np.uint64(copy * int(repeat["period_ns"]))
            moved["node_id"] += np.uint64(copy * int(repeat["node_step"]))
            moved["layer"] = layer
            yield moved


def _stretch_layers(traces: RunTraces) -> Iterator[tuple[np.void, int]]:
    """Every repeat with every layer of its stretch."""
    for repeat in traces.repeats:
        if int(repeat["layer_step"]) > 0:
            rows = traces.fct[int(repeat["fct_begin"]) : int(repeat["fct_end"])]
            yield from ((repeat, of) for of in np.unique(rows["layer"]).tolist() if of >= 0)


def layers_held(traces: RunTraces) -> list[int]:
    """Layers that have flows, copies included, ascending."""
    held = set(np.unique(traces.fct["layer"]).tolist())
    for repeat, of in _stretch_layers(traces):
        step = int(repeat["layer_step"])
        held |= set(range(of + step, of + step * int(repeat["count"]) + 1, step))
    return sorted(layer for layer in held if layer >= 0)
