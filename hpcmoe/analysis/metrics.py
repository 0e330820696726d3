"""The study's metrics: each factory returns a function from a :class:`Cube` to a measured value.

A value over fewer runs than its set has is still computed and carries its sample; comparing it is
the caller's decision.  Ratios and differences of two conditions use only the runs that have their
counterpart in the other condition, so that a hole in one does not distort the other; on complete
sets this is the plain ratio of means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcmoe.analysis import sets
from hpcmoe.analysis.sets import Mask
from hpcmoe.analysis.study import Cube, Times

NS_PER_S = 1e9
ALL_MODES = "all four modes (tied)"


@dataclass(frozen=True)
class Measured:
    """A value (None: no run to compute it from) over ``present`` of ``expected`` samples."""

    value: float | int | str | None
    present: int
    expected: int
    sample: str = "runs"

    @property
    def complete(self) -> bool:
        return self.present == self.expected and self.value is not None


Metric = Callable[[Cube], Measured]


def _reduce(values: Times, reduction: Callable[[Times], float]) -> Measured:
    """Reduction over the finite entries, nanoseconds to seconds."""
    finite = values[np.isfinite(values)]
    value = float(reduction(finite)) / NS_PER_S if finite.size else None
    return Measured(value, int(finite.size), int(values.size))


def mean(model: str, mask: Mask, field: str = "wall_ns") -> Metric:
    """Arithmetic mean over the set, seconds."""
    return lambda cube: _reduce(cube.of(model, field)[mask], np.mean)


def minimum(model: str, mask: Mask) -> Metric:
    """Shortest wall time of the set, seconds."""
    return lambda cube: _reduce(cube.of(model)[mask], np.min)


def maximum(model: str, mask: Mask) -> Metric:
    """Longest wall time of the set, seconds."""
    return lambda cube: _reduce(cube.of(model)[mask], np.max)


def count(model: str, mask: Mask) -> Metric:
    """Finished runs of the set."""

    def measure(cube: Cube) -> Measured:
        present = int(np.isfinite(cube.of(model)[mask]).sum())
        return Measured(present or None, present, int(mask.sum()))

    return measure


def comm_fraction(model: str, mask: Mask) -> Metric:
    """mean(comm) / mean(wall) over the set."""

    def measure(cube: Cube) -> Measured:
        comm, wall = mean(model, mask, "comm_ns")(cube), mean(model, mask)(cube)
        return Measured(_divide(comm.value, wall.value), wall.present, wall.expected)

    return measure


def sensitivity(model: str, mask: Mask) -> Metric:
    """Longest over shortest wall time of the set."""

    def measure(cube: Cube) -> Measured:
        longest, shortest = maximum(model, mask)(cube), minimum(model, mask)(cube)
        return Measured(_divide(longest.value, shortest.value), longest.present, longest.expected)

    return measure


def _divide(numerator: float | int | str | None, denominator: float | int | str | None) -> float | None:
    """Quotient, None where an operand is missing or the denominator is 0."""
    if not isinstance(numerator, float | int) or not isinstance(denominator, float | int) or not denominator:
        return None
    return numerator / denominator


# --- conditions against each other --------------------------------------------------------------


def _by_level(cube: Cube, model: str, mask: Mask, factor: str, levels: tuple[str, ...]) -> Times:
    """Wall times, shape (levels, matched entries); needs a mask with equal entries per level."""
    axis = sets.FACTORS.index(factor)
    places = [sets.LEVELS[factor].index(level) for level in levels]
    wall = cube.of(model)
    return np.stack([np.take(wall, i, axis)[np.take(mask, i, axis)] for i in places])


def _matched_means(times: Times, sample: str) -> tuple[list[float] | None, Measured]:
    """Mean per level over entries finished at every level, seconds, and the sample."""
    matched = np.isfinite(times).all(axis=0)
    present, expected = int(matched.sum()), int(matched.size)
    if not present:
        return None, Measured(None, 0, expected, sample)
    return [float(row.mean()) / NS_PER_S for row in times[:, matched]], Measured(
        None, present, expected, sample
    )


def _two_levels(
    combine: Callable[[float, float], float | None],
    model: str,
    mask: Mask,
    factor: str,
    base: str,
    other: str,
) -> Metric:
    def measure(cube: Cube) -> Measured:
        means, sample = _matched_means(_by_level(cube, model, mask, factor, (base, other)), "matched pairs")
        value = combine(means[0], means[1]) if means else None
        return Measured(value, sample.present, sample.expected, sample.sample)

    return measure


def ratio(model: str, mask: Mask, factor: str, base: str, other: str) -> Metric:
    """Mean wall time at ``other`` over that at ``base``."""
    return _two_levels(lambda a, b: _divide(b, a), model, mask, factor, base, other)


def overhead(model: str, mask: Mask, factor: str, base: str, other: str) -> Metric:
    """(other - base) / base of the mean wall times."""
    return _two_levels(lambda a, b: _divide(b - a, a), model, mask, factor, base, other)


def gap_seconds(model: str, mask: Mask, factor: str, base: str, other: str) -> Metric:
    """Mean wall time at ``other`` minus that at ``base``, seconds."""
    return _two_levels(lambda a, b: b - a, model, mask, factor, base, other)


def level_order(model: str, mask: Mask, factor: str, place: int | None = None) -> Metric:
    """Levels of a factor from the lowest mean wall time to the highest; with ``place`` (0 is best)
    that one alone.  Equal means keep the order of the levels."""
    levels = sets.LEVELS[factor]

    def measure(cube: Cube) -> Measured:
        means, sample = _matched_means(_by_level(cube, model, mask, factor, levels), f"matched {factor} sets")
        if means is None:
            return sample
        order = [levels[i] for i in sorted(range(len(levels)), key=means.__getitem__)]
        shown = " ".join(order) if place is None else order[place]
        return Measured(shown, sample.present, sample.expected, sample.sample)

    return measure


# --- configurations -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Extreme:
    """The run at one end of a set, with the networks that tie with it at equal other factors."""

    wall_s: float
    levels: dict[str, str]
    networks: tuple[str, ...]

    @cached_property
    def network(self) -> str:
        return ALL_MODES if self.networks == sets.LEVELS["network"] else " ".join(self.networks)


def extreme(cube: Cube, model: str, mask: Mask, longest: bool = False) -> Extreme | None:
    """The shortest (or longest) run of the set, the first in run-key order on a tie."""
    wall = np.where(mask, cube.of(model), np.nan)
    if not np.isfinite(wall).any():
        return None
    place = np.unravel_index(np.nanargmax(wall) if longest else np.nanargmin(wall), wall.shape)
    levels = {factor: sets.LEVELS[factor][i] for factor, i in zip(sets.FACTORS, place, strict=True)}
    ties = np.flatnonzero(wall[place[:-1]] == wall[place])
    return Extreme(float(wall[place]) / NS_PER_S, levels, tuple(sets.LEVELS["network"][i] for i in ties))


def extreme_level(model: str, mask: Mask, factor: str, longest: bool = False) -> Metric:
    """One factor's level of the shortest or longest run."""

    def measure(cube: Cube) -> Measured:
        found = extreme(cube, model, mask, longest)
        sample = count(model, mask)(cube)
        if found is None:
            return Measured(None, 0, sample.expected)
        value = found.network if factor == "network" else found.levels[factor]
        return Measured(value, sample.present, sample.expected)

    return measure


