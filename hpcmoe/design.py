"""The study's design: factors, run keys and the named subsets.

A run key is ``model/topology/strategy/collective/network``. Runs are always ordered factor by factor,
each factor in the order below ("run-key order").
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from hpcmoe.errors import InputError, closest_first

MODELS = ("flash", "k3", "glm", "pro")
TOPOLOGIES = ("t1", "t2", "t3", "t4", "t5", "t6")
STRATEGIES = ("tp2ep16", "tp4ep8", "tp8ep4", "tp16ep2")
COLLECTIVES = ("ring_direct", "dbt_direct")
NETWORKS = ("ib_cc0", "ib_hpcc", "roce_hpcc", "roce_dcqcn")

# Tensor-parallel x expert-parallel algorithms that can be asked for by name but are not in the study.
EXTRA_COLLECTIVES = ("ring_ring", "dbt_ring", "halving_doubling_direct", "halving_doubling_ring")

FACTORS: dict[str, tuple[str, ...]] = {
    "model": MODELS,
    "topology": TOPOLOGIES,
    "strategy": STRATEGIES,
    "collective": COLLECTIVES,
    "network": NETWORKS,
}

_ALLOWED: dict[str, tuple[str, ...]] = {**FACTORS, "collective": COLLECTIVES + EXTRA_COLLECTIVES}
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class RunKey:
    """One configuration of the study. Comparison follows run-key order."""

    model: str
    topology: str
    strategy: str
    collective: str
    network: str

    def __post_init__(self) -> None:
        for factor, allowed in _ALLOWED.items():
            level = getattr(self, factor)
            if level not in allowed:
                raise InputError(
                    f"unknown {factor}",
                    field="run key",
                    value=level,
                    allowed=closest_first(str(level), allowed),
                )

    def __str__(self) -> str:
        return "/".join(getattr(self, factor) for factor in FACTORS)

    def __lt__(self, other: RunKey) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, ...]:
        """Index of each factor's level."""
        return tuple(allowed.index(getattr(self, factor)) for factor, allowed in _ALLOWED.items())

    @property
    def tp(self) -> int:
        """Tensor-parallel degree."""
        return parse_strategy(self.strategy)[0]

    @property
    def ep(self) -> int:
        """Expert-parallel degree."""
        return parse_strategy(self.strategy)[1]

    @classmethod
    def parse(cls, text: str) -> RunKey:
        """The key that ``text`` writes; InputError lists the allowed names."""
        parts = text.strip().split("/")
        if len(parts) != len(FACTORS):
            raise InputError(
                "a run key has five parts", field="run key", value=text, allowed="/".join(FACTORS)
            )
        return cls(*parts)


def parse_strategy(strategy: str) -> tuple[int, int]:
    """(TP, EP) of a name such as 'tp2ep16'."""
    tp, _, ep = strategy.removeprefix("tp").partition("ep")
    return int(tp), int(ep)


def all_runs() -> list[RunKey]:
    """The 768 runs of the study, in run-key order."""
    return [RunKey(*levels) for levels in itertools.product(*FACTORS.values())]


def select(patterns: Iterable[str]) -> list[RunKey]:
    """Runs whose key matches any of the shell globs, in run-key order and each once.

    A key written out in full may use a collective outside the study. InputError if a pattern matches none.
    """
    chosen: set[RunKey] = set()
    for pattern in patterns:
        chosen.update(_matching(pattern))
    return sorted(chosen)


def _matching(pattern: str) -> list[RunKey]:
    if not _WILDCARDS & set(pattern):
        return [RunKey.parse(pattern)]
    matches = [key for key in all_runs() if fnmatch.fnmatchcase(str(key), pattern)]
    if not matches:
        levels = "; ".join(f"{factor}: {' '.join(allowed)}" for factor, allowed in FACTORS.items())
        raise InputError("no run matches", field="pattern", value=pattern, allowed=levels)
    return matches


def in_study(key: RunKey) -> bool:
    return key.collective in COLLECTIVES


def s_full(key: RunKey) -> bool:
    """All 192 runs per model."""
    return in_study(key)


def s_feedback(key: RunKey) -> bool:
    """The three modes with rate feedback: 144 per model."""
    return in_study(key) and key.network != "ib_cc0"


def s_roce(key: RunKey) -> bool:
    """The two RoCE modes: 96 per model."""
    return in_study(key) and key.network.startswith("roce_")


def s_network(key: RunKey) -> bool:
    """Topologies with an external network: 160 per model, 40 per mode."""
    return in_study(key) and key.topology != "t6"
