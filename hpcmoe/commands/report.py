"""``hpcmoe report``."""

from __future__ import annotations

import argparse


def report(arguments: argparse.Namespace) -> int:
    from hpcmoe.report import write_report

    for path in write_report(
        arguments.results, arguments.output, runs=arguments.runs, with_figures=arguments.figures
    ):
        print(path)
    return 0
