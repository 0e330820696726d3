"""Every published single point of the study beside ours.

    python benchmarks/published_points.py [--layers N | --layers all] [--only GLOB]

By default one MoE layer, after the dense ones, is simulated for each point at 4096 tokens and the time
of the whole model is *scaled*: the time of the simulated layers plus that of one MoE layer for each one
left out. ``--layers all`` simulates whole models. The difference to the published time is for
comparison only; nothing is fitted to it. The output is Markdown.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_tools import machine_facts, markdown_table

from hpcmoe import runner
from hpcmoe.design import RunKey
from hpcmoe.errors import HpcmoeError
from hpcmoe.model import load_model
from hpcmoe.published import load_published
from hpcmoe.scenario import scenario_from_key

TOKENS = 4096


@dataclass(frozen=True)
class Comparison:
    """Times in ns. ``simulated_layers`` counts MoE layers; ``ours_ns`` is the whole model's."""

    key: str
    source: str
    published_ns: float
    ours_ns: float
    gpu_ns: float
    simulated_layers: int
    moe_layers: int
    seconds: float

    @property
    def scaled(self) -> bool:
        return self.simulated_layers < self.moe_layers

    @property
    def difference_percent(self) -> float:
        return 100 * (self.ours_ns / self.published_ns - 1)


def key_of(point: Mapping[str, Any]) -> str:
    strategy = f"tp{point['tp']}ep{point['ep']}"
    parts = (point["model"], f"t{point['topology']}", strategy, point["collective"], point["network"])
    return str(RunKey(*parts))


def run_layers(key: str, layers: int) -> runner.RunResult:
    scenario = scenario_from_key(key, tokens=TOKENS, layers=layers)
    return runner.run(scenario, record_flows=False, record_pauses=False, record_queues=False)


def compare(point: Mapping[str, Any], wanted_layers: int | None) -> Comparison:
    key = key_of(point)
    model = load_model(point["model"])
    layers = model.moe_layers if wanted_layers is None else min(wanted_layers, model.moe_layers)
    result = run_layers(key, layers)
    seconds, left_out = result.seconds, model.moe_layers - layers
    per_layer = {"wall_ns": result.wall_ns / layers, "gpu_ns": result.gpu_ns / layers}
    if left_out and model.dense_layers:  # dense layers are not like MoE layers: take a difference
        longer = run_layers(key, layers + 1)
        seconds += longer.seconds
        per_layer = {name: getattr(longer, name) - getattr(result, name) for name in per_layer}
    return Comparison(
        key=key,
        source=point["source"],
        published_ns=point["wall"] * 1e9,
        ours_ns=result.wall_ns + left_out * per_layer["wall_ns"],
        gpu_ns=result.gpu_ns + left_out * per_layer["gpu_ns"],
        simulated_layers=layers,
        moe_layers=model.moe_layers,
        seconds=seconds,
    )


HEADER = ("key", "source", "published ms", "ours ms", "difference %", "GPU ms", "ours is", "CPU s")


def row(c: Comparison) -> tuple[str, ...]:
    how = f"scaled from {c.simulated_layers} of {c.moe_layers} MoE layers" if c.scaled else "simulated"
    return (
        c.key,
        c.source,
        f"{c.published_ns / 1e6:.3f}",
        f"{c.ours_ns / 1e6:.3f}",
        f"{c.difference_percent:+.2f}",
        f"{c.gpu_ns / 1e6:.3f}",
        how,
        f"{c.seconds:.2f}",
    )


def layer_count(text: str) -> int | None:
    """A number of MoE layers from 1, or None for 'all'."""
    if text == "all":
        return None
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number from 1 nor 'all'")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layers", type=layer_count, default=1, metavar="N", help="MoE layers, or 'all'")
    parser.add_argument("--only", metavar="GLOB", default="*", help="run keys that match")
    arguments = parser.parse_args(argv)
    points = [p for p in load_published()["points"] if fnmatch.fnmatchcase(key_of(p), arguments.only)]
    if not points:
        parser.error(f"no published point matches {arguments.only!r}")
    try:
        comparisons = [compare(point, arguments.layers) for point in points]
    except HpcmoeError as error:
        parser.error(str(error))
    print("\n".join(machine_facts()), end="\n\n")
    print(markdown_table(HEADER, map(row, comparisons)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