def single(model: str, topology: str, strategy: str, collective: str, network: str) -> Metric:
    """Wall time of one run, seconds."""
    place = tuple(
        sets.LEVELS[f].index(v)
        for f, v in zip(sets.FACTORS, (topology, strategy, collective, network), strict=True)
    )
    return lambda cube: _reduce(cube.of(model)[place].reshape(1), np.mean)


# --- models against each other ------------------------------------------------------------------


def model_order(models: tuple[str, ...], mask: Mask) -> Metric:
    """Models from the lowest mean wall time to the highest, over matched keys."""

    def measure(cube: Cube) -> Measured:
        means, sample = _matched_means(np.stack([cube.of(m)[mask] for m in models]), "matched keys")
        if means is None:
            return sample
        order = [models[i] for i in sorted(range(len(models)), key=means.__getitem__)]
        return Measured(" ".join(order), sample.present, sample.expected, sample.sample)

    return measure


def _ranks(cube: Cube, models: tuple[str, ...], mask: Mask) -> tuple[NDArray[np.int64], int, int]:
    """Rank of each model within each matched key, shape (models, keys): 1 + models strictly faster."""
    wall = np.stack([cube.of(m)[mask] for m in models])
    matched = np.isfinite(wall).all(axis=0)
    held = wall[:, matched]
    ranks = 1 + (held[None, :, :] < held[:, None, :]).sum(axis=1)
    return ranks, int(matched.sum()), int(matched.size)


def times_ranked(model: str, models: tuple[str, ...], mask: Mask, rank: int) -> Metric:
    """Matched keys in which the model has the rank (1 is fastest; equal times share the better)."""

    def measure(cube: Cube) -> Measured:
        ranks, present, expected = _ranks(cube, models, mask)
        value = int((ranks[models.index(model)] == rank).sum()) if present else None
        return Measured(value, present, expected, "matched keys")

    return measure


def mean_rank(model: str, models: tuple[str, ...], mask: Mask) -> Metric:
    """Mean of the model's ranks within the matched keys."""

    def measure(cube: Cube) -> Measured:
        ranks, present, expected = _ranks(cube, models, mask)
        value = float(ranks[models.index(model)].mean()) if present else None
        return Measured(value, present, expected, "matched keys")

    return measure


def wins(first: str, second: str, mask: Mask) -> Metric:
    """Keys of the set in which ``first`` is strictly faster than ``second``."""

    def measure(cube: Cube) -> Measured:
        a, b = cube.of(first)[mask], cube.of(second)[mask]
        present = int((np.isfinite(a) & np.isfinite(b)).sum())
        return Measured(int((a < b).sum()) if present else None, present, int(a.size), "matched keys")

    return measure
