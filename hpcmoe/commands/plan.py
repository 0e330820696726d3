"""``hpcmoe plan``: what a sweep will cost, before it runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcmoe.commands import common

if TYPE_CHECKING:
    from hpcmoe.design import RunKey
    from hpcmoe.sweep.arguments import Options

RANKS = tuple(2**power for power in range(13))  # 1 to 4096


def plan(arguments: argparse.Namespace) -> int:
    found = forecast_of(arguments)
    common.write_json(arguments.json, found)
    if arguments.json != "-":
        print("\n".join(_lines(found)))
    return 0


def forecast_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs, CPU time, and for each number of ranks the time and the efficiency."""
    from hpcmoe.sweep import cost, forecast
    from hpcmoe.sweep.plan import expected_s

    keys, options = _missing(arguments) if arguments.results else _asked(arguments)
    costs = {str(key): expected_s(key, options) for key in keys}
    seconds = list(costs.values())
    counts = sorted({*RANKS, *(arguments.ranks or ())})
    longest = max(costs, key=costs.__getitem__, default="")
    return {
        "runs": len(keys),
        "core_hours": sum(seconds) / 3600,
        "longest_run": longest,
        "longest_run_s": costs.get(longest, 0.0),
        "useful_ranks": forecast.useful_ranks(seconds) if seconds else 1,
        "fitted_to": cost.coefficients()["fitted_to"],
        "ranks": [vars(forecast.forecast(seconds, count)) for count in counts],
        "asked": arguments.ranks or [],
    }


def _asked(arguments: argparse.Namespace) -> tuple[Sequence[RunKey], Options]:
    """Runs of the options."""
    from hpcmoe.sweep.arguments import Options, asked_for

    chosen = tuple(arguments.select or ("*",))
    options = Options(Path(), chosen, **asked_for(arguments.study, arguments.tokens, arguments.layers))
    return options.keys(), options


def _missing(arguments: argparse.Namespace) -> tuple[Sequence[RunKey], Options]:
    """Runs that a results file lacks."""
    from hpcmoe.design import RunKey
    from hpcmoe.store import open_results
    from hpcmoe.sweep.stored import stored_options

    with open_results(Path(arguments.results)) as results:
        options = stored_options(results)
        lacking = results.runs["key"][results.runs["status"] != "ok"].tolist()
        return [RunKey.parse(key) for key in lacking], options


def _lines(found: dict[str, Any]) -> Iterator[str]:
    from hpcmoe.sweep.progress import duration

    fitted = f"cost model fitted to {found['fitted_to']}"
    yield f"{found['runs']} runs, {found['core_hours']:.1f} core-hours predicted ({fitted})"
    if not found["runs"]:
        return
    yield f"longest run: {found['longest_run']}, {duration(found['longest_run_s'])}"
    yield f"{'ranks':>8}{'time':>14}{'efficiency':>12}"
    for row in found["ranks"]:
        mark = "  <- asked for" if row["ranks"] in found["asked"] else ""
        yield f"{row['ranks']:>8}{duration(row['makespan_s']):>14}{row['efficiency']:>12.0%}{mark}"
    yield (
        f"More than {found['useful_ranks']} ranks shorten it by less than 5 %: the longest run alone takes "
        f"{duration(found['longest_run_s'])}."
    )
