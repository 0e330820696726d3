"""The factors of a results file, those of a study's variants included, with the level of every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hpcmoe import design


@dataclass(frozen=True)
class Factor:
    """``levels`` in the order of the study, those that no run has included; ``values`` has one per run."""

    name: str
    levels: tuple[str, ...]
    values: tuple[str, ...]

    @cached_property
    def held(self) -> tuple[str, ...]:
        """Levels that some run has."""
        held = set(self.values)
        return tuple(level for level in self.levels if level in held)


def factors_of(runs: Any, made: Mapping[str, Any]) -> tuple[Factor, ...]:
    """Factors of runs, the five of a run key first. ``runs`` gives the columns key, model, topology ...
    by name; ``made`` is the design that the file was made for."""
    study = made.get("study") or {}
    levels = study.get("levels", {})
    fixed = [_factor(name, levels.get(name, known), runs[name]) for name, known in design.FACTORS.items()]
    variants = study.get("variants", {})
    settings = [_settings(str(key)) for key in runs["key"]] if variants else []
    return (
        *fixed,
        *(
            _factor(name, [level["name"] for level in levels], [found[name] for found in settings])
            for name, levels in variants.items()
        ),
    )


def _settings(key: str) -> dict[str, str]:
    return design.settings_of(key.split("/")[len(design.FACTORS)])


def _factor(name: str, known: Sequence[str], values: Sequence[Any]) -> Factor:
    held = [str(value) for value in values]
    others = sorted(set(held) - set(known))
    return Factor(name, (*known, *others), tuple(held))
