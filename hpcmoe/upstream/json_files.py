"""system.json, the logical topology, remote memory and communicator groups."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcmoe.errors import InputError
from hpcmoe.json_input import read_object
from hpcmoe.parameters import PARAMETERS, SYSTEM_NAMES, Parameter, Value

RING, DIRECT, HALVING_DOUBLING, DOUBLE_BINARY_TREE = range(4)
Implementation = tuple[int, int, bool]  # algorithm, window (-1 unlimited), one dimension over all ranks

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_NAMES = {
    "ring": RING,
    "direct": DIRECT,
    "halvingDoubling": HALVING_DOUBLING,
    "doubleBinaryTree": DOUBLE_BINARY_TREE,
}
_ALLOWED = (
    "ring, direct, direct<k>, halvingDoubling, doubleBinaryTree, oneRing, oneDirect[k], oneHalvingDoubling"
)
_IMPLEMENTATION = re.compile(r"(?:(ring|halvingDoubling|doubleBinaryTree)|direct(\d{1,5})?)")
_ONE_DIM = re.compile(r"one(Ring|Direct|HalvingDoubling)(\d{1,5})?")

# Keys whose value upstream compares with the number 0, so that anything else, false too, is on.
_NUMBER_FLAGS = ("roofline-enabled", "replay-only")
# Keys that upstream or its examples have and that change no simulated time.
_IGNORED = (
    "boost-mode", "intra-dimension-scheduling", "inter-dimension-scheduling", "trace-enabled",
    "track-local-mem", "local-mem-trace-filename",
)  # fmt: skip
_MEMORY_FIELDS = ("memory_type", "remote_mem_latency_ns", "remote_mem_bw_gbps", "memory_npus_per_node")


@dataclass
class SystemConfig:
    """What a system.json says: our parameters by name (only those given) and the algorithms."""

    values: dict[str, Value] = field(default_factory=dict)
    implementations: dict[str, list[Implementation]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def parse_implementation(
    text: Any, *, file: str | Path | None = None, field: str | None = None
) -> Implementation:
    """(algorithm, window, one_dim) of an algorithm name."""
    one = _ONE_DIM.fullmatch(text) if isinstance(text, str) else None
    name = one.group(1)[0].lower() + one.group(1)[1:] + (one.group(2) or "") if one else text
    match = _IMPLEMENTATION.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise InputError("unknown algorithm", file=file, field=field, value=text, allowed=_ALLOWED)
    if match.group(2) is not None and int(match.group(2)) == 0:
        raise InputError(
            "a window of 0 never sends", file=file, field=field, value=text, allowed="direct1 and up"
        )
    algorithm = _NAMES[match.group(1)] if match.group(1) else DIRECT
    window = -1 if match.group(2) is None else int(match.group(2))
    return algorithm, window, one is not None


def format_implementation(implementation: Implementation) -> str:
    """Upstream's name of an algorithm."""
    algorithm, window, one_dim = implementation
    name = next(name for name, value in _NAMES.items() if value == algorithm)
    name += str(window) if window >= 0 else ""
    return "one" + name[0].upper() + name[1:] if one_dim else name


def read_system(path: str | Path) -> SystemConfig:
    """Unknown keys are ignored, as upstream does, with a warning."""
    data = read_object(path, "system configuration")
    config = SystemConfig()
    for name in SYSTEM_NAMES:
        parameter = PARAMETERS[name]
        if parameter.upstream_key in data and name not in _MEMORY_FIELDS:
            value = data[parameter.upstream_key]
            config.values[name] = _system_value(parameter, value, path, config.warnings)
    for collective in COLLECTIVES:
        key = f"{collective.replace('_', '-')}-implementation"
        _refuse_custom(data, f"{key}-custom", path)
        if key in data:
            config.implementations[collective] = _implementations(data[key], path, key)
    _refuse_custom(data, "per-node-custom-implementation", path)
    config.warnings += [
        f"{path}: {key[:80]}: unknown key, ignored" for key in data if key not in _system_keys()
    ]
    return config


def _system_keys() -> set[str]:
    scalars = {str(PARAMETERS[name].upstream_key) for name in SYSTEM_NAMES if name not in _MEMORY_FIELDS}
    return (
        scalars
        | {f"{collective.replace('_', '-')}-implementation" for collective in COLLECTIVES}
        | set(_IGNORED)
    )


def _refuse_custom(data: Mapping[str, Any], key: str, path: str | Path) -> None:
    if key in data:
        raise InputError("custom collective algorithms are not simulated", file=path, field=key)


def _system_value(parameter: Parameter, value: Any, path: str | Path, warnings: list[str]) -> Value:
    key = parameter.upstream_key
    if key in _NUMBER_FLAGS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            warnings.append(f"{path}: {key}: only the number 0 switches it off, {json.dumps(value)} is on")
            return True
        return value != 0
    if key == "model-shared-bus":
        return value == 1 and not isinstance(value, bool)
    if parameter.choices is not None:
        if not isinstance(value, str) or value not in parameter.choices:
            names = ", ".join(parameter.choices)
            raise InputError("bad value", file=path, field=key, value=value, allowed=names)
        return parameter.choices[value]
    return parameter.check(value, file=str(path), field=key)


