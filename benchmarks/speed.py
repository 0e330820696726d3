"""Speed of the simulator: packet-hops per CPU second, and peak memory, of runs of the study.

    python benchmarks/speed.py [--repeats N] [--layers N] [--set NAME=VALUE] [KEY ...]

A packet-hop is one data packet, ACK or NACK crossing one link. Each run has a process of its own; CPU
time is that of the simulation, without reading the workload. Every repeat simulates every packet:
nothing is fast-forwarded. The output is Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bench_tools import in_fresh_process, machine_facts, markdown_table, peak_memory_mib

from hpcmoe import parameters, runner
from hpcmoe.design import RunKey
from hpcmoe.errors import HpcmoeError
from hpcmoe.scenario import Scenario, scenario_from_key

DEFAULT_KEYS = (
    "flash/t6/tp16ep2/ring_direct/ib_cc0",
    *(
        f"flash/{topology}/{strategy}/ring_direct/{network}"
        for topology in ("t1", "t4")
        for strategy in ("tp2ep16", "tp16ep2")
        for network in ("ib_cc0", "roce_hpcc", "roce_dcqcn")
    ),
)


@dataclass(frozen=True)
class Measurement:
    """``feedback_share``: part of the data packets whose flow crosses a server boundary, which are those
    that congestion control of the network mode, if any, acts on."""

    key: str
    packet_hops: int
    events: int
    wall_ns: int
    seconds: list[float]
    feedback_share: float
    peak_mib: float


def feedback_share(scenario: Scenario, flows: np.ndarray) -> float:
    packets = np.ceil(flows["bytes"] / int(scenario.network["payload_bytes"]))
    local = scenario.cc_disabled_pairs
    if local is None or not packets.sum():
        return 1.0
    return float(packets[~local[flows["src"], flows["dst"]]].sum() / packets.sum())


def measure(key: str, layers: int | None, repeats: int, assignments: Sequence[str]) -> Measurement:
    scenario = scenario_from_key(key, layers=layers, overrides=parameters.parse_overrides(assignments))
    results = [runner.run(scenario, record_flows=True, fast_forward=False) for _ in range(repeats)]
    first = results[0]
    return Measurement(
        key,
        first.packet_hops,
        first.events,
        first.wall_ns,
        [result.seconds for result in results],
        feedback_share(scenario, first.flows),
        peak_memory_mib(),
    )


def row(m: Measurement) -> tuple[str, ...]:
    best, median = min(m.seconds), statistics.median(m.seconds)
    return (
        m.key,
        f"{m.packet_hops / 1e6:.2f}",
        f"{m.events / m.packet_hops:.2f}",
        f"{best:.2f}",
        f"{m.packet_hops / best / 1e6:.1f}",
        f"{m.packet_hops / median / 1e6:.1f}",
        f"{100 * m.feedback_share:.1f}",
        f"{m.peak_mib:.0f}",
        f"{m.wall_ns / 1e6:.3f}",
    )


HEADER = (
    "key",
    "M hops",
    "events/hop",
    "best CPU s",
    "M hops/CPU-s, best",
    "median",
    "packets of non-local flows %",
    "peak MiB",
    "simulated ms",
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("keys", metavar="KEY", nargs="*", help="run keys (default: a fixed selection)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="runs per key (default: 3)")
    parser.add_argument("--layers", type=int, default=1, metavar="N", help="MoE layers (default: 1)")
    parser.add_argument("--set", dest="assignments", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args(argv)
    if arguments.repeats < 1:
        parser.error("--repeats must be at least 1")
    try:
        keys = [str(RunKey.parse(key)) for key in arguments.keys or DEFAULT_KEYS]
        print("\n".join(machine_facts()))
        print(f"- {arguments.layers} MoE layer(s), {arguments.repeats} repeat(s)", end="\n\n")
        measured = [
            in_fresh_process(measure, key, arguments.layers, arguments.repeats, arguments.assignments)
            for key in keys
        ]
    except HpcmoeError as error:
        parser.error(str(error))
    print(markdown_table(HEADER, map(row, measured)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
