"""The study's design: factors, run keys and the named subsets.

A run key is ``model/topology/strategy/collective/network``, and ``/variant`` after it where a study file
has further factors: ``tokens=1024,placement=packed``. Runs are always ordered factor by factor, each factor
in the order below, then other names of the catalog ("run-key order").
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hpcmoe import catalog
from hpcmoe.errors import InputError, closest_first

MODELS = ("flash", "k3", "glm", "pro")
TOPOLOGIES = ("t1", "t2", "t3", "t4", "t5", "t6")
STRATEGIES = ("tp2ep16", "tp4ep8", "tp8ep4", "tp16ep2")
COLLECTIVES = ("ring_direct", "dbt_direct")
NETWORKS = ("ib_cc0", "ib_hpcc", "roce_hpcc", "roce_dcqcn")

FACTORS: dict[str, tuple[str, ...]] = {
    "model": MODELS,
    "topology": TOPOLOGIES,
    "strategy": STRATEGIES,
    "collective": COLLECTIVES,
    "network": NETWORKS,
}

# Factors whose levels are entries of the catalog, with their kind there. The other one is the strategy.
_KINDS = {"model": "models", "topology": "topologies", "collective": "collectives", "network": "networks"}
STRATEGY_RULE = "tp<N>ep<N>dp<N>pp<N>, parts that are 1 may be left out"
_STRATEGY = re.compile("".join(rf"(?:{part}([1-9]\d{{0,3}}))?" for part in ("tp", "ep", "dp", "pp")))
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9_-]*=[A-Za-z0-9_.+-]+")
_WILDCARDS = frozenset("*?[")


class Degrees(NamedTuple):
    """How a strategy divides the work; rank = ((pp * DP + dp) * EP + ep) * TP + tp."""

    tp: int
    ep: int
    dp: int
    pp: int

    @property
    def ranks(self) -> int:
        return self.tp * self.ep * self.dp * self.pp


def allowed_levels(factor: str) -> tuple[str, ...]:
    """The study's levels of a factor, then the catalog's other names."""
    others = catalog.names(_KINDS[factor]) if factor in _KINDS else ()
    return tuple(dict.fromkeys((*FACTORS[factor], *others)))


def is_level(factor: str, name: str) -> bool:
    """Whether a run key may have this name there."""
    return name in allowed_levels(factor) or (factor == "strategy" and is_strategy(name))


def is_strategy(name: str) -> bool:
    """Whether a name such as 'tp2ep16' or 'tp2ep4dp2pp2' gives degrees."""
    return bool(name) and bool(_STRATEGY.fullmatch(name))


def settings_of(variant: str) -> dict[str, str]:
    """The levels of a variant by factor, as text. InputError for what is no variant."""
    parts = variant.split(",") if variant else []
    wrong = next((part for part in parts if not _SETTING.fullmatch(part)), None)
    if wrong is not None:
        raise InputError("not a variant", field="run key", value=wrong, allowed="name=level[,name=level]")
    return dict(part.split("=") for part in parts)


@dataclass(frozen=True)
class RunKey:
    """One configuration. Comparison follows run-key order. Only studies of one's own have a ``variant``."""

    model: str
    topology: str
    strategy: str
    collective: str
    network: str
    variant: str = ""

    def __post_init__(self) -> None:
        for factor in FACTORS:
            level = getattr(self, factor)
            if not is_level(factor, level):
                raise InputError(
                    f"unknown {factor}",
                    field="run key",
                    value=level,
                    allowed=closest_first(str(level), allowed_levels(factor)),
                )
        settings_of(self.variant)

    def __str__(self) -> str:
        parts = [getattr(self, factor) for factor in FACTORS]
        return "/".join([*parts, self.variant] if self.variant else parts)

    def __lt__(self, other: RunKey) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[tuple[int, ...] | tuple[int, str], ...]:
        """What runs are ordered by: the study's levels by place, others after them by name or degrees."""
        levels = [_level_order(factor, getattr(self, factor)) for factor in FACTORS]
        return (*levels, (0, self.variant))

    @property
    def degrees(self) -> Degrees:
        return parse_degrees(self.strategy)

    @property
    def tp(self) -> int:
        """Tensor-parallel degree."""
        return self.degrees.tp

    @property
    def ep(self) -> int:
        """Expert-parallel degree."""
        return self.degrees.ep

    @classmethod
    def parse(cls, text: str) -> RunKey:
        """The key that ``text`` writes; InputError lists the allowed names."""
        parts = text.strip().split("/")
        if len(parts) not in (len(FACTORS), len(FACTORS) + 1) or parts[-1] == "":
            raise InputError(
                "a run key has five parts, or six in a study with variants",
                field="run key",
                value=text,
                allowed=f"{'/'.join(FACTORS)}[/variant]",
            )
        return cls(*parts)


def _level_order(factor: str, level: str) -> tuple[int, ...] | tuple[int, str]:
    studied = FACTORS[factor]
    if level in studied:
        return (studied.index(level),)
    if factor == "strategy":
        return (len(studied), *parse_degrees(level))
    return len(studied), level


def parse_strategy(strategy: str) -> tuple[int, int]:
    """(TP, EP) of a name such as 'tp2ep16'."""
    degrees = parse_degrees(strategy)
    return degrees.tp, degrees.ep


def parse_degrees(strategy: str) -> Degrees:
    """All four degrees of a name such as 'tp2ep16' or 'tp2ep4dp2pp2'."""
    match = _STRATEGY.fullmatch(strategy)
    if match is None or not strategy:
        raise InputError("not a strategy", field="strategy", value=strategy, allowed=STRATEGY_RULE)
    return Degrees(*(int(degree or 1) for degree in match.groups()))


def all_runs() -> list[RunKey]:
    """The 768 runs of the study, in run-key order."""
    return [RunKey(*levels) for levels in itertools.product(*FACTORS.values())]


def select(patterns: Iterable[str]) -> list[RunKey]:
    """Runs whose key matches any of the shell globs, in run-key order and each once.

    Wildcards stand for the study's levels. A level outside the study is written out in its part of the
    pattern: ``mymodel/t*/tp2ep16/*/ib_cc0``. InputError if a pattern matches none.
    """
    chosen: set[RunKey] = set()
    for pattern in patterns:
        chosen.update(_matching(pattern))
    return sorted(chosen)


def _matching(pattern: str) -> list[RunKey]:
    if not _WILDCARDS & set(pattern):
        return [RunKey.parse(pattern)]
    parts = pattern.split("/")
    levels = [
        (*studied, *dict.fromkeys(part for part in parts if part not in studied and is_level(factor, part)))
        for factor, studied in FACTORS.items()
    ]
    keys = ["/".join(combination) for combination in itertools.product(*levels)]
    matches = [RunKey(*key.split("/")) for key in keys if fnmatch.fnmatchcase(key, pattern)]
    if not matches:
        allowed = "; ".join(f"{factor}: {' '.join(names)}" for factor, names in FACTORS.items())
        raise InputError("no run matches", field="pattern", value=pattern, allowed=allowed)
    return matches


def in_study(key: RunKey) -> bool:
    """Whether each part of the key is a level of the study."""
    return not key.variant and all(getattr(key, factor) in levels for factor, levels in FACTORS.items())


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
