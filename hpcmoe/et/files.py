"""Finds trace files by prefix or by name, and reads their messages unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcmoe import chakra
from hpcmoe.chakra_schema import COLLECTIVE_TYPES, NODE_TYPES
from hpcmoe.errors import InputError

_RANK = re.compile(r"\.(\d{1,6})\.et$")


@dataclass(frozen=True)
class RawTrace:
    """One file as it stands: its GlobalMetadata message and its Node messages in file order."""

    path: Path
    rank: int
    metadata: Any
    nodes: list[Any]


def find(names: Iterable[str]) -> dict[int, Path]:
    """Files by rank, from file names and prefixes. A file without a rank in its name gets the next free one.

    InputError for a name that is neither a file nor a prefix of one, and for two files of one rank.
    """
    found: dict[int, Path] = {}
    for name in names:
        path = Path(name)
        files = {_rank_of(path, found): path} if path.is_file() else of_prefix(name)
        for rank, file in files.items():
            if rank in found:
                raise InputError(f"a second trace of rank {rank}, beside {found[rank]}", file=file)
            found[rank] = file
    return dict(sorted(found.items()))


def of_prefix(prefix: str) -> dict[int, Path]:
    """The files ``<prefix>.<rank>.et`` by rank. InputError when there is none."""
    start = Path(prefix)
    if start.is_dir():
        raise InputError("a folder: give the traces' prefix", file=prefix, allowed=f"{prefix.rstrip('/')}/et")
    files: dict[int, Path] = {}
    for path in start.parent.glob("*.et"):
        match = _RANK.search(path.name)
        if match and path.name == f"{start.name}.{int(match.group(1))}.et":
            files[int(match.group(1))] = path
    if not files:
        raise InputError(f"neither a trace nor the prefix of one: no {prefix}.0.et", file=prefix)
    return dict(sorted(files.items()))


def _rank_of(path: Path, taken: Iterable[int]) -> int:
    match = _RANK.search(path.name)
    return int(match.group(1)) if match else max(taken, default=-1) + 1


def read(path: Path, rank: int) -> RawTrace:
    """InputError when the file is no trace at all."""
    return RawTrace(path, rank, *chakra.read_messages(path))


def attributes(message: Any) -> dict[str, Any]:
    """Attributes of a node or of the metadata as Python values; as in the simulator the first of a name
    counts. An attribute without a value is None."""
    values: dict[str, Any] = {}
    for attribute in message.attr:
        values.setdefault(attribute.name, _value(attribute))
    return values


def _value(attribute: Any) -> Any:
    kind = attribute.WhichOneof("value")
    if kind is None:
        return None
    value = getattr(attribute, kind)
    return list(value.values) if kind.endswith("_list") else value


def plain(value: Any) -> Any:
    """An attribute's value for JSON: bytes as hexadecimal digits."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def kind_of(attribute: Any) -> str:
    """'int64', 'bool_list', ...: the kind of an attribute's value."""
    return (attribute.WhichOneof("value") or "no value").removesuffix("_val")


def type_name(number: int) -> str:
    """COMP, COMM_COLL, ...: a node type without '_NODE'; 'type 9' for one that the schema lacks."""
    return NODE_TYPES[number].removesuffix("_NODE") if number < len(NODE_TYPES) else f"type {number}"


def collective_name(number: Any) -> str:
    """ALL_REDUCE, ...; the value itself where it names no collective."""
    if isinstance(number, int) and 0 <= number < len(COLLECTIVE_TYPES):
        return COLLECTIVE_TYPES[number]
    return f"type {number}"


def integer(values: dict[str, Any], name: str) -> int:
    """An attribute as a number; 0 when it is missing or is none."""
    value = values.get(name)
    return int(value) if isinstance(value, int) else 0
