"""Trace rows that stand for several layers, written out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from hpcmoe import runner
from hpcmoe.scenario import scenario_from_key
from hpcmoe.store import schema
from hpcmoe.store.repeats import blocks, expand, expanded_count
from hpcmoe.store.result import RunTraces, result_traces

LAYER_NS, NODES_PER_LAYER = 1000, 6


def made_up(layers: int) -> dict[str, np.ndarray]:
    """Per layer two flows, a queue sample, a pause and its resume; node ids 6 apart; one flow before."""
    fct = [(9, 8, 1, 5, 3, 4, 2, 1, -1, 0, 0)]
    qlen, pfc = [], []
    for layer in range(layers):
        start = 100 + layer * LAYER_NS
        for step in (0, 1):
            node = 2 + layer * NODES_PER_LAYER
            fct.append((step, 1 - step, 7, 500, start + step, 40, 30, node, layer, 0, step))
        qlen.append((start + 2, 3, 4, 9000))
        pfc += [(start + 5, 3, 4, 1, 1, 1), (start + 6, 3, 4, 1, 1, 0)]
    rows = {"fct": fct, "qlen": qlen, "pfc": pfc}
    return {kind: np.array(found, schema.dtype(schema.TRACE_TABLES[kind])) for kind, found in rows.items()}


def stored(layers: int, first: int, last: int) -> RunTraces:
    """`layers` layers with those between `first` and `last` left out: `first` stands for them too."""
    full = made_up(layers)
    added = last - first - 1
    kept = {}
    for kind, per_layer, head in (("fct", 2, 1), ("qlen", 1, 0), ("pfc", 2, 0)):
        cut = slice(head + (first + 1) * per_layer, head + last * per_layer)
        kept[kind] = np.delete(full[kind], cut)
    repeat = np.zeros(1, schema.dtype(schema.REPEATS))
    repeat[0] = (5, 1 + 2 * first, 3 + 2 * first, first, first + 1, 2 * first, 2 * first + 2,
                 added, LAYER_NS, 1, NODES_PER_LAYER)  # fmt: skip
    return RunTraces("d", "{}", **kept, repeats=repeat)


@pytest.mark.parametrize(("layers", "first", "last"), [(8, 2, 6), (5, 0, 5), (3, 1, 3), (2, 0, 1)])
def test_copies_are_the_rows_left_out(layers: int, first: int, last: int) -> None:
    traces = stored(layers, first, last)
    written = expand(traces)
    for kind, expected in made_up(layers).items():
        np.testing.assert_array_equal(getattr(written, kind), expected)
        assert expanded_count(traces, kind) == len(expected)
    assert len(written.repeats) == 0
    assert len(traces.fct) == 1 + 2 * (layers - (last - first - 1))


def test_two_stretches() -> None:
    one = stored(9, 1, 4)  # layers 2 and 3 are left out, so layer 6 stands two places earlier
    second = one.repeats.copy()
    for kind, per_layer in (("fct", 2), ("qlen", 1), ("pfc", 2)):
        begin = (1 if kind == "fct" else 0) + 4 * per_layer
        second[f"{kind}_begin"], second[f"{kind}_end"] = begin, begin + per_layer
    second["count"] = 1
    kept = {
        "fct": np.delete(one.fct, slice(11, 13)),
        "qlen": np.delete(one.qlen, slice(5, 6)),
        "pfc": np.delete(one.pfc, slice(10, 12)),
    }
    both = dataclasses.replace(one, **kept, repeats=np.concatenate([one.repeats, second]))
    for kind, expected in made_up(9).items():
        np.testing.assert_array_equal(getattr(expand(both), kind), expected)


def test_kinds_that_were_not_read_stay_empty() -> None:
    traces = dataclasses.replace(stored(8, 2, 6), qlen=np.zeros(0, schema.dtype(schema.QLEN)))
    assert len(expand(traces).qlen) == 0


def test_blocks_are_small() -> None:
    assert max(len(block) for block in blocks(stored(100, 0, 99), "fct")) == 3


def by_completion(rows: np.ndarray) -> np.ndarray:
    """Flows by completion time, then by everything else."""
    end = rows["start_ns"] + rows["fct_ns"]
    return rows[np.lexsort([rows[name] for name in reversed(rows.dtype.names or ())] + [end])]


@pytest.mark.parametrize("network", ["ib_cc0", "roce_hpcc", "roce_dcqcn"])
def test_fast_forward_written_out_is_the_full_run(network: str) -> None:
    key = f"k3/t1/tp16ep2/ring_direct/{network}"
    scenario = scenario_from_key(key, tokens=64, layers=6, overrides={"queue_sample_ns": 1000})
    traces: dict[bool, RunTraces] = {}
    for fast in (True, False):
        result: Any = runner.run(scenario, fast_forward=fast)
        assert (result.layers_added > 0) == fast
        traces[fast] = result_traces(result, 0, digest="d", config="{}", keep=True)
    assert len(traces[True].repeats) > 0
    written, full = expand(traces[True]), traces[False]
    for kind in schema.TRACE_KINDS:
        assert expanded_count(traces[True], kind) == len(getattr(full, kind))
    assert len(traces[True].fct) < len(full.fct)
    np.testing.assert_array_equal(by_completion(written.fct), by_completion(full.fct))
    for kind in ("qlen", "pfc"):
        np.testing.assert_array_equal(np.sort(getattr(written, kind)), np.sort(getattr(full, kind)))
    assert len(full.qlen) > 0
