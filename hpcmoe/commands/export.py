"""``hpcmoe trace`` and ``hpcmoe export``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hpcmoe.commands import common
from hpcmoe.export import export_scenario, write_traces
from hpcmoe.scenario import Scenario


def _scenario(arguments: argparse.Namespace) -> Scenario:
    """Without barriers between layers unless asked for: ASTRA-sim refuses traces that have one."""
    scenario = common.key_scenario(arguments, layer_sync="none")
    if scenario.workload and not scenario.workload["layer_sync"] and scenario.traces[0].layer.max() > 0:
        print(
            "hpcmoe: note: written without barriers between layers, which ASTRA-sim does not know; "
            "'hpcmoe run' gives the same with --set layer_sync=none",
            file=sys.stderr,
        )
    return scenario


def trace(arguments: argparse.Namespace) -> int:
    scenario = _scenario(arguments)
    directory = _directory(arguments.directory)
    write_traces(scenario, directory)
    print(f"{directory}: {scenario.ranks} traces of {len(scenario.traces[0])} nodes")
    return 0


def export(arguments: argparse.Namespace) -> int:
    scenario = _scenario(arguments)
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
