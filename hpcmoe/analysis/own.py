"""Runs of a study of the user's own: its factors, and runs that are equal in all of them but one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hpcmoe import design
from hpcmoe.analysis.runtable import RunTable
from hpcmoe.analysis.study import STUDY_TOKENS
from hpcmoe.store.factors import Factor, factors_of
from hpcmoe.studyfile.definition import COUNTS

_COMPUTED = (*COUNTS, "phase", "context_tokens", "expert_skew", "routing")
"""Settings that are part of the question; the others are ways to answer it."""


@dataclass(frozen=True)
class OwnStudy:
    """A run table with its factors; ``made`` is the design that the file records, {} where unreadable."""

    runs: RunTable
    made: Mapping[str, Any]
    factors: tuple[Factor, ...]

    @property
    def title(self) -> str:
        return str((self.made.get("study") or {}).get("title", ""))

    @property
    def varying(self) -> tuple[Factor, ...]:
        """Factors with two levels or more."""
        return tuple(factor for factor in self.factors if len(factor.held) > 1)

    @property
    def workloads(self) -> tuple[Factor, ...]:
        """Factors that say what is computed: the model, and variants that set tokens, phase or the like."""
        variants = (self.made.get("study") or {}).get("variants", {})
        counted = [
            name
            for name, levels in variants.items()
            if any(setting in _COMPUTED for level in levels for setting in level["settings"])
        ]
        return tuple(factor for factor in self.factors if factor.name in ("model", *counted))

    @cached_property
    def finished(self) -> list[int]:
        """Places of finished runs in the table."""
        return [int(place) for place in np.flatnonzero(self.runs.ok)]

    def wall_ns(self, run: int) -> int:
        return int(self.runs.numbers["wall_ns"][run])

    @cached_property
    def replicas(self) -> np.ndarray:
        """DP of every run: how many times its tokens a step computes."""
        strategies = next(factor for factor in self.factors if factor.name == "strategy")
        known = {name: _replicas(name) for name in strategies.held}
        return np.array([known[name] for name in strategies.values], dtype=np.int64)

    def ns_per_token(self, run: int) -> float:
        """Wall time over the tokens that all replicas compute in it."""
        tokens = int(self.runs.numbers["tokens"][run]) * int(self.replicas[run])
        return self.wall_ns(run) / max(tokens, 1)

    def name(self, run: int, without: Sequence[str] = ()) -> str:
        """The levels of a run in the factors that vary, but for some; those of variants with their name."""
        shown = [
            factor.values[run] if factor.name in design.FACTORS else f"{factor.name}={factor.values[run]}"
            for factor in self.varying
            if factor.name not in without
        ]
        return " ".join(shown) or "the only one"

    def grouped(self, factors: Sequence[Factor]) -> dict[tuple[str, ...], list[int]]:
        """Finished runs by their levels of some factors, in run-key order."""
        found: dict[tuple[str, ...], list[int]] = {}
        for run in self.finished:
            found.setdefault(tuple(factor.values[run] for factor in factors), []).append(run)
        return found

    def pairs(self, factor: Factor, level: str) -> Iterator[tuple[int, int]]:
        """(run with the first level, run with ``level``), equal in every other factor and both finished."""
        others = [other for other in self.factors if other.name != factor.name]
        for runs in self.grouped(others).values():
            by_level = {factor.values[run]: run for run in runs}
            if factor.held[0] in by_level and level in by_level:
                yield by_level[factor.held[0]], by_level[level]


def _replicas(strategy: str) -> int:
    return design.parse_degrees(strategy).dp if design.is_strategy(strategy) else 1


def own_study(runs: RunTable) -> OwnStudy:
    """The factors of a run table, from the design that its file records."""
    made = _made(runs.attrs)
    return OwnStudy(runs, made, factors_of(runs.text, made))


def _made(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        made = json.loads(attrs.get("design") or "{}")
    except (TypeError, ValueError):
        return {}
    return made if isinstance(made, dict) else {}


def is_own(study: OwnStudy) -> bool:
    """Whether the file is more than a part of the published study."""
    return bool(study.made.get("study")) or any(
        key not in _published_keys() for key in study.runs.text["key"]
    )


def holds_published(study: OwnStudy) -> bool:
    """Whether some run is one of the published study; a study file has to keep size and parameters too."""
    held = any(key in _published_keys() for key in study.runs.text["key"])
    if not study.made.get("study"):
        return held or not len(study.runs)
    return held and study.runs.attrs.get("tokens") == STUDY_TOKENS and not study.made.get("overrides")


@cache
def _published_keys() -> frozenset[str]:
    return frozenset(map(str, design.all_runs()))
