"""``hpcmoe compare``: what makes one run slower than another."""

from __future__ import annotations

import argparse


def compare(arguments: argparse.Namespace) -> int:
    from hpcmoe.inspect_run import compare_runs, inspect_run
    from hpcmoe.reporting import run_page
    from hpcmoe.store import open_results

    with open_results(arguments.results) as results:
        first, second = (
            inspect_run(results, run, arguments.layer) for run in (arguments.first, arguments.second)
        )
        print(run_page.describe_comparison(compare_runs(first, second)))
    return 0
