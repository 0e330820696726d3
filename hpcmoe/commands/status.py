"""``hpcmoe status``: how far a results file is."""

from __future__ import annotations

import argparse
from pathlib import Path

from hpcmoe.commands import common

FAILED_RUNS_EXIT_CODE = 1


def status(arguments: argparse.Namespace) -> int:
    """0, also for a file that is not complete; 1 when it has failed runs."""
    from hpcmoe.sweep import status as state

    found = state.status(Path(arguments.results))
    if arguments.json is not None:
        common.write_json(arguments.json, found)
    if arguments.json != "-":
        print("\n".join(state.describe(found)))
    return FAILED_RUNS_EXIT_CODE if found["failed"] else 0