def _implementations(value: Any, path: str | Path, key: str) -> list[Implementation]:
    if not isinstance(value, list) or not value:
        raise InputError("not an array of names", file=path, field=key, value=value, allowed=_ALLOWED)
    parsed = [parse_implementation(text, file=path, field=key) for text in value]
    # The "one..." forms are a single dimension over all ranks; the rest of the array is ignored.
    return parsed[:1] if parsed[0][2] else parsed


def write_system(
    path: str | Path, values: Mapping[str, Value], implementations: Mapping[str, list[Implementation]]
) -> None:
    """A system.json with every key that upstream reads."""
    data: dict[str, Any] = {}
    for name in SYSTEM_NAMES:
        parameter = PARAMETERS[name]
        if parameter.upstream_key and name not in _MEMORY_FIELDS:
            data[parameter.upstream_key] = _json_value(parameter, values[name])
    for collective in COLLECTIVES:
        if collective in implementations:
            names = [format_implementation(entry) for entry in implementations[collective]]
            data[f"{collective.replace('_', '-')}-implementation"] = names
    _write_json(path, data)


def _json_value(parameter: Parameter, value: Value) -> Any:
    if parameter.choices is not None:
        return next(name for name, number in parameter.choices.items() if number == value)
    if parameter.kind == "bool":
        return int(value)
    return int(value) if float(value).is_integer() else value


def read_logical_dims(path: str | Path) -> tuple[int, ...]:
    """``{"logical-dims": ["2", "16"]}``; dimension 0 varies fastest over the ranks."""
    dims = read_object(path, "logical topology").get("logical-dims")
    if not isinstance(dims, list) or not dims:
        raise InputError(
            "not a list of sizes", file=path, field="logical-dims", value=dims, allowed='such as ["2", "16"]'
        )
    for size in dims:
        if isinstance(size, bool) or not re.fullmatch(r"[1-9]\d{0,8}", str(size)):
            raise InputError(
                "bad size", file=path, field="logical-dims", value=size, allowed="integers from 1"
            )
    return tuple(int(size) for size in dims)


def write_logical_dims(path: str | Path, dims: tuple[int, ...]) -> None:
    _write_json(path, {"logical-dims": [str(size) for size in dims]})


def read_memory(path: str | Path) -> dict[str, Value]:
    """Remote memory parameters by our names. Fractions are dropped, as upstream does."""
    data = read_object(path, "remote memory configuration")
    if "memory-type" not in data:
        raise InputError(
            "missing",
            file=path,
            field="memory-type",
            allowed=", ".join(PARAMETERS["memory_type"].choices or {}),
        )
    values: dict[str, Value] = {}
    for name in _MEMORY_FIELDS:
        parameter = PARAMETERS[name]
        key = parameter.upstream_key
        if key in data:
            value = data[key]
            value = int(value) if isinstance(value, float) and abs(value) < 2**63 else value
            values[name] = _system_value(parameter, value, path, [])
    _check_memory(values, data, path)
    return values


def _check_memory(values: Mapping[str, Value], data: Mapping[str, Any], path: str | Path) -> None:
    kind = data["memory-type"]
    if values["memory_type"] == 0:
        return
    if not values.get("remote_mem_bw_gbps"):
        raise InputError(
            f"{kind} needs a bandwidth",
            file=path,
            field="remote-mem-bw",
            value=data.get("remote-mem-bw"),
            allowed="integers from 1",
        )
    if kind == "PER_NODE_MEMORY_EXPANSION" and "memory_npus_per_node" not in values:
        raise InputError(f"{kind} needs it", file=path, field="num-npus-per-node", allowed="integers from 1")


def write_memory(path: str | Path, values: Mapping[str, Value]) -> None:
    fields = _MEMORY_FIELDS if values["memory_type"] else _MEMORY_FIELDS[:1]
    data = {str(PARAMETERS[n].upstream_key): _json_value(PARAMETERS[n], values[n]) for n in fields}
    _write_json(path, data)


def read_groups(path: str | Path) -> dict[int, list[int]]:
    """Communicator groups ``{"1": [0, 1]}``; a path that contains 'empty' means none, as upstream has it."""
    if "empty" in str(path):
        return {}
    groups: dict[int, list[int]] = {}
    for name, members in read_object(path, "communicator groups").items():
        if not re.fullmatch(r"[1-9]\d{0,8}", name):
            raise InputError("bad group id", file=path, field=name, allowed="integers from 1")
        if not isinstance(members, list) or not all(type(rank) is int and rank >= 0 for rank in members):
            raise InputError("not a list of ranks", file=path, field=f"group {name}", value=members)
        groups[int(name)] = members
    return groups


def _write_json(path: str | Path, data: Any) -> None:
    Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
