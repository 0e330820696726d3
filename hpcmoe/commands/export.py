"""``hpcmoe trace`` and ``hpcmoe export``."""

from __future__ import annotations

import argparse
from pathlib import Path

from hpcmoe.commands import common
from hpcmoe.export import export_scenario, write_traces


def trace(arguments: argparse.Namespace) -> int:
    scenario = common.key_scenario(arguments)
    directory = _directory(arguments.directory)
    write_traces(scenario, directory)
    print(f"{directory}: {scenario.ranks} traces of {len(scenario.traces[0])} nodes")
    return 0


def export(arguments: argparse.Namespace) -> int:
    scenario = common.key_scenario(arguments)
    common.warn(scenario)
    directory = _directory(arguments.directory)
    names = export_scenario(scenario, directory)
    print(f"{directory}: {', '.join(names)} and {scenario.ranks} traces")
    return 0


def _directory(path: str) -> Path:
    directory = Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise common.output_error(directory, error) from error
    return directory
