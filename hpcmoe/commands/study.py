"""``hpcmoe study``: an example of a study file, and what a study file comes to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpcmoe.commands import common

SHOWN_KEYS = 5


def init(arguments: argparse.Namespace) -> int:
    from hpcmoe.studyfile import write_example

    path = Path(arguments.file)
    write_example(path)
    print(f"{path}: an example that runs as it stands; 'hpcmoe study check {path}' says what it comes to")
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Reads the file, builds the scenario of runs that together have every level, and predicts the cost."""
    from hpcmoe.studyfile import read_study
    from hpcmoe.sweep.plan import check_scenarios

    path = Path(arguments.file)
    study = read_study(path)
    check_scenarios(_options(path, study))
    found = summary(path, study)
    common.write_json(arguments.json, found)
    if arguments.json != "-":
        print("\n".join(_lines(found)))
    return 0


def summary(path: Path, study: Any) -> dict[str, Any]:
    """Levels by factor, counts of runs, predicted cost and the first keys."""
    from hpcmoe.sweep import cost
    from hpcmoe.sweep.plan import expected_s

    options = _options(path, study)
    seconds = [expected_s(key, options) for key in study.keys]
    levels = {factor: list(names) for factor, names in study.levels.items()}
    levels |= {name: [level.name for level in found] for name, found in study.variants.items()}
    return {
        "file": str(path),
        "title": study.title,
        "levels": levels,
        "settings": dict(study.settings),
        "runs": len(study.keys),
        "left_out": len(study.all_keys) - len(study.keys),
        "idle": _idle(study),
        "core_hours": sum(seconds) / 3600,
        "longest_s": max(seconds),
        "fitted_to": cost.coefficients()["fitted_to"],
        "first_keys": [str(key) for key in study.keys[:SHOWN_KEYS]],
    }


def _options(path: Path, study: Any) -> Any:
    from hpcmoe.sweep.arguments import Options, of_study

    return Options(path, **of_study(study))


def _idle(study: Any) -> list[str]:
    """Topologies and strategies of runs that leave GPUs without work."""
    from hpcmoe import design, topology

    pairs = dict.fromkeys((key.topology, key.strategy) for key in study.keys)
    gpus = {name: topology.build(name, external_delay_ns=1).hosts for name, _ in pairs}
    ranks = {strategy: design.parse_degrees(strategy).ranks for _, strategy in pairs}
    return [
        f"{strategy} on {name}: {ranks[strategy]} of {gpus[name]} GPUs"
        for name, strategy in pairs
        if ranks[strategy] < gpus[name]
    ]


def _lines(found: dict[str, Any]) -> Iterator[str]:
    from hpcmoe.sweep.progress import duration

    yield f"{found['file']}: {found['title'] or 'no title'}"
    for name, levels in found["levels"].items():
        yield f"  {name:<24}{len(levels):>4}  {' '.join(levels)}"
    for name, value in found["settings"].items():
        yield f"  {name:<24}      {value}"
    left_out = f", {found['left_out']} combinations left out" if found["left_out"] else ""
    yield f"{found['runs']} runs{left_out}"
    yield from (f"GPUs without work: {text}" for text in found["idle"])
    on_one_core = duration(found["core_hours"] * 3600)
    yield (
        f"predicted: {found['core_hours']:.2g} core-hours ({on_one_core} on one core), "
        f"longest run {duration(found['longest_s'])} (cost model fitted to {found['fitted_to']})"
    )
    yield "first keys:"
    yield from (f"  {key}" for key in found["first_keys"])
