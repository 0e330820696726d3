"""Metrics that only claims need: values combined from others, spreads, places of an order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.metrics import Measured, Metric
from hpcmoe.analysis.sets import Mask
from hpcmoe.analysis.study import Cube, Study
from hpcmoe.analysis.tables_factors import MODELS, RING


def combined(parts: list[Metric], combine: Callable[..., float | str]) -> Metric:
    """One value from several metrics' numbers; nothing where one has none."""

    def measure(cube: Cube) -> Measured:
        found = [part(cube) for part in parts]
        present, expected = sum(m.present for m in found), sum(m.expected for m in found)
        values = [m.value for m in found if isinstance(m.value, float | int)]
        if len(values) != len(found):
            return Measured(None, 0, expected, found[0].sample)
        return Measured(combine(values), present, expected, found[0].sample)

    return measure


def over_models(per_model: Callable[[str], Metric], combine: Callable[..., float | str]) -> Metric:
    return combined([per_model(model) for model in MODELS], combine)


def negated(metric: Metric) -> Metric:
    return combined([metric], lambda values: -values[0])


def word(metric: Metric, place: int) -> Metric:
    """One word of a metric whose value is several."""

    def measure(cube: Cube) -> Measured:
        found = metric(cube)
        value = None if found.value is None else str(found.value).split()[place]
        return Measured(value, found.present, found.expected, found.sample)

    return measure


def rising(values: list[float]) -> str:
    return "yes" if all(a < b for a, b in pairwise(values)) else "no"


def best_topologies(model: str, mask: Mask, count: int) -> Metric:
    """The topologies with the lowest means, in order of their names."""

    def measure(cube: Cube) -> Measured:
        found = metrics.level_order(model, mask, "topology")(cube)
        value = None if found.value is None else " ".join(sorted(str(found.value).split()[:count]))
        return Measured(value, found.present, found.expected, found.sample)

    return measure


def configuration(model: str, mask: Mask, longest: bool = False) -> Metric:
    """The shortest or longest run of a set as topology/strategy/collective/networks."""

    def measure(cube: Cube) -> Measured:
        sample = metrics.count(model, mask)(cube)
        found = metrics.extreme(cube, model, mask, longest)
        levels = [found.levels[f] for f in sets.FACTORS[:3]] if found else []
        value = "/".join([*levels, found.network]) if found else None
        return Measured(value, sample.present, sample.expected)

    return measure


def spread(model: str, field: str, mask: Mask, over: tuple[str, ...]) -> Metric:
    """Largest difference over the levels of some factors, the others fixed, in seconds."""

    def measure(cube: Cube) -> Measured:
        times = np.where(mask, cube.of(model, field), np.nan)
        present, expected = int(np.isfinite(times).sum()), int(mask.sum())
        if present == 0:
            return Measured(None, 0, expected)
        axes = tuple(sets.FACTORS.index(factor) for factor in over)
        high = np.where(np.isnan(times), -np.inf, times).max(axis=axes)
        low = np.where(np.isnan(times), np.inf, times).min(axis=axes)
        gaps = (high - low)[np.isfinite(high)]
        return Measured(float(gaps.max()) / metrics.NS_PER_S, present, expected)

    return measure


def largest_remainder(model: str) -> Metric:
    """Largest |wall - GPU - communication| of a run, in seconds."""

    def measure(cube: Cube) -> Measured:
        rest = np.abs(cube.of(model) - cube.of(model, "gpu_ns") - cube.of(model, "comm_ns"))
        held = rest[np.isfinite(rest)]
        value = float(held.max()) / metrics.NS_PER_S if held.size else None
        return Measured(value, int(held.size), int(rest.size))

    return measure


def screening(study: Study) -> Metric:
    """1 - mean wall with EP direct / with EP ring, TP ring in both, over matched k3 runs of the table."""

    def measure(cube: Cube) -> Measured:
        runs = study.runs
        walls: dict[str, dict[tuple[str, ...], int]] = {"ring_ring": {}, RING: {}}
        for i in np.flatnonzero(runs.ok).tolist():
            collective = runs.text["collective"][i]
            if runs.text["model"][i] == "k3" and collective in walls:
                key = tuple(runs.text[f][i] for f in ("topology", "strategy", "network"))
                walls[collective][key] = int(runs.numbers["wall_ns"][i])
        matched = walls["ring_ring"].keys() & walls[RING].keys()
        if not matched:
            return Measured(None, 0, 20, "matched runs with EP ring (ring_ring), outside the study's 768")
        ring, direct = (sum(walls[name][key] for key in matched) for name in ("ring_ring", RING))
        return Measured(1 - direct / ring, len(matched), len(matched), "matched screening runs")

    return measure
