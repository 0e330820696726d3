"""The catalog: models, topologies, network modes, collectives and study constants as YAML files.

Beside the entries that come with the package there are the user's own, in the folder that the environment
variable HPCMOE_CATALOG names, else in hpcmoe/catalog below the user's configuration folder
(XDG_CONFIG_HOME, else ~/.config). Both have one folder per kind and one file per entry. A study file may
define entries of its own, which last as long as the process. The study's own factor levels are listed in
``hpcmoe.design``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from hpcmoe import yaml_input
from hpcmoe.errors import InputError, closest_first

KINDS = ("models", "topologies", "networks", "collectives")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
NAME_RULE = "1 to 32 of a-z 0-9 _ . -, beginning with a letter or digit"


_defined: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}


def is_name(text: str) -> bool:
    """Whether an entry may be called so (NAME_RULE)."""
    return bool(_NAME.fullmatch(text))


def user_folder() -> Path:
    """Where the user's own entries are; it need not exist."""
    named = os.environ.get("HPCMOE_CATALOG")
    if named:
        return Path(named).expanduser()
    configuration = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(configuration).expanduser() / "hpcmoe" / "catalog"


def names(kind: str) -> tuple[str, ...]:
    """Names of all entries of a kind, sorted."""
    defined = (name for other, name in _defined if other == kind)
    return tuple(sorted({*built_in(kind), *_user_names(user_folder(), kind), *defined}))


@cache
def built_in(kind: str) -> tuple[str, ...]:
    """Names of the entries that come with the package, sorted."""
    entries = (files(__package__) / kind).iterdir()
    return tuple(sorted(entry.name[:-5] for entry in entries if entry.name.endswith(".yaml")))


@cache
def _user_names(folder: Path, kind: str) -> tuple[str, ...]:
    return tuple(path.stem for path in (folder / kind).glob("*.yaml") if is_name(path.stem))


def load(kind: str, name: str) -> dict[str, Any]:
    """One entry; callers do not change it. InputError lists the names if there is none of that name."""
    if name not in names(kind):
        raise InputError(
            f"unknown name in the catalog's {kind}", value=name, allowed=closest_first(name, names(kind))
        )
    if (kind, name) in _defined:
        return _defined[kind, name][0]
    return _load(file_of(kind, name))


def define(entries: Mapping[str, Mapping[str, Mapping[str, Any]]], file: Path) -> None:
    """Entries by kind and name that ``file`` (a study) brings along, in place of those of the last call."""
    _defined.clear()
    for kind, named in entries.items():
        _defined.update({(kind, name): (dict(entry), file) for name, entry in named.items()})


def file_of(kind: str, name: str) -> Path:
    """The file of an entry, for messages and for a look."""
    if (kind, name) in _defined:
        return _defined[kind, name][1]
    if name in built_in(kind):
        return Path(str(files(__package__) / kind / f"{name}.yaml"))
    return user_folder() / kind / f"{name}.yaml"


def add(kind: str, name: str, entry: Mapping[str, Any], *, replace: bool = False, about: str = "") -> Path:
    """Writes an entry of the user's own; ``about`` goes in front as a comment. Gives the file's path.

    InputError for a name that is no name, that the package has, or that exists while ``replace`` is not set.
    """
    if not is_name(name):
        raise InputError("not a name", field="name", value=name, allowed=NAME_RULE)
    if name in built_in(kind):
        raise InputError(f"the catalog's {kind} have this name already; choose another", value=name)
    path = user_folder() / kind / f"{name}.yaml"
    if path.exists() and not replace:
        raise InputError("exists already; choose another name or replace it", file=path, field="name")
    text = "".join(f"# {line}\n" for line in about.splitlines())
    text += yaml.safe_dump(dict(entry), sort_keys=False, allow_unicode=True, width=100)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    forget()
    return path


def remove(kind: str, name: str) -> Path:
    """Deletes an entry of the user's own and gives its path; InputError for a built-in one or none."""
    if name not in names(kind):
        raise InputError(
            f"unknown name in the catalog's {kind}", value=name, allowed=closest_first(name, names(kind))
        )
    if name in built_in(kind):
        raise InputError(f"one of the package's own {kind}, which stay", value=name)
    path = file_of(kind, name)
    path.unlink()
    forget()
    return path


def forget() -> None:
    """Read the user's folder anew at the next look."""
    _user_names.cache_clear()
    _load.cache_clear()


@cache
def study() -> dict[str, Any]:
    """Constants that all runs of the study share."""
    return _load(Path(str(files(__package__) / "study.yaml")))


@cache
def _load(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise InputError(f"not YAML: {error}", file=path) from error
    return yaml_input.parse(text, path).data
