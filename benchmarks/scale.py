"""Cost per packet-hop of an all-to-all on a leaf-spine network as the number of hosts grows.

    python benchmarks/scale.py [--bytes-per-host N] [--windows W,W,...] [--hosts-per-leaf N] [HOSTS ...]

Every host sends the same number of bytes in all, cut into one message per other host: the direct algorithm of
the system layer, with at most W messages of a rank under way (0: all at once, and so many flows are alive
that their state does not fit a cache). 400 Gbit/s links of 500 ns; as many spines as hosts on a leaf. There
are 8 leaves at every size, so that at every size 7/8 of the bytes cross a spine and packets queue alike;
leaves of a fixed number of hosts change that: of 32 hosts on leaves of 16, half the bytes stay on the leaf
and few packets ever wait. The output is Markdown; exit code 1 when the last size costs over 20 % more per
packet-hop than the first in some window.
"""

from __future__ import annotations

import argparse
import sys

from bench_tools import in_fresh_process, machine_facts, markdown_table

from hpcmoe import parameters, runner
from hpcmoe.command_line import positive
from hpcmoe.scenario import Scenario
from hpcmoe.topology import Link, Topology, unnamed
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode
from hpcmoe.upstream.json_files import DIRECT

LEAVES = 8
LIMIT = 1.2


def leaf_spine(hosts: int, hosts_per_leaf: int) -> Topology:
    """Hosts first, then leaves, then spines."""
    leaves = range(hosts, hosts + hosts // hosts_per_leaf)
    spines = range(leaves.stop, leaves.stop + hosts_per_leaf)
    rate_bps, delay_ns = 400_000_000_000, 500
    links = [Link(host, leaves[host // hosts_per_leaf], rate_bps, delay_ns) for host in range(hosts)]
    links += [Link(leaf, spine, rate_bps, delay_ns) for leaf in leaves for spine in spines]
    return unnamed(spines.stop, [*leaves, *spines], links)


def all_to_all(hosts: int, hosts_per_leaf: int, bytes_per_host: int, window: int) -> Scenario:
    """One all-to-all of all hosts in one chunk; ``window`` messages of a rank under way, 0 is all."""
    node = TraceNode(0, NodeType.COMM_COLL, "all-to-all")
    node.comm_type, node.comm_bytes = CollectiveType.ALL_TO_ALL, bytes_per_host
    system = parameters.complete(parameters.defaults("study", "system"), "system")
    return Scenario(
        key="",
        profile="study",
        topology=leaf_spine(hosts, hosts_per_leaf),
        network=parameters.complete(parameters.defaults("study", "network"), "network"),
        ecn=[],
        system={**system, "preferred_dataset_splits": 1},
        implementations={
            name: [(DIRECT, window or -1, False)]
            for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
        },
        logical_dims=(hosts,),
        groups={},
        traces=[TraceGraph.from_nodes([node])] * hosts,
    )


def measure(hosts: int, hosts_per_leaf: int, bytes_per_host: int, window: int) -> tuple[int, float]:
    """Packet-hops and CPU seconds."""
    result = runner.run(all_to_all(hosts, hosts_per_leaf, bytes_per_host, window))
    return result.packet_hops, result.seconds


def windows(text: str) -> list[int]:
    """The type of an argument: whole numbers from 0, separated by commas."""
    parts = text.split(",")
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected whole numbers from 0, separated by commas, got {text!r}")
    return [int(part) for part in parts]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    sizes = [32, 64, 128, 256]
    parser.add_argument(
        "hosts", metavar="HOSTS", type=positive, nargs="*", default=sizes, help=f"default: {sizes}"
    )
    parser.add_argument("--bytes-per-host", type=positive, default=64_000_000)
    parser.add_argument("--windows", type=windows, default=[1, 32, 0], help="default: 1,32,0 (0 is no limit)")
    parser.add_argument("--hosts-per-leaf", type=positive, help=f"default: {LEAVES} leaves at every size")
    parser.add_argument("--repeats", type=positive, default=3)
    arguments = parser.parse_args()
    unit = arguments.hosts_per_leaf or LEAVES
    least = LEAVES if arguments.hosts_per_leaf is None else 2 * unit  # two leaves
    for hosts in arguments.hosts:
        if hosts % unit or not least <= hosts <= arguments.bytes_per_host:
            parser.error(f"HOSTS {hosts}: allowed are multiples of {unit} from {least} to the bytes per host")
    print("\n".join(machine_facts()), "", sep="\n")
    growths, rows = [], []
    for window in arguments.windows:
        costs = []
        for hosts in arguments.hosts:
            per_leaf = arguments.hosts_per_leaf or hosts // LEAVES
            task = (measure, hosts, per_leaf, arguments.bytes_per_host, window)
            hops, seconds = min(
                (in_fresh_process(*task) for _ in range(arguments.repeats)), key=lambda r: r[1]
            )
            costs.append(seconds / hops)
            growth = costs[-1] / costs[0]
            rows.append((str(window or "all"), str(hosts), f"{hops}", f"{seconds:.2f}",
                         f"{costs[-1] * 1e9:.1f}", f"{growth:.2f}"))  # fmt: skip
        growths.append(costs[-1] / costs[0])
    header = ("messages under way", "hosts", "packet-hops", "CPU s", "ns per packet-hop", "against the first")
    print(markdown_table(header, rows))
    return 0 if max(growths) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
