"""What the runs of a study share, and its variants: counts of the workload and parameters by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpcmoe import design, parameters
from hpcmoe.errors import InputError, closest_first
from hpcmoe.overrides import ECN, EXTERNAL_DELAY, ROUTING, Overrides
from hpcmoe.placement import NAMES, parse
from hpcmoe.studyfile.definition import COUNTS, PLACEMENT, Level, Setting, StudyDesign
from hpcmoe.yaml_input import Place, YamlFile

LEVEL_RULE = "letters, digits and _ . + -"
_LEVEL = re.compile(r"[A-Za-z0-9_.+-]+")
_VARIANT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NO_SCALARS = (ECN, EXTERNAL_DELAY, ROUTING)
_LARGEST = 2**31 - 1
_OFFERED = 8


def shared(file: YamlFile) -> dict[str, Setting]:
    """Counts and parameters for all runs."""
    found: dict[str, Setting] = {
        name: count(file, (name,), file.data[name]) for name in COUNTS if name in file.data
    }
    if PLACEMENT in file.data:
        found[PLACEMENT] = placement_of(file, (PLACEMENT,), file.data[PLACEMENT])
    if "set" in file.data:
        found.update(parameter_texts(file, ("set",), file.data["set"]))
    return found


def count(file: YamlFile, place: Place, value: Any) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
        raise file.error("bad value", place, value=value, allowed=f"integers from 1 to {_LARGEST}")
    return value


def placement_of(file: YamlFile, place: Place, given: Any) -> str | list[int | str]:
    """A placement's name, or the hosts that its file lists; file names are relative to the study file."""
    if not isinstance(given, str):
        raise file.error("not a placement", place, value=given, allowed=(*NAMES, "the name of a file"))
    beside = file.path.parent / Path(given).expanduser()
    try:
        return parse(beside if given not in NAMES and beside.is_file() else given).to_json()
    except InputError as error:
        where = f"{error.file}: " if error.file else ""
        raise file.error(where + error.message, place, value=error.value, allowed=error.allowed) from None


def parameter_texts(file: YamlFile, place: Place, given: Any) -> dict[str, str]:
    """A mapping of parameters to values, each checked and as text in one form."""
    if not isinstance(given, dict):
        raise file.error("not a mapping", place, value=given, allowed="name: value")
    return {name: parameter_text(file, (*place, name), name, value) for name, value in given.items()}


def parameter_text(file: YamlFile, place: Place, name: str, value: Any) -> str:
    """The value of one parameter as text, the same for all ways to write it."""
    if isinstance(value, list | dict) or value is None:
        raise file.error("not a value", place, value=value)
    try:
        if name == ROUTING:
            return _file_beside(file, place, value)
        if name in (ECN, EXTERNAL_DELAY):
            changes = Overrides({name: str(value)})
            changes.ecn([])
            changes.external_delay_ns(0)
            return str(value)
        parameter = parameters.find(name, extra=_NO_SCALARS)
        typed = parameter.parse(value) if isinstance(value, str) else parameter.check(value)
    except InputError as error:
        raise file.error(error.message, place, value=error.value, allowed=error.allowed) from None
    return parameter.text(typed)


def _file_beside(file: YamlFile, place: Place, value: Any) -> str:
    """The whole path of a file that is named relative to the study file."""
    path = file.path.parent / Path(str(value)).expanduser()
    if not path.is_file():
        raise file.error("no such file", place, value=str(path))
    return str(path.absolute())


def variants(file: YamlFile, base: Mapping[str, Setting]) -> dict[str, tuple[Level, ...]]:
    """The levels of every further factor."""
    given = file.data.get("variants", {})
    if not isinstance(given, dict):
        raise file.error("not a mapping", ("variants",), value=given, allowed="name: [level, ...]")
    found: dict[str, tuple[Level, ...]] = {}
    for name, levels in given.items():
        place = ("variants", name)
        if not _VARIANT.fullmatch(name) or name in design.FACTORS:
            raise file.error(
                "not a name for a variant", place, value=name, allowed="a letter, then a-z 0-9 _ -"
            )
        if not isinstance(levels, list) or not levels:
            raise file.error("not a list with at least one level", place, value=levels)
        found[name] = tuple(_level(file, (*place, i), name, level) for i, level in enumerate(levels))
        _check_once(file, place, found[name])
    _check_homes(file, base, found)
    return found


