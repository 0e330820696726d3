"""Predicts the CPU seconds of a run from its key. Orders the work, scales the time left, feeds `hpcmoe plan`.

    seconds = base_s + hops / hops_per_second * product of the fitted factors

`hops` counts packet-hops: payload bytes of all collectives over the packet payload, times the mean number
of links between the ranks that talk, times two for the ACK that comes back. A ring or tree all-reduce of V
bytes over TP ranks moves 2 (TP - 1) V bytes in all, an all-to-all (EP - 1) V per group of EP ranks with V the
bytes of one rank. Replicas (DP) do all of it again, stages (PP) pass activations on. The factors correct for
what the count leaves out: controllers, pauses, uneven paths, and layers that fast-forward adds instead of
simulating. There is one factor per level of each term; a term is a factor of the design or several together.
benchmarks/fit_cost.py fits them to the recorded seconds of a results file and writes cost.json.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from hpcmoe import placement, topology
from hpcmoe.design import RunKey
from hpcmoe.model import Model, load_model
from hpcmoe.pipeline import activation_bytes
from hpcmoe.workload import all_reduce_bytes, all_to_all_bytes

PAYLOAD_BYTES = 1000
TERMS = (
    ("model",),
    ("topology",),
    ("strategy",),
    ("collective",),
    ("network",),
    ("model", "collective"),
    ("topology", "network"),
    ("strategy", "collective"),
)
"""Sets of design factors that have a fitted factor per combination of their levels."""


def predicted_cost(key: RunKey, tokens: int, layers: int | None) -> float:
    """CPU seconds of a run. `layers` counts MoE layers, None for all."""
    fitted = coefficients()
    seconds = packet_hops(key, tokens, layers) / fitted["hops_per_second"]
    for name in term_names(key):
        seconds *= fitted["factors"].get(name, 1.0)
    return float(fitted["base_s"]) + seconds


@cache
def coefficients() -> dict[str, Any]:
    """What benchmarks/fit_cost.py wrote: base_s, hops_per_second, factors (term -> number)."""
    text = (resources.files("hpcmoe.sweep") / "cost.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def term_names(key: RunKey) -> list[str]:
    """Names of the factors that apply to a run, e.g. 'model=k3' or 'model=k3,collective=ring_direct'."""
    return [",".join(f"{factor}={getattr(key, factor)}" for factor in term) for term in TERMS]


@cache
def packet_hops(key: RunKey, tokens: int, layers: int | None) -> float:
    """Packets and ACKs times links of a run with every layer simulated."""
    model = _model(key.model)
    run = model.layers_run(layers)
    moe = run - sum(layer < run for layer in model.dense_at)
    reduces = model.all_reduces_per_layer * run
    reduce_bytes = all_reduce_bytes(model, tokens)
    exchange_bytes = all_to_all_bytes(model, tokens, key.ep)
    tp, ep, dp, pp = key.degrees
    apart = _links_between_ranks(key.topology, key.degrees.ranks)
    reduced = reduces * ep * dp * 2 * (tp - 1) * reduce_bytes * _links_apart(apart, tp, 1)
    exchanged = 2 * moe * tp * dp * (ep - 1) * exchange_bytes * _links_apart(apart, ep, tp)
    # Every stage but the last passes its activations on, from each of its ranks to one.
    passed = (pp - 1) * tp * ep * dp * activation_bytes(tokens, model.hidden_size, tp)
    staged = passed * _links_apart(apart, pp, tp * ep * dp)
    return 2 * (reduced + exchanged + staged) / PAYLOAD_BYTES


@cache
def _model(name: str) -> Model:
    return load_model(name)


def _links_apart(apart: np.ndarray, size: int, stride: int) -> float:
    """Mean number of links between two ranks of a group of `size` ranks `stride` apart."""
    ranks = np.arange(len(apart))
    first = ranks[ranks // stride % size == 0]
    groups = first[:, None] + stride * np.arange(size)
    total = int(apart[groups[:, :, None], groups[:, None, :]].sum(dtype=np.int64))
    return total / max(len(first) * size * (size - 1), 1)


@cache
def _links_between_ranks(topology_name: str, ranks: int) -> np.ndarray:
    """int16 [ranks, ranks]: links between every two ranks, placed one after the other."""
    built = topology.build(topology_name, external_delay_ns=1)
    placement.check_fit(built.hosts, ranks, topology_name)
    return built.links_apart[:ranks, :ranks]
