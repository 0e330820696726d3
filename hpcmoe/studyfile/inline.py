"""Catalog entries that a study file defines itself: a mapping with a name in place of a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcmoe import catalog, parameters, topology_file
from hpcmoe.errors import InputError, closest_first
from hpcmoe.json_input import read_object
from hpcmoe.model import model_from_config
from hpcmoe.overrides import EXTERNAL_DELAY
from hpcmoe.studyfile import settings
from hpcmoe.upstream.json_files import COLLECTIVES, parse_implementation
from hpcmoe.yaml_input import Place, YamlFile

_MOST_DIMS = 4


def definitions(file: YamlFile) -> dict[str, dict[str, Any]]:
    """Entries by kind and name, as the catalog has them."""
    catalog.define({}, file.path)  # those of an earlier study do not count
    found: dict[str, dict[str, Any]] = {}
    for kind, make in _MAKERS.items():
        listed = file.data.get(kind)
        for position, entry in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(entry, dict):
                place = (kind, position)
                name = _name(file, place, kind, entry)
                if name in found.setdefault(kind, {}):
                    raise file.error("given twice", place, value=name)
                found[kind][name] = make(file, place, entry)
    if isinstance(strategies := file.data.get("strategies"), list):
        for position, entry in enumerate(strategies):
            if isinstance(entry, dict):
                raise file.error("a strategy is a name", ("strategies", position), value=entry)
    return found


def _name(file: YamlFile, place: Place, kind: str, entry: dict[str, Any]) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not catalog.is_name(name):
        raise file.error("not a name", (*place, "name"), value=name, allowed=catalog.NAME_RULE)
    if name in catalog.names(kind):
        raise file.error(f"the catalog's {kind} have this name already; choose another", place, value=name)
    return name


def _fields(file: YamlFile, place: Place, entry: dict[str, Any], known: tuple[str, ...], need: int) -> None:
    """InputError for a field that is not ``known``, and when one of the first ``need`` is missing."""
    for field in entry:
        if field not in known:
            raise file.error(
                "unknown field", (*place, field), value=field, allowed=closest_first(field, known)
            )
    for field in known[:need]:
        if field not in entry:
            raise file.error("missing", (*place, field), allowed=known)


def _model(file: YamlFile, place: Place, entry: dict[str, Any]) -> dict[str, Any]:
    """A Hugging Face config.json."""
    _fields(file, place, entry, ("name", "config"), 2)
    path = _path(file, (*place, "config"), entry["config"])
    model_from_config(path)  # says what is wrong with it
    config = read_object(path, "model")
    return {
        "title": str(config.get("model_type", entry["name"])),
        "config": config,
        "all_reduces_per_layer": 2,
    }


def _topology(file: YamlFile, place: Place, entry: dict[str, Any]) -> dict[str, Any]:
    """A topology file, in the catalog's format or as a list of links."""
    _fields(file, place, entry, ("name", "file", "gpus_per_server"), 2)
    path = _path(file, (*place, "file"), entry["file"])
    per_server = entry.get("gpus_per_server")
    if per_server is not None:
        per_server = settings.count(file, (*place, "gpus_per_server"), per_server)
    made = topology_file.entry_of_file(path, per_server)
    topology_file.parse(made, str(path))
    return made


def _path(file: YamlFile, place: Place, value: Any) -> Path:
    """A path, relative to the study file."""
    if not isinstance(value, str) or not value:
        raise file.error("not a file name", place, value=value)
    path = file.path.parent / Path(value).expanduser()
    if not path.is_file():
        raise file.error("no such file", place, value=str(path))
    return path


def _collective(file: YamlFile, place: Place, entry: dict[str, Any]) -> dict[str, Any]:
    """An algorithm per logical dimension [TP, EP, DP, PP]; what is not given is as the all-reduce."""
    known = dict.fromkeys(("name", "all_reduce", "all_to_all", *COLLECTIVES))
    _fields(file, place, entry, tuple(known), 3)
    made: dict[str, Any] = {"title": entry["name"], "study": False}
    for name in COLLECTIVES:
        made[name] = _algorithms(file, (*place, name), entry.get(name, entry["all_reduce"]))
        if len(made[name]) != len(made[COLLECTIVES[0]]):
            raise file.error("lists of different lengths", (*place, name), value=made[name])
    return made


def _algorithms(file: YamlFile, place: Place, given: Any) -> list[str]:
    if not isinstance(given, list) or not 2 <= len(given) <= _MOST_DIMS:
        raise file.error(
            "not a list with an algorithm per logical dimension",
            place,
            value=given,
            allowed="2 to 4 of them: [TP, EP, DP, PP]",
        )
    for text in given:
        try:
            parse_implementation(text)
        except InputError as error:
            raise file.error(error.message, place, value=error.value, allowed=error.allowed) from None
    return given


def _network(file: YamlFile, place: Place, entry: dict[str, Any]) -> dict[str, Any]:
    """A mode of the catalog with other values of network parameters."""
    _fields(file, place, entry, ("name", "base", "set"), 3)
    bases = catalog.names("networks")
    if entry["base"] not in bases:
        raise file.error(
            "unknown network",
            (*place, "base"),
            value=entry["base"],
            allowed=closest_first(str(entry["base"]), bases),
        )
    base = catalog.load("networks", entry["base"])
    changes = settings.parameter_texts(file, (*place, "set"), entry["set"])
    delay = changes.pop(EXTERNAL_DELAY, base["external_delay"])
    for name in changes:
        if name not in parameters.NETWORK_NAMES:
            raise file.error(
                "no network parameter: set it for the whole study, or as a variant", (*place, "set", name)
            )
    return {
        "title": entry["name"],
        "about": f"{entry['base']} with " + ", ".join(f"{name}={text}" for name, text in changes.items()),
        "external_delay": delay,
        "parameters": {**base["parameters"], **changes},
    }


_MAKERS = {"models": _model, "topologies": _topology, "collectives": _collective, "networks": _network}
