"""A study as data: levels of every factor, what all runs share, variants, and which keys stay."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcmoe import catalog, design
from hpcmoe.design import RunKey
from hpcmoe.errors import InputError, closest_first
from hpcmoe.placement import CONTIGUOUS, IN_ORDER, Placement
from hpcmoe.placement import parse as parse_placement

PLACEMENT = "placement"
Setting = int | str | list[int | str]
"""A count, a parameter as text, or a placement: its name, or the host of every rank."""
COUNTS = ("tokens", "batch", "sequence_length", "layers")
"""Settings that are counts of the workload and no parameters."""


@dataclass(frozen=True)
class Level:
    """A level of a variant: its name in run keys, and the settings that it makes."""

    name: str
    settings: Mapping[str, Setting]


@dataclass(frozen=True)
class RunSettings:
    """What a run needs beside its key: tokens per step, MoE layers (None: all), parameters by name, and which
    GPU each rank runs on."""

    tokens: int
    layers: int | None
    overrides: Mapping[str, str]
    placement: Placement = IN_ORDER


@dataclass(frozen=True)
class StudyDesign:
    """``levels``: names per factor of a run key, in the order in which reports show them. ``settings``:
    counts as integers, parameters as text, for all runs. ``variants``: further factors. ``include`` and
    ``exclude`` are globs on run keys. ``definitions``: catalog entries that the study brings along, by kind
    and name.
    """

    levels: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    variants: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    title: str = ""

    def install(self, file: Path) -> None:
        """Make the study's definitions known to the catalog of this process; messages name ``file``."""
        catalog.define(self.definitions, file)

    @cached_property
    def keys(self) -> tuple[RunKey, ...]:
        """The runs, factor by factor in the order of the levels. The definitions have to be installed."""
        return tuple(key for key in self.all_keys if self.has(str(key)))

    @cached_property
    def all_keys(self) -> tuple[RunKey, ...]:
        """The whole cross product."""
        levels = [self.levels[factor] for factor in design.FACTORS]
        return tuple(RunKey(*combination) for combination in itertools.product(*levels, self.variant_texts))

    @property
    def variant_texts(self) -> list[str]:
        """Sixth parts of the keys; one empty one where there are no variants."""
        named = [[f"{name}={level.name}" for level in levels] for name, levels in self.variants.items()]
        return [",".join(combination) for combination in itertools.product(*named)]

    def has(self, key: str) -> bool:
        """Whether ``include`` and ``exclude`` let a key of the cross product stay."""
        wanted = not self.include or matches(key, self.include)
        return wanted and not matches(key, self.exclude)

    def select(self, patterns: Sequence[str]) -> tuple[RunKey, ...]:
        """Runs that match any of the shell globs; InputError when one matches none."""
        texts = [str(key) for key in self.keys]
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(text, pattern) for text in texts):
                raise InputError(
                    "no run of the study matches",
                    field="pattern",
                    value=pattern,
                    allowed=closest_first(pattern, texts)[:5],
                )
        return tuple(key for key, text in zip(self.keys, texts, strict=True) if matches(text, patterns))

    def key(self, text: str) -> RunKey:
        """The run of the study with that key; InputError names those most like it."""
        found = {str(key): key for key in self.keys}
        if text.strip() not in found:
            raise InputError(
                "no such run in the study",
                field="run key",
                value=text,
                allowed=closest_first(text, found)[:5],
            )
        return found[text.strip()]

    def of_run(self, key: RunKey) -> RunSettings:
        """The settings of one run."""
        return self.of_variant(key.variant)

    def of_variant(self, variant: str) -> RunSettings:
        """The settings of all runs of a variant."""
        found: dict[str, Setting] = dict(self.settings)
        for name, level in design.settings_of(variant).items():
            found.update(self._level(name, level).settings)
        counts = {name: value for name in COUNTS if isinstance(value := found.pop(name, None), int)}
        tokens = counts.get("tokens") or counts["batch"] * counts["sequence_length"]
        placed = found.pop(PLACEMENT, CONTIGUOUS)
        placement = parse_placement(placed if isinstance(placed, list) else str(placed))
        overrides = {name: str(value) for name, value in found.items()}
        return RunSettings(tokens, counts.get("layers"), overrides, placement)

    def _level(self, name: str, text: str) -> Level:
        levels = self.variants.get(name, ())
        found = next((level for level in levels if level.name == text), None)
        if found is None:
            raise InputError(
                "not a variant of the study",
                field="run key",
                value=f"{name}={text}",
                allowed=self.variant_texts,
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """All of it; ``from_json`` gives it back."""
        return {
            "title": self.title,
            "levels": {factor: list(names) for factor, names in self.levels.items()},
            "settings": dict(self.settings),
            "variants": {
                name: [{"name": level.name, "settings": dict(level.settings)} for level in levels]
                for name, levels in self.variants.items()
            },
            "include": list(self.include),
            "exclude": list(self.exclude),
            "definitions": {kind: dict(entries) for kind, entries in self.definitions.items()},
        }


def from_json(content: Mapping[str, Any]) -> StudyDesign:
    """The study that ``to_json`` wrote."""
    return StudyDesign(
        {factor: tuple(names) for factor, names in content["levels"].items()},
        content["settings"],
        {
            name: tuple(Level(level["name"], level["settings"]) for level in levels)
            for name, levels in content["variants"].items()
        },
        tuple(content["include"]),
        tuple(content["exclude"]),
        content["definitions"],
        content["title"],
    )


def matches(key: str, patterns: Sequence[str]) -> bool:
    """Whether any of the shell globs matches the whole key."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