def _level(file: YamlFile, place: Place, name: str, given: Any) -> Level:
    if not isinstance(given, dict):
        setting = _setting(file, place, name, given)
        shown = str(given if name in (PLACEMENT, ROUTING) else setting)
        _check_text(file, place, shown)
        return Level(shown, {name: setting})
    text = given.get("name")
    if sorted(given) != ["name", "set"] or not isinstance(text, str):
        raise file.error("not a level", place, value=given, allowed="a value, or {name: text, set: {...}}")
    _check_text(file, (*place, "name"), text)
    if not isinstance(given["set"], dict):
        raise file.error("not a mapping", (*place, "set"), value=given["set"], allowed="name: value")
    made = {key: _setting(file, (*place, "set", key), key, value) for key, value in given["set"].items()}
    return Level(text, made)


def _setting(file: YamlFile, place: Place, name: str, value: Any) -> Setting:
    if name in COUNTS:
        return count(file, place, value)
    if name == PLACEMENT:
        return placement_of(file, place, value)
    known = (*COUNTS, PLACEMENT, *parameters.PARAMETERS, *_NO_SCALARS)
    if name not in known:
        raise file.error(
            "unknown parameter", place, value=name, allowed=closest_first(name, known)[:_OFFERED]
        )
    return parameter_text(file, place, name, value)


def _check_text(file: YamlFile, place: Place, text: str) -> None:
    if not _LEVEL.fullmatch(text):
        raise file.error(
            "cannot stand in a run key; name the level: {name: text, set: {...}}",
            place,
            value=text,
            allowed=LEVEL_RULE,
        )


def _check_once(file: YamlFile, place: Place, levels: tuple[Level, ...]) -> None:
    seen: set[str] = set()
    for position, level in enumerate(levels):
        if level.name in seen:
            raise file.error("given twice", (*place, position), value=level.name)
        seen.add(level.name)


def _check_homes(file: YamlFile, base: Mapping[str, Setting], found: Mapping[str, tuple[Level, ...]]) -> None:
    """No setting is made by two variants, nor for all runs and by every level."""
    homes: dict[str, str] = {}
    for variant, levels in found.items():
        for setting in dict.fromkeys(name for level in levels for name in level.settings):
            if setting in homes:
                raise file.error(f"{setting} is set by {homes[setting]} already", ("variants", variant))
            homes[setting] = variant
            if setting in base and all(setting in level.settings for level in levels):
                raise file.error(f"{setting} is also set for all runs", ("variants", variant))


def check_tokens(file: YamlFile, study: StudyDesign) -> None:
    """Tokens are given directly, or as batch and sequence length; every run has them."""
    names = _names(study)
    pair = {"batch", "sequence_length"} & names
    if "tokens" in names and pair:
        raise file.error("given beside tokens", place_of(study, min(pair)), allowed="either one or the other")
    for name in ("batch", "sequence_length") if pair else ("tokens",):
        if not _everywhere(study, name):
            where = f"beside {min(pair)}" if pair else ""
            raise file.error(
                f"{name} is missing {where}".rstrip(),
                place_of(study, min(pair or {name})),
                allowed="for all runs, or in every level of a variant; tokens, or batch and sequence_length",
            )
    for text in study.variant_texts:
        tokens = study.of_variant(text).tokens
        if tokens > _LARGEST:
            raise file.error("too many tokens", ("batch",), value=tokens, allowed=f"up to {_LARGEST}")


def _names(study: StudyDesign) -> set[str]:
    levels = [level for found in study.variants.values() for level in found]
    return set(study.settings).union(*(level.settings for level in levels))


def _everywhere(study: StudyDesign, name: str) -> bool:
    return name in study.settings or any(
        all(name in level.settings for level in levels) for levels in study.variants.values()
    )


def place_of(study: StudyDesign, name: str) -> Place:
    """Where the file gives a setting."""
    if name in study.settings or not study.variants:
        return (name,) if name in COUNTS else ("set", name)
    return next(
        (("variants", variant) for variant, levels in study.variants.items() if _sets(levels, name)), (name,)
    )


def _sets(levels: Iterable[Level], name: str) -> bool:
    return any(name in level.settings for level in levels)
