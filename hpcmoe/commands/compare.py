"""``hpcmoe compare``: what makes one run slower than another, or the same runs in two files."""

from __future__ import annotations

import argparse

from hpcmoe.commands import common
from hpcmoe.errors import InputError

FOUND_DIFFERENCES = 1


def compare(arguments: argparse.Namespace) -> int:
    if arguments.second is None:
        _refuse(arguments, {"--layer": arguments.layer}, "compares two runs of one file")
        return _compare_files(arguments)
    _refuse(
        arguments,
        {"--select": arguments.select, "--show": arguments.show, "--json": arguments.json},
        "compares two files",
    )
    return _compare_runs(arguments)


def _refuse(arguments: argparse.Namespace, options: dict[str, object], what: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise InputError(f"an option of the form that {what}", field=option, value=value)


def _compare_runs(arguments: argparse.Namespace) -> int:
    from hpcmoe.inspect_run import compare_runs, inspect_run
    from hpcmoe.reporting import run_page
    from hpcmoe.store import open_results

    with open_results(arguments.results) as results:
        first, second = (
            inspect_run(results, run, arguments.layer) for run in (arguments.first, arguments.second)
        )
        print(run_page.describe_comparison(compare_runs(first, second)))
    return 0


def _compare_files(arguments: argparse.Namespace) -> int:
    """0 when every run agrees in every rank and flow, 1 when one does not."""
    from hpcmoe import compare_files

    if arguments.show is not None and arguments.show < 1:
        raise InputError("bad value", field="--show", value=arguments.show, allowed="integers from 1")
    from hpcmoe.store import open_results

    with open_results(arguments.results) as ours, open_results(arguments.first) as theirs:
        found = [
            compare_files.compare_run(ours, theirs, key, arguments.show or 1)
            for key in compare_files.common_keys(ours, theirs, arguments.select or ())
        ]
    content = {
        "first": arguments.results,
        "second": arguments.first,
        "runs": list(map(compare_files.to_json, found)),
    }
    common.write_json(arguments.json, content)
    equal = sum(run.equal for run in found)
    if arguments.json != "-":
        for run in found:
            print("\n".join(compare_files.lines(run)))
        print(f"{equal} of {len(found)} runs agree in every rank and flow that both files have")
    return 0 if equal == len(found) else FOUND_DIFFERENCES
