"""``hpcmoe topology``: clusters of the user's own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpcmoe import catalog, topology_facts, topology_file
from hpcmoe.commands import common
from hpcmoe.errors import HpcmoeError, InputError, closest_first
from hpcmoe.figures.kinds import count_text, style_of
from hpcmoe.topology import Topology, build, external_delay_ns
from hpcmoe.topology_text import write_topology
from hpcmoe.units import format_rate, format_time

_ABOUT = "Added by 'hpcmoe topology add' from"


def add(arguments: argparse.Namespace) -> int:
    """Checks a file and keeps it in the catalog."""
    entry = topology_file.entry_of_file(arguments.file, arguments.gpus_per_server)
    topology = topology_file.parse(entry, arguments.file).compile(external_delay_ns=0)
    entry = {"title": Path(arguments.file).stem, **entry}
    name = arguments.name
    path = catalog.add(
        "topologies", name, entry, replace=arguments.replace, about=f"{_ABOUT} {Path(arguments.file).name}"
    )
    print(f"{name}: {_summary(topology)}; kept as {path}")
    _print_remarks(topology)
    print(
        f"It stands in run keys: flash/{name}/tp<N>ep<M>/ring_direct/ib_cc0 with N x M up to {topology.hosts}"
    )
    return 0


def check(arguments: argparse.Namespace) -> int:
    topology = topology_file.load(arguments.file, arguments.gpus_per_server).compile(external_delay_ns=0)
    print(f"{arguments.file}: {_summary(topology)}")
    _print_remarks(topology)
    return 0


def list_all(arguments: argparse.Namespace) -> int:
    own = set(catalog.names("topologies")) - set(catalog.built_in("topologies"))
    for name in catalog.names("topologies"):
        mark = "  (yours)" if name in own else ""
        print(f"{name:<24}{catalog.load('topologies', name).get('title', name)}{mark}")
    return 0


def remove(arguments: argparse.Namespace) -> int:
    print(f"{catalog.remove('topologies', arguments.name)}: removed")
    return 0


def compile_file(arguments: argparse.Namespace) -> int:
    """Writes upstream's text."""
    topology, delay_ns = _asked(arguments)
    try:
        write_topology(topology, arguments.output)
    except OSError as error:
        raise common.output_error(arguments.output, error) from error
    print(
        f"{arguments.output}: {topology.node_count} nodes, {len(topology.switch_ids)} of them switches, "
        f"{len(topology.links)} links; links without a delay of their own have {format_time(delay_ns)}"
    )
    return 0


def show(arguments: argparse.Namespace) -> int:
    topology, delay_ns = _asked(arguments)
    print("\n".join(_lines(arguments.topology, topology, delay_ns)))
    _print_remarks(topology)
    if arguments.svg:
        common.write_text(arguments.svg, _drawing(topology, arguments.topology))
        print(f"drawing: {arguments.svg}")
    return 0


def _asked(arguments: argparse.Namespace) -> tuple[Topology, int]:
    """The topology of a name or file, and the delay of its links that have none."""
    delay_ns = external_delay_ns(arguments.network)
    asked = arguments.topology
    if asked in catalog.names("topologies"):
        if arguments.gpus_per_server is not None:
            raise InputError("only for a file", field="--gpus-per-server", value=arguments.gpus_per_server)
        return build(asked, delay_ns), delay_ns
    if not Path(asked).exists():
        raise InputError(
            "no such file, and no such topology in the catalog",
            field="topology",
            value=asked,
            allowed=closest_first(asked, catalog.names("topologies")),
        )
    return topology_file.load(asked, arguments.gpus_per_server).compile(delay_ns), delay_ns


def _print_remarks(topology: Topology) -> None:
    for text in topology_facts.remarks(topology):
        print(f"note: {text}")


def _summary(topology: Topology) -> str:
    servers = len(set(topology.server_of_host))
    where = f"in {servers} server{'s' * (servers > 1)}" if servers else "in unknown servers"
    return (
        f"{count_text(topology.hosts, topology.node_kinds[topology.host_ids[0]])} {where}, "
        f"{len(topology.switch_ids)} other nodes, {len(topology.links)} links"
    )


def _lines(name: str, topology: Topology, delay_ns: int) -> Iterator[str]:
    rows = [
        ("nodes", [", ".join(count_text(n, k) for k, n in topology_facts.node_counts(topology).items())]),
        ("servers", [_servers(topology)]),
        ("links", list(_link_lines(topology))),
        ("between two GPUs", list(_distance_lines(topology))),
        ("bisection bandwidth", [_bisection(topology)]),
        ("oversubscription", list(_tier_lines(topology))),
    ]
    yield f"{name}: {_summary(topology)}  (network delay {format_time(delay_ns)})"
    for title, texts in rows:
        for i, text in enumerate(texts):
            yield f"  {'' if i else title:<22}{text}"


def _servers(topology: Topology) -> str:
    if not topology.server_of_host:
        return "unknown: no flow counts as inside a server (--gpus-per-server says it)"
    sizes = {topology.server_of_host.count(server) for server in set(topology.server_of_host)}
    return f"{len(set(topology.server_of_host))} of {' or '.join(map(str, sorted(sizes)))} GPUs"


def _link_lines(topology: Topology) -> Iterator[str]:
    for kind, count in topology_facts.link_counts(topology).items():
        ends = f"{style_of(kind.first).title} to {style_of(kind.second).title}"
        yield f"{count:>6} x {ends}: {format_rate(kind.rate_bps)}, {format_time(kind.delay_ns)}"


def _distance_lines(topology: Topology) -> Iterator[str]:
    crossed = topology_facts.switches_between_hosts(topology)
    for switches, count in crossed.items():
        what = "no path" if switches < 0 else f"{switches} switch{'es' * (switches != 1)}"
        yield f"{what}: {count / sum(crossed.values()):.1%} of pairs"


def _bisection(topology: Topology) -> str:
    rate = topology_facts.bisection_bps(topology)
    share = rate / max(1, topology.hosts // 2)
    return f"{rate / 1e9:g} Gbps between the halves of the GPUs, {share / 1e9:g} Gbps per GPU"


def _tier_lines(topology: Topology) -> Iterator[str]:
    for tier in topology_facts.tiers(topology):
        ratio = "no way up" if tier.oversubscription is None else f"{tier.oversubscription:.2f} : 1"
        yield (
            f"{count_text(tier.switches, tier.kind)}: {ratio} ({tier.down_bps / 1e9:g} Gbps down, "
            f"{tier.up_bps / 1e9:g} Gbps up)"
        )


def _drawing(topology: Topology, title: str) -> Any:
    try:
        from hpcmoe.figures.topologies import svg
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise HpcmoeError("--svg needs matplotlib: pip install 'hpcmoe[figures]'") from error
    return svg(topology, title)
