"""What no file of upstream says of a flow: its trace node, layer, chunk and step, taken from our own run.

The order in which a pair of ranks posts its messages follows from the inputs, whatever the network does to
them. So the n-th message of the pair in our own run of the same inputs has the labels.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from hpcmoe.compare_files import flow_ids
from hpcmoe.errors import InputError
from hpcmoe.importing.folder import Imported
from hpcmoe.store import open_results, schema
from hpcmoe.upstream.reports import FLOW_COLUMNS

LABELS = ("node_id", "layer", "chunk", "step")


def labelled(run: Imported, path: str | os.PathLike[str]) -> Imported:
    """``run`` with labelled flows. InputError unless ``path`` has a run of this key with the same flows."""
    if run.flows is None:
        raise InputError("there are no flows to label", field="--labels", value=str(path))
    with open_results(path) as results:
        ours = results.traces(run.key, ("fct",), expanded=True).fct
    at = _positions(run.flows, ours, str(path), run.key)
    types = schema.dtype(schema.FCT)
    flows = np.zeros(len(run.flows), [*FLOW_COLUMNS, *((name, types[name].str) for name in LABELS)])
    for name, _ in FLOW_COLUMNS:
        flows[name] = run.flows[name]
    for name in LABELS:
        flows[name] = ours[name][at]
    return replace(run, flows=flows)


def _positions(theirs: np.ndarray, ours: np.ndarray, file: str, key: str) -> np.ndarray:
    """The row of ``ours`` for each of ``theirs``."""
    wanted, known = flow_ids(theirs), flow_ids(ours)
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known[order], wanted), len(order) - 1)] if len(order) else order
    if len(ours) == len(theirs) and np.array_equal(known[at], wanted):
        wrong = np.flatnonzero(ours["bytes"][at] != theirs["bytes"])
        if not wrong.size:
            return at
        flow = theirs[wrong[0]]
        text = f"flow {flow['src']} to {flow['dst']} port {flow['sport']} carries other bytes there"
        raise InputError(
            text, file=file, field=key, value=int(ours["bytes"][at][wrong[0]]), allowed=str(flow["bytes"])
        )
    raise InputError(
        "has other flows than the imported run: it is of other inputs, or has no traces",
        file=file, field=key, value=f"{len(ours)} flows", allowed=f"the same {len(theirs)} flows",
    )  # fmt: skip
