"""``hpcmoe crosscheck``: the same runs on both network backends, compared to the nanosecond."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hpcmoe import design, parameters
from hpcmoe.design import RunKey
from hpcmoe.scenario import Scenario, scenario_from_key

FOUND_DIFFERENCES = 1
_AROUND = 4  # rows shown before and after the first that differs
_RANK_COLUMNS = ("rank", "finish_ns", "wall_ns", "gpu_ns", "comm_ns", "bytes_sent", "bytes_received")
_FLOW_COLUMNS = ("src", "dst", "sport", "bytes", "start_ns", "fct_ns", "layer", "chunk", "step")


def crosscheck(arguments: argparse.Namespace) -> int:
    overrides = parameters.parse_overrides(arguments.assignments)
    keys = design.select(arguments.select) if arguments.select else default_keys()
    different = 0
    for key in keys:
        scenario = scenario_from_key(
            key, tokens=arguments.tokens, layers=arguments.layers, overrides=overrides
        )
        lines = list(compare(scenario))
        print("\n".join(lines), flush=True)
        different += len(lines) > 1
    print(f"{len(keys) - different} of {len(keys)} runs agree in every flow and rank")
    return FOUND_DIFFERENCES if different else 0


def default_keys() -> list[RunKey]:
    """Every model on every topology; strategies, collectives and networks take turns."""
    strategies, collectives, networks = design.STRATEGIES, design.COLLECTIVES, design.NETWORKS
    keys = []
    for m, model in enumerate(design.MODELS):
        for t, topology in enumerate(design.TOPOLOGIES):
            keys.append(
                RunKey(
                    model,
                    topology,
                    strategies[(m + t) % len(strategies)],
                    collectives[(m + t // 2) % len(collectives)],
                    networks[(2 * m + t) % len(networks)],
                )
            )
    return keys


def compare(scenario: Scenario) -> Iterator[str]:
    """One line when the backends agree; otherwise also the first divergence with what is around it."""
    from hpcmoe import runner

    # Every layer is simulated on both, so that every flow has a row.
    results = [
        runner.run(scenario, fast_forward=False, record_queues=False, backend=name)
        for name in runner.BACKENDS
    ]
    first, second = results
    details = list(divergence(first, second))
    verdict = "DIFFERENT" if details else "equal"
    yield (
        f"{verdict:<10}{scenario.key}: {len(first.flows)} flows, {first.packet_hops} packet-hops, "
        f"wall {first.wall_ns} ns; native {first.seconds:.2f} s, ns3 {second.seconds:.2f} s"
    )
    yield from details


def divergence(first: Any, second: Any) -> Iterator[str]:
    """Lines that show where two results part: flows in order of completion, then ranks."""
    yield from _compare("flow", _FLOW_COLUMNS, first.flows, second.flows)
    yield from _compare("rank", _RANK_COLUMNS, first.ranks, second.ranks)


def _compare(what: str, columns: Sequence[str], first: np.ndarray, second: np.ndarray) -> Iterator[str]:
    at = first_difference(first, second, columns)
    if at is None:
        return
    yield f"  first {what} that differs: row {at} ({' '.join(columns)})"
    for name, rows in (("native", first), ("ns3", second)):
        for index in range(max(0, at - _AROUND), min(len(rows), at + _AROUND + 1)):
            values = " ".join(str(rows[index][column]) for column in columns)
            yield f"  {'>' if index == at else ' '} {name:<7}{index:>8}  {values}"
        if at >= len(rows):
            yield f"  > {name:<7}{len(rows):>8}  no more rows"


def first_difference(first: np.ndarray, second: np.ndarray, columns: Sequence[str]) -> int | None:
    """Position of the first row in which a column differs or which only one side has."""
    shared = min(len(first), len(second))
    differs = np.zeros(shared, dtype=bool)
    for column in columns:
        differs |= first[column][:shared] != second[column][:shared]
    if differs.any():
        return int(np.argmax(differs))
    return None if len(first) == len(second) else shared
