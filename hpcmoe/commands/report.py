"""``hpcmoe report``."""

from __future__ import annotations

import argparse
import importlib
import sys

from hpcmoe.commands import outputs


def report(arguments: argparse.Namespace) -> int:
    from hpcmoe.report import write_report

    outputs.check_folder(arguments.output)
    figures = arguments.figures and _can_draw()
    for path in write_report(arguments.results, arguments.output, runs=arguments.runs, with_figures=figures):
        print(path)
    return 0


def _can_draw() -> bool:
    try:
        importlib.import_module("hpcmoe.figures.collection")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print(
            "hpcmoe: warning: the report has no figures, which need matplotlib: "
            "pip install 'hpcmoe[figures]'; --no-figures leaves them out silently",
            file=sys.stderr,
        )
        return False
    return True
