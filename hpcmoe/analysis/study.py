"""Run times laid out by factor, and how far they may be compared with the published study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from hpcmoe import design
from hpcmoe.analysis import sets
from hpcmoe.analysis.facts import ModelFacts
from hpcmoe.analysis.runtable import RunTable

Times = NDArray[np.float64]

STUDY_TOKENS = 4096
"""Tokens per rank in the published study."""


@dataclass(frozen=True)
class Cube:
    """Times in nanoseconds with shape (models, topologies, strategies, collectives, networks), NaN
    where there is no finished run.  ``models``: the study's four, then others in the file."""

    models: tuple[str, ...]
    wall_ns: Times
    gpu_ns: Times
    comm_ns: Times

    def of(self, model: str, field: str = "wall_ns") -> Times:
        """One model's times, shape :data:`sets.SHAPE`."""
        times: Times = getattr(self, field)[self.models.index(model)]
        return times

    def times_factor(self, factor: Times) -> "Cube":
        return Cube(self.models, self.wall_ns * factor, self.gpu_ns * factor, self.comm_ns * factor)


class Coverage(Enum):
    """What a model's runs hold, against the published runs."""

    FULL = "all layers"
    SCALED = "fewer layers, all alike: can be scaled, which is not a simulation"
    NOT_COMPARABLE = "cannot be compared"


@dataclass(frozen=True)
class Scope:
    """One model's coverage; ``factor`` scales its times to the full model (NaN where nothing
    honest does), ``reason`` says why in a few words."""

    coverage: Coverage
    factor: float
    reason: str


@dataclass(frozen=True)
class Study:
    """A run table by factor.  ``scaled`` holds the times of ``simulated`` times each model's factor."""

    runs: RunTable
    facts: Mapping[str, ModelFacts]
    simulated: Cube
    scaled: Cube
    scopes: Mapping[str, Scope]

    @property
    def other_models(self) -> tuple[str, ...]:
        """Models of the file that the published study does not have."""
        return self.simulated.models[len(design.MODELS) :]

    def coverage(self, models: Sequence[str]) -> Coverage:
        """The weakest coverage among the models."""
        found = {self.scopes[model].coverage for model in models}
        for worst in (Coverage.NOT_COMPARABLE, Coverage.SCALED):
            if worst in found:
                return worst
        return Coverage.FULL

    def reason(self, models: Sequence[str]) -> str:
        """Why the models are not comparable as they are; empty when they are."""
        return "; ".join(dict.fromkeys(self.scopes[m].reason for m in models if self.scopes[m].reason))


def build_study(runs: RunTable, facts: Mapping[str, ModelFacts]) -> Study:
    """Lays the finished runs of the table out by factor.

    Runs with a topology, strategy, collective or network outside the study's levels stay in
    ``runs`` only: no set of the study contains them.
    """
    models = _models(runs)
    simulated = _cube(runs, models)
    scopes = {model: _scope(model, runs, facts) for model in models}
    factor = np.array([scopes[model].factor for model in models]).reshape(-1, *[1] * len(sets.SHAPE))
    return Study(runs, facts, simulated, simulated.times_factor(factor), scopes)


def _models(runs: RunTable) -> tuple[str, ...]:
    others = sorted(set(runs.text["model"]) - set(design.MODELS))
    return (*design.MODELS, *others)


def _cube(runs: RunTable, models: tuple[str, ...]) -> Cube:
    times = {name: np.full((len(models), *sets.SHAPE), np.nan) for name in ("wall_ns", "gpu_ns", "comm_ns")}
    for position in np.flatnonzero(runs.ok):
        place = _place(runs, int(position), models)
        if place is not None:
            for name, values in times.items():
                values[place] = runs.numbers[name][position]
    return Cube(models, **times)


def _place(runs: RunTable, position: int, models: tuple[str, ...]) -> tuple[int, ...] | None:
    place = [models.index(runs.text["model"][position])]
    for factor, levels in sets.LEVELS.items():
        level = runs.text[factor][position]
        if level not in levels:
            return None
        place.append(levels.index(level))
    return tuple(place)


def _scope(model: str, runs: RunTable, facts: Mapping[str, ModelFacts]) -> Scope:
    tokens = _tokens(model, runs)
    if tokens - {STUDY_TOKENS}:
        shown = ", ".join(str(count) for count in sorted(tokens))
        return Scope(Coverage.NOT_COMPARABLE, np.nan, f"{model}: {shown} tokens per rank, not {STUDY_TOKENS}")
    asked = moe_layers_asked(runs)
    if asked is None:
        return Scope(Coverage.FULL, 1.0, "")
    if model not in facts:
        return Scope(Coverage.NOT_COMPARABLE, np.nan, f"{model}: {asked} MoE layers of an unknown number")
    return _layer_scope(model, asked, facts[model])


def _layer_scope(model: str, asked: int, facts: ModelFacts) -> Scope:
    """All layers of a model of one kind of layer are alike and run one after the other, so its time
    per layer is its time over the layers run.  A model with both kinds runs the dense layers before
    its MoE layers too; one total cannot be split into dense and MoE layers, so nothing scales."""
    if asked >= facts.counted_layers:
        return Scope(Coverage.FULL, 1.0, "")
    held = f"{model}: {asked} of {facts.counted_layers} {'MoE' if facts.moe_layers else 'dense'} layers"
    if facts.dense_layers and facts.moe_layers:
        why = f"{held} plus all {facts.dense_layers} dense: no estimate, dense and MoE layers differ"
        return Scope(Coverage.NOT_COMPARABLE, np.nan, why)
    ratio = f"{facts.layers}/{asked}"
    return Scope(Coverage.SCALED, facts.layers / asked, f"{held}; scaled by {ratio}, not simulated")


def _tokens(model: str, runs: RunTable) -> set[int]:
    """Tokens per rank of the model's finished runs."""
    return {int(runs.numbers["tokens"][i]) for i in np.flatnonzero(runs.ok) if runs.text["model"][i] == model}


def moe_layers_asked(runs: RunTable) -> int | None:
    """MoE layers per model that the file was made with, None for all."""
    asked = int(runs.attrs.get("layers", -1))
    return None if asked < 0 else asked
