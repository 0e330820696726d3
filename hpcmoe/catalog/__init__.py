"""The catalog: models, topologies, network modes, collectives and study constants as YAML files.

Adding a file adds an entry; the study's own factor levels are listed in ``hpcmoe.design``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from hpcmoe.errors import InputError, closest_first

KINDS = ("models", "topologies", "networks", "collectives")


@cache
def names(kind: str) -> tuple[str, ...]:
    """Names of all entries of a kind, sorted."""
    entries = (files(__package__) / kind).iterdir()
    return tuple(sorted(entry.name[:-5] for entry in entries if entry.name.endswith(".yaml")))


@cache
def load(kind: str, name: str) -> dict[str, Any]:
    """One entry; callers do not change it. InputError lists the names if there is none of that name."""
    if name not in names(kind):
        raise InputError(
            f"unknown name in the catalog's {kind}", value=name, allowed=closest_first(name, names(kind))
        )
    return _read(f"{kind}/{name}.yaml")


@cache
def study() -> dict[str, Any]:
    """Constants that all runs of the study share."""
    return _read("study.yaml")


def _read(path: str) -> dict[str, Any]:
    data = yaml.safe_load((files(__package__) / path).read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise InputError("not a mapping", file=f"catalog/{path}")
    return data
