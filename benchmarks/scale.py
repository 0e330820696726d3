"""Cost per packet-hop of an all-to-all on a leaf-spine network as the number of hosts grows.

    python benchmarks/scale.py [--bytes-per-host N] [--repeats N] [HOSTS ...]

Every host sends the same number of bytes in all, cut into one message per other host, all posted at time
zero. 400 Gbit/s links of 500 ns; leaves of 16 hosts, 16 spines. The output is Markdown; exit code 1 when the
last size costs over 20 % more per packet-hop than the first.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from bench_tools import in_fresh_process, machine_facts, markdown_table

from hpcmoe import parameters, runner
from hpcmoe.topology import Link, Topology, unnamed

HOSTS_PER_LEAF = 16
SPINES = 16
LIMIT = 1.2


def leaf_spine(hosts: int) -> Topology:
    """Hosts first, then leaves, then spines."""
    leaves = range(hosts, hosts + hosts // HOSTS_PER_LEAF)
    spines = range(leaves.stop, leaves.stop + SPINES)
    rate_bps, delay_ns = 400_000_000_000, 500
    links = [Link(host, leaves[host // HOSTS_PER_LEAF], rate_bps, delay_ns) for host in range(hosts)]
    links += [Link(leaf, spine, rate_bps, delay_ns) for leaf in leaves for spine in spines]
    return unnamed(spines.stop, [*leaves, *spines], links)


def all_to_all(hosts: int, bytes_per_host: int) -> np.ndarray:
    """Rows (start_ns, src, dst, bytes); each host starts with its next neighbour."""
    size = bytes_per_host // (hosts - 1)
    pairs = [(src, (src + step) % hosts) for src in range(hosts) for step in range(1, hosts)]
    return np.array([(0, src, dst, size) for src, dst in pairs], dtype=np.int64)


def measure(hosts: int, bytes_per_host: int) -> tuple[int, float]:
    """Packet-hops and CPU seconds."""
    network = parameters.complete(parameters.defaults("study", "network"), "network")
    result = runner.run_flows(leaf_spine(hosts), network, [], all_to_all(hosts, bytes_per_host))
    return result.packet_hops, result.seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hosts", metavar="HOSTS", type=int, nargs="*", default=[32, 64, 128, 256])
    parser.add_argument("--bytes-per-host", type=int, default=8_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print("\n".join(machine_facts()), "", sep="\n")
    costs, rows = [], []
    for hosts in arguments.hosts:
        runs = [in_fresh_process(measure, hosts, arguments.bytes_per_host) for _ in range(arguments.repeats)]
        hops, seconds = min(runs, key=lambda run: run[1])
        costs.append(seconds / hops)
        rows.append(
            (str(hosts), f"{hops}", f"{seconds:.2f}", f"{costs[-1] * 1e9:.1f}", f"{costs[-1] / costs[0]:.2f}")
        )
    print(markdown_table(("hosts", "packet-hops", "CPU s", "ns per packet-hop", "against the first"), rows))
    return 0 if costs[-1] <= LIMIT * costs[0] else 1


if __name__ == "__main__":
    sys.exit(main())
