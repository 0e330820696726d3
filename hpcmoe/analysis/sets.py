"""The study's sets of runs as masks over one model's runs.

A mask has the shape (topologies, strategies, collectives, networks) = (6, 4, 2, 4), levels in the
order of :mod:`hpcmoe.design`, which owns the definitions of the sets.
"""

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hpcmoe import design

Mask = NDArray[np.bool_]
Predicate = Callable[[design.RunKey], bool]

FACTORS = ("topology", "strategy", "collective", "network")
LEVELS: dict[str, tuple[str, ...]] = {
    "topology": tuple(design.TOPOLOGIES),
    "strategy": tuple(design.STRATEGIES),
    "collective": tuple(design.COLLECTIVES),
    "network": tuple(design.NETWORKS),
}
SHAPE = tuple(len(LEVELS[factor]) for factor in FACTORS)


@cache
def mask_of(predicate: Predicate) -> Mask:
    """Where the predicate holds; the sets do not depend on the model."""
    keys = (design.RunKey(design.MODELS[0], *levels) for levels in product(*LEVELS.values()))
    mask = np.array([bool(predicate(key)) for key in keys], dtype=bool).reshape(SHAPE)
    mask.flags.writeable = False
    return mask


@cache
def level_mask(factor: str, *levels: str) -> Mask:
    """Where the factor has one of the levels."""
    axis = FACTORS.index(factor)
    chosen = np.array([level in levels for level in LEVELS[factor]])
    shape = [1] * len(SHAPE)
    shape[axis] = SHAPE[axis]
    mask = np.broadcast_to(chosen.reshape(shape), SHAPE).copy()
    mask.flags.writeable = False
    return mask


def s_full() -> Mask:
    """All 192 runs of a model."""
    return mask_of(design.s_full)


def s_feedback() -> Mask:
    """The three feedback modes: 144 runs of a model."""
    return mask_of(design.s_feedback)


def s_roce() -> Mask:
    """The two RoCE modes: 96 runs of a model."""
    return mask_of(design.s_roce)


def s_network() -> Mask:
    """Topologies with an external network: 160 runs of a model, 40 per mode."""
    return mask_of(design.s_network)
