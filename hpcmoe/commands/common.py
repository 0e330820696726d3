"""Shared by subcommands: the scenario of a key, JSON output, progress and the result table."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcmoe import parameters
from hpcmoe.errors import HpcmoeError
from hpcmoe.model import model_from_config
from hpcmoe.scenario import Scenario, scenario_from_key
from hpcmoe.studyfile import only_study

_PROGRESS_INTERVAL_S = 0.2


def key_scenario(arguments: argparse.Namespace, **defaults: str) -> Scenario:
    """The scenario of KEY and its options; ``defaults`` are parameters that the options may still change."""
    assignments = getattr(arguments, "assignments", [])
    model = model_from_config(arguments.model_config) if arguments.model_config else None
    if arguments.study:
        study = only_study(
            arguments.study, arguments.tokens, arguments.layers, assignments, arguments.placement
        )
        key = study.key(arguments.key)
        settings = study.of_run(key)
        settings = replace(settings, overrides={**defaults, **settings.overrides})
        return scenario_from_key(key, **vars(settings), model=model)
    return scenario_from_key(
        arguments.key,
        tokens=arguments.tokens,
        layers=arguments.layers,
        overrides={**defaults, **parameters.parse_overrides(assignments)},
        model=model,
        placement=arguments.placement,
    )


def warn(scenario: Scenario) -> None:
    """Prints the scenario's warnings, once."""
    for text in scenario.warnings:
        print(f"hpcmoe: warning: {text}", file=sys.stderr)


def write_text(path: str | Path, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise output_error(path, error) from error


def output_error(path: str | Path, error: OSError) -> HpcmoeError:
    failure = HpcmoeError(f"{path}: cannot write: {error.strerror}")
    failure.exit_code = 2
    return failure


def write_json(path: str | None, content: dict[str, Any]) -> None:
    """To a file, to standard output for '-', nowhere for None."""
    if path is None:
        return
    text = json.dumps(content, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        write_text(path, text)


def json_rank_rows(ranks: Any) -> list[dict[str, int]]:
    """Wall, GPU and communication time of each rank."""
    columns = ("rank", "wall_ns", "gpu_ns", "comm_ns")
    return [{name: int(row[name]) for name in columns} for row in ranks]


def progress_printer() -> Callable[[Any], None] | None:
    """Redraws one line on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None
    last = 0.0

    def show(info: Any) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PROGRESS_INTERVAL_S:
            last = now
            sys.stderr.write(f"\r\x1b[K{progress_text(info)}")
            sys.stderr.flush()

    return show


def progress_text(info: Any) -> str:
    return (
        f"{info.simulated_ns / 1e6:.3f} ms simulated, {info.finished_ranks}/{info.ranks} ranks finished, "
        f"{info.events / 1e6:.1f} M events, {info.seconds:.1f} s"
    )


def end_progress(progress: Callable[[Any], None] | None) -> None:
    """Clears the progress line."""
    if progress is not None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
