"""Joins results files with runs of one study, as if one sweep had made them all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py

from hpcmoe.design import RunKey
from hpcmoe.errors import InputError
from hpcmoe.store import join as store
from hpcmoe.store import open_results, schema
from hpcmoe.store.committed import needs_merge
from hpcmoe.store.layout import FileSpec
from hpcmoe.store.merge import all_sessions
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.reader import Results, open_checked
from hpcmoe.sweep.arguments import Options
from hpcmoe.sweep.comm import SerialComm
from hpcmoe.sweep.lock import exclusive, holder
from hpcmoe.sweep.plan import file_spec, shown
from hpcmoe.sweep.session import describe_session
from hpcmoe.sweep.stored import stored_options

_PROGRAM = ("hpcmoe_version", "git_sha", "build_flags")


def join(out: Path, paths: Sequence[Path]) -> None:
    """Write `out` with the runs of all files, in run-key order; runs that none has finished are missing.

    Raises InputError when `out` is there, when the files are not parts of one study, made by one program,
    or one of them still has traces to merge; StorageError when `out` cannot be written.
    """
    _check_new(out)
    _check_distinct(paths)
    with ExitStack() as held:
        parts = [held.enter_context(open_results(path)) for path in paths]
        for part in parts:
            _check_complete(part)
            _check_alike(part, parts[0])
        options = _of_all(out, parts)
        opened = {path: held.enter_context(open_checked(path)) for path in paths}
        files = [store.Part(path, file) for path, file in opened.items()]
        held.enter_context(exclusive(ResultPaths(out)))
        store.join(out, _spec(options, files, parts[0]), files, _sessions(opened))


def _sessions(opened: Mapping[Path, h5py.File]) -> list[dict[str, Any]]:
    """Those of all files by time, each once: a file that was joined before has those of its parts."""
    found = itertools.chain(*(all_sessions(file, ResultPaths(path)) for path, file in opened.items()))
    distinct = {json.dumps(session, sort_keys=True): session for session in found}
    return sorted(distinct.values(), key=lambda session: str(session["started"]))


def _check_new(out: Path) -> None:
    if out.exists():
        raise InputError("exists already; name another file or remove it", file=out)
    if (spool := ResultPaths(out).spool).exists():
        raise InputError("is left from an earlier file of that name; remove it or name another", file=spool)


def _check_distinct(paths: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise InputError("is named twice", file=path)
        seen.add(path.resolve())


def _check_complete(part: Results) -> None:
    """Nothing of the part is outside of it, and it is what its selection says."""
    formats = [".".join(map(str, pair)) for pair in (part.attrs["format_version"], schema.FORMAT_VERSION)]
    if formats[0] != formats[1]:
        raise InputError(
            "only the hpcmoe that wrote this file can join it",
            file=part.path,
            field="format_version",
            value=formats[0],
            allowed=formats[1],
        )
    if part.imports():
        raise InputError("holds imported runs, and only those of sweeps are joined", file=part.path)
    if holder(ResultPaths(part.path)) is not None:
        raise InputError("a sweep is writing this file; wait for it, or stop it first", file=part.path)
    if needs_merge(part.path):
        raise InputError(
            f"traces of finished runs are still in its spool: 'hpcmoe merge {part.path}' takes them in",
            file=part.path,
        )
    try:
        selected = set(map(str, stored_options(part).keys()))
    except InputError as error:
        raise InputError(f"its runs have no meaning here: {error}", file=part.path) from None
    if selected != set(part.runs["key"].tolist()):
        raise InputError(
            "this hpcmoe takes other runs for that selection than the file has: join it by the one that "
            "wrote it",
            file=part.path,
            field="select",
            value=" ".join(part.design["select"]),
        )


def _check_alike(part: Results, first: Results) -> None:
    ours, theirs = _facts(part), _facts(first)
    for name in {**theirs, **ours}:
        if ours.get(name) != theirs.get(name):
            told = not name.startswith("study")  # a definition is too long to show
            raise InputError(
                f"not as in {first.path}; parts are made by one program for one study",
                file=part.path,
                field=name,
                value=shown(ours[name]) if told else None,
                allowed=shown(theirs[name]) if told else None,
            )


def _facts(part: Results) -> Mapping[str, Any]:
    """What parts have in common, by name. A title may differ, as when a sweep is continued."""
    study = {f"study: {name}": value for name, value in part.design.get("study", {}).items()}
    study.pop("study: title", None)
    made = stored_options(part)
    return {
        **{name: part.attrs[name] for name in _PROGRAM},
        "study": "study" in part.design,
        **study,
        "tokens": made.tokens,
        "layers": made.layers,
        "overrides": dict(made.overrides),
        "traces": made.traces,
        "placement": made.placement.to_json(),
    }


def _of_all(out: Path, parts: Sequence[Results]) -> Options:
    """Options of the one sweep: the selections of all parts, in the order of their runs."""
    given = [stored_options(part) for part in parts]
    every = replace(given[0], file=out, select=tuple(itertools.chain(*(one.select for one in given))))
    places = {str(key): place for place, key in enumerate(every.keys())}
    first = {one.file: min(map(places.__getitem__, part.runs["key"].tolist()))
             for one, part in zip(given, parts, strict=True)}  # fmt: skip
    ordered = sorted(given, key=lambda one: first[one.file])
    return replace(every, select=tuple(dict.fromkeys(itertools.chain(*(one.select for one in ordered)))))


def _spec(options: Options, parts: Sequence[store.Part], first: Results) -> FileSpec:
    def shape(key: RunKey) -> tuple[int, int]:
        """Rows of ranks and links, by the part that has the run finished if there is one."""
        known = [part for part in parts if str(key) in part.numbers]
        part = next((part for part in known if part.finished(str(key))), known[0])
        row = part.runs[part.numbers[str(key)]]
        return int(row["rank_count"]), int(row["link_count"])

    software = {name: first.attrs[name] for name in _PROGRAM}
    return file_spec(options, options.keys(), shape, software, describe_session(SerialComm()))
