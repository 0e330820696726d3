"""From a study file to a StudyDesign; whatever is wrong is one InputError with file, line and field."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hpcmoe import catalog, design, topology
from hpcmoe.errors import InputError, closest_first
from hpcmoe.model import Model, load_model
from hpcmoe.placement import CONTIGUOUS
from hpcmoe.studyfile import inline, settings
from hpcmoe.studyfile.definition import COUNTS, StudyDesign, matches
from hpcmoe.yaml_input import Place, YamlFile, read

FACTOR_FIELDS = {
    "models": "model",
    "topologies": "topology",
    "strategies": "strategy",
    "collectives": "collective",
    "networks": "network",
}
FIELDS = ("title", *FACTOR_FIELDS, *COUNTS, "placement", "set", "variants", "include", "exclude")
ALL = "all"
MOST_LEVELS = 255
MOST_RUNS = 100_000
LONGEST_KEY_BYTES = 128


def read_study(path: str | os.PathLike[str]) -> StudyDesign:
    """The study of a file, complete and checked; its definitions are in the catalog from here on."""
    return _Reader(read(Path(path))).study()


def only_study(
    path: str | os.PathLike[str],
    tokens: int | None,
    layers: int | None,
    assignments: Sequence[str] = (),
    placement: str = CONTIGUOUS,
) -> StudyDesign:
    """The study of a file; InputError where an option of the command line says what the file has to say."""
    given_placement = None if placement == CONTIGUOUS else placement
    options = {"--tokens": tokens, "--layers": layers, "--set": assignments or None}
    for option, given in {**options, "--placement": given_placement}.items():
        if given is not None:
            raise InputError(f"the study file says this: change it in {path}", field=option, value=given)
    return read_study(path)


class _Reader:
    def __init__(self, file: YamlFile) -> None:
        self._file = file

    def study(self) -> StudyDesign:
        file = self._file
        for name in file.data:
            if name not in FIELDS:
                raise file.error("unknown field", (name,), value=name, allowed=closest_first(name, FIELDS))
        definitions = inline.definitions(file)
        catalog.define(definitions, file.path)
        levels = {factor: self._levels(field, factor) for field, factor in FACTOR_FIELDS.items()}
        shared = settings.shared(file)
        study = StudyDesign(
            levels,
            shared,
            settings.variants(file, shared),
            tuple(self._texts("include")),
            tuple(self._texts("exclude")),
            definitions,
            self._title(),
        )
        self._check_count(study)  # before anything walks through the runs
        settings.check_tokens(file, study)
        self._check_runs(study)
        self._check_levels(study)
        self._check_models(study)
        return study

    def _title(self) -> str:
        title = self._file.data.get("title", "")
        if not isinstance(title, str):
            raise self._file.error("not a text", ("title",), value=title)
        return title

    def _levels(self, field: str, factor: str) -> tuple[str, ...]:
        """Names of the levels of one factor, each known and given once."""
        file = self._file
        if field not in file.data:
            raise file.error(
                "missing", (field,), allowed=f"a list of names, or '{ALL}' for those of the published study"
            )
        given = file.data[field]
        if given == ALL:
            return design.FACTORS[factor]
        names: list[str] = []
        for position, entry in enumerate(self._list(field)):
            place = (field, position)
            name = entry["name"] if isinstance(entry, dict) else entry
            self._check_level(factor, name, place)
            if self._known(factor, name) in [self._known(factor, other) for other in names]:
                raise file.error("given twice", place, value=name)
            names.append(name)
        if len(names) > MOST_LEVELS:
            raise file.error("too many levels", (field,), value=len(names), allowed=f"up to {MOST_LEVELS}")
        return tuple(names)

    def _check_level(self, factor: str, name: Any, place: Place) -> None:
        if isinstance(name, str) and design.is_level(factor, name):
            return
        allowed: Iterable[str] = closest_first(str(name), design.allowed_levels(factor))
        if factor == "strategy":
            allowed = design.STRATEGY_RULE
        raise self._file.error(f"unknown {factor}", place, value=name, allowed=allowed)

    @staticmethod
    def _known(factor: str, name: str) -> object:
        """What makes two levels the same: 'tp2ep4' and 'tp2ep4dp1' are."""
        return design.parse_degrees(name) if factor == "strategy" else name

    def _list(self, field: str) -> list[Any]:
        given = self._file.data[field]
        if not isinstance(given, list):
            raise self._file.error("not a list", (field,), value=given, allowed="[first, second, ...]")
        if not given:
            raise self._file.error("the list is empty", (field,), allowed="at least one entry")
        return given

    def _texts(self, field: str) -> Iterator[str]:
        for position, pattern in enumerate(self._list(field) if field in self._file.data else ()):
            if not isinstance(pattern, str):
                raise self._file.error("not a shell pattern", (field, position), value=pattern)
            yield pattern

    def _check_count(self, study: StudyDesign) -> None:
        count = math.prod(map(len, (*study.variants.values(), *study.levels.values())))
        if count > MOST_RUNS:
            raise self._file.error("too many runs", value=count, allowed=f"up to {MOST_RUNS}")

    def _check_runs(self, study: StudyDesign) -> None:
        keys = [str(key) for key in study.all_keys]
        for field, patterns in (("include", study.include), ("exclude", study.exclude)):
            for position, pattern in enumerate(patterns):
                if not any(matches(key, [pattern]) for key in keys):
                    raise self._file.error(
                        "matches no run",
                        (field, position),
                        value=pattern,
                        allowed=f"patterns on keys such as {keys[0]}",
                    )
        if not study.keys:
            raise self._file.error("no run is left", ("exclude" if study.exclude else "include",))
        longest = max(map(str, study.keys), key=len)
        if len(longest.encode()) > LONGEST_KEY_BYTES:
            raise self._file.error(
                f"a run key of {len(longest.encode())} bytes; shorten names, or name the levels of variants",
                value=longest,
                allowed=f"up to {LONGEST_KEY_BYTES} bytes",
            )

    def _check_levels(self, study: StudyDesign) -> None:
        """Every strategy has GPUs enough on every topology that it meets."""
        # The delay of external links has no part in how many GPUs there are.
        gpus = {name: topology.build(name, external_delay_ns=1).hosts for name in study.levels["topology"]}
        for name, strategy in dict.fromkeys((key.topology, key.strategy) for key in study.keys):
            ranks = design.parse_degrees(strategy).ranks
            if ranks > gpus[name]:
                raise self._file.error(
                    f"{strategy} needs {ranks} GPUs and {name} has {gpus[name]}",
                    ("strategies",),
                    value=strategy,
                    allowed=f"up to {gpus[name]} ranks, or exclude: ['*/{name}/{strategy}/*']",
                )

    def _check_models(self, study: StudyDesign) -> None:
        """Every model loads, has the layers that its runs ask for, and can be divided as they do."""
        models = {name: load_model(name) for name in study.levels["model"]}
        for name, strategy, variant in dict.fromkeys((k.model, k.strategy, k.variant) for k in study.keys):
            layers = study.of_variant(variant).layers
            self._check_layers(study, models[name], layers)
            self._check_division(models[name], strategy, models[name].layers_run(layers))

    def _check_layers(self, study: StudyDesign, model: Model, layers: int | None) -> None:
        if layers is not None and layers > model.counted_layers:
            kind = "MoE layers" if model.has_experts else "layers"
            raise self._file.error(
                f"{model.name} has {model.counted_layers} {kind}",
                settings.place_of(study, "layers"),
                value=layers,
                allowed=f"1 to {model.counted_layers}",
            )

    def _check_division(self, model: Model, strategy: str, layers: int) -> None:
        degrees = design.parse_degrees(strategy)
        wrong = ""
        if degrees.pp > layers:
            wrong = f"{strategy} has {degrees.pp} stages and {model.name} runs {layers} layers"
        if model.has_experts and degrees.ep > model.routed_experts:
            wrong = (
                f"{strategy} has {degrees.ep} EP ranks and {model.name} has {model.routed_experts} experts"
            )
        if wrong:
            hint = f"fewer, or exclude: ['{model.name}/*/{strategy}/*']"
            raise self._file.error(wrong, ("strategies",), value=strategy, allowed=hint)
