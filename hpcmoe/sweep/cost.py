"""Predicts how long a run takes, relative to others. Orders the work and scales the time left."""

from __future__ import annotations

from hpcmoe.design import RunKey

# Guesses from traffic volume, links on the path and timer work; only their order matters much.
_MODEL = {"flash": 1.0, "k3": 3.0, "glm": 2.8, "pro": 2.5}
_TOPOLOGY = {"t1": 1.0, "t2": 1.2, "t3": 1.5, "t4": 0.9, "t5": 0.9, "t6": 0.7}
_STRATEGY = {"tp2ep16": 1.0, "tp4ep8": 1.2, "tp8ep4": 1.5, "tp16ep2": 1.8}
_NETWORK = {"ib_cc0": 1.0, "ib_hpcc": 1.3, "roce_hpcc": 1.3, "roce_dcqcn": 1.2}
_STUDY_TOKENS = 4096
_TYPICAL_LAYERS = 60


def predicted_cost(key: RunKey, tokens: int, layers: int | None) -> float:
    """Cost of a run in units of a plain run of the smallest model; names not known here count 1."""
    factors = (
        _MODEL.get(key.model, 1.0),
        _TOPOLOGY.get(key.topology, 1.0),
        _STRATEGY.get(key.strategy, 1.0),
        _NETWORK.get(key.network, 1.0),
    )
    cost = tokens / _STUDY_TOKENS * (1.0 if layers is None else layers / _TYPICAL_LAYERS)
    for factor in factors:
        cost *= factor
    return cost
