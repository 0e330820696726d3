"""How long a sweep will take on how many ranks: the scheduler, simulated with predicted run times."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

HELPS = 0.05
"""More ranks help while they shorten the sweep by at least this share."""


@dataclass(frozen=True)
class Forecast:
    """A sweep on `ranks` ranks. `efficiency` is work over ranks times makespan."""

    ranks: int
    makespan_s: float
    efficiency: float


def makespan_s(seconds: Sequence[float], ranks: int) -> float:
    """End of the last run when each rank takes the longest run left as soon as it is free."""
    free = [0.0] * min(ranks, max(len(seconds), 1))
    for run in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + run)
    return max(free)


def forecast(seconds: Sequence[float], ranks: int) -> Forecast:
    span_s = makespan_s(seconds, ranks)
    return Forecast(ranks, span_s, sum(seconds) / (ranks * span_s) if span_s else 1.0)


def useful_ranks(seconds: Sequence[float], most: int = 4096) -> int:
    """Fewest ranks whose sweep is at most HELPS longer than the shortest possible, that of `most` ranks."""
    best_s = makespan_s(seconds, most)
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if makespan_s(seconds, middle) <= best_s * (1 + HELPS):
            high = middle
        else:
            low = middle + 1
    return low
