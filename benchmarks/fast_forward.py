"""Exact fast-forward at full size: every run with and without it, compared field by field.

    python benchmarks/fast_forward.py [--tokens N] [--layers N] [--workers N]

24 runs, each model on each topology, with strategies, collectives and network modes mixed. A run agrees
when every rank's and every link's row, all totals and all trace records, copies written out, are equal. The
output is Markdown; exit code 1 when any run disagrees.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from bench_tools import machine_facts, markdown_table

from hpcmoe import runner
from hpcmoe.design import COLLECTIVES, MODELS, NETWORKS, STRATEGIES, TOPOLOGIES, RunKey
from hpcmoe.runner import RunResult
from hpcmoe.scenario import scenario_from_key
from hpcmoe.store.repeats import expand
from hpcmoe.store.result import RunTraces, result_traces
from hpcmoe.store.schema import TRACE_KINDS

TOTALS = ("wall_ns", "gpu_ns", "comm_ns", "bottleneck_rank", "simulated_ns", "events", "packet_hops",
          "ecn_marks", "pfc_pauses", "drops")  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    key: str
    agrees: bool
    layers_added: int
    layers: int
    quiet_moments: int
    seconds: float
    full_seconds: float


def mixed_keys() -> list[RunKey]:
    """Each model on each topology; the other factors rotate so that every level is met."""
    return [
        RunKey(
            model,
            topology,
            STRATEGIES[(a + b + b // 4) % 4],
            COLLECTIVES[(a + b // 2) % 2],
            NETWORKS[(2 * a + b) % 4],
        )
        for a, model in enumerate(MODELS)
        for b, topology in enumerate(TOPOLOGIES)
    ]


def all_traces(result: RunResult) -> RunTraces:
    """Flow, queue and pause records with the copies that repeats stand for, in order of time."""
    return expand(result_traces(result, 0, digest="", config="", keep=True))


def compare(key: RunKey, tokens: int, layers: int) -> Comparison:
    scenario = scenario_from_key(key, tokens=tokens, layers=layers)
    fast = runner.run(scenario)
    full = runner.run(scenario, fast_forward=False)
    fast_traces, full_traces = all_traces(fast), all_traces(full)
    agrees = (
        all(getattr(fast, name) == getattr(full, name) for name in TOTALS)
        and np.array_equal(fast.ranks, full.ranks)
        and np.array_equal(fast.links, full.links)
        and all(
            np.array_equal(getattr(fast_traces, kind), getattr(full_traces, kind)) for kind in TRACE_KINDS
        )
    )
    return Comparison(str(key), agrees, fast.layers_added, fast.layers_added + fast.layers_simulated,
                      fast.quiet_moments, fast.seconds, full.seconds)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8, help="MoE layers")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    arguments = parser.parse_args()
    print("\n".join(machine_facts()), "", sep="\n")
    keys = mixed_keys()
    with ProcessPoolExecutor(arguments.workers) as pool:
        futures = [pool.submit(compare, key, arguments.tokens, arguments.layers) for key in keys]
        results = [future.result() for future in futures]
    rows = [
        (f"`{r.key}`", "yes" if r.agrees else "NO", f"{r.layers_added} of {r.layers}", str(r.quiet_moments),
         f"{r.seconds:.2f}", f"{r.full_seconds:.2f}")
        for r in results
    ]  # fmt: skip
    header = ("run", "agrees", "layers added", "quiet moments", "CPU s", "CPU s in full")
    print(markdown_table(header, rows))
    agreeing = sum(r.agrees for r in results)
    repeated = sum(r.layers_added >= 3 for r in results)
    print(f"\n{agreeing} of {len(results)} runs agree; in {repeated} at least 3 layers were added.")
    return 0 if agreeing == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
