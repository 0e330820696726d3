"""Both network backends on the same runs: packet-hops per CPU-second, and peak memory.

    python benchmarks/backends.py [--tokens N] [--select GLOB ...]

Prints Markdown. Each run has a process of its own, and nothing is added by fast-forward. A packet-hop is
one data packet, ACK or NACK crossing one link.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator

from bench_tools import in_fresh_process, machine_facts, markdown_table, peak_memory_mib

from hpcmoe import design, runner
from hpcmoe.scenario import scenario_from_key

KEYS = (
    "flash/t1/tp2ep16/ring_direct/ib_cc0",
    "flash/t2/tp4ep8/ring_direct/ib_hpcc",
    "k3/t1/tp4ep8/dbt_direct/roce_hpcc",
    "pro/t6/tp2ep16/dbt_direct/roce_dcqcn",
)


def measure(key: str, tokens: int, backend: str) -> tuple[int, float, float]:
    """Packet-hops, CPU seconds of the simulation, peak memory in MiB of the process that simulates."""
    scenario = scenario_from_key(key, tokens=tokens, layers=1)
    result = runner.run(scenario, fast_forward=False, record_queues=False, backend=backend)
    if backend == "native":
        return result.packet_hops, result.seconds, peak_memory_mib()
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
    return result.packet_hops, result.seconds, children


def rows(keys: list[str], tokens: int) -> Iterator[list[str]]:
    for key in keys:
        hops, native_s, native_mib = in_fresh_process(measure, key, tokens, "native")
        ns3_hops, ns3_s, ns3_mib = in_fresh_process(measure, key, tokens, "ns3")
        if hops != ns3_hops:
            raise SystemExit(f"{key}: {hops} packet-hops on native, {ns3_hops} on ns3")
        yield [
            f"`{key}`",
            f"{hops / 1e6:.2f}",
            f"{native_s:.2f}",
            f"{ns3_s:.2f}",
            f"{hops / native_s / 1e6:.1f}",
            f"{hops / ns3_s / 1e6:.2f}",
            f"{ns3_s / native_s:.0f}",
            f"{native_mib:.0f}",
            f"{ns3_mib:.0f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--select", nargs="+", metavar="GLOB", help="run keys (default: four)")
    arguments = parser.parse_args()
    keys = [str(key) for key in design.select(arguments.select)] if arguments.select else list(KEYS)
    header = ["run", "M hops", "native s", "ns3 s", "native M/s", "ns3 M/s", "ratio", "native MiB", "ns3 MiB"]
    print(f"# Network backends side by side, one layer at {arguments.tokens} tokens\n")
    print("\n".join(machine_facts()), end="\n\n")
    print(markdown_table(header, rows(keys, arguments.tokens)))


if __name__ == "__main__":
    main()
