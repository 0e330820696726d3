"""Checks of a complete scenario: what would hang, crash or be undefined is an error before the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcmoe import blame, topology_facts
from hpcmoe.errors import InputError
from hpcmoe.parameters import CC_MODES, PARAMETERS
from hpcmoe.topology import Link, Topology
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph
from hpcmoe.units import format_rate
from hpcmoe.upstream.json_files import DOUBLE_BINARY_TREE, HALVING_DOUBLING, RING, Implementation

if TYPE_CHECKING:
    from hpcmoe.scenario import Scenario

_POWER_OF_TWO = {HALVING_DOUBLING: "halvingDoubling", DOUBLE_BINARY_TREE: "doubleBinaryTree"}
_IMPLEMENTATION_OF = {
    CollectiveType.ALL_REDUCE: "all_reduce",
    CollectiveType.ALL_GATHER: "all_gather",
    CollectiveType.REDUCE_SCATTER: "reduce_scatter",
    CollectiveType.ALL_TO_ALL: "all_to_all",
}


_ECN_REMEDY = (
    "; thresholds of another go to 'ecn' of a link type or to --set ecn=RATE:KMIN_BYTES:KMAX_BYTES:PMAX"
)


@dataclass(frozen=True)
class _Phase:
    """Ranks that exchange messages in one phase, in ring order."""

    members: tuple[int, ...]
    algorithm: int

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Ordered pairs that send: ring neighbours in both directions, else everyone to everyone."""
        if self.algorithm == RING:
            for i, rank in enumerate(self.members):
                peer = self.members[(i + 1) % len(self.members)]
                yield rank, peer
                yield peer, rank
        else:
            yield from ((a, b) for a in self.members for b in self.members if a != b)


@dataclass(frozen=True)
class _Use:
    """A way in which a rank uses collectives."""

    kind: CollectiveType
    involved: int
    group: int


def check(scenario: Scenario) -> list[str]:
    """InputError for what cannot run; returns warnings."""
    _check_ranks(scenario)
    _check_network(scenario)
    _check_nodes(scenario)
    # Ranks are hosts 0, 1, ...: a pair is a place in tables over hosts.
    pairs = np.array(sorted(_communicating_pairs(scenario)), dtype=np.int64).reshape(-1, 2)
    _check_reachable(scenario, pairs)
    return [*_hop_warning(scenario, pairs), *_buffer_warning(scenario)]


def _check_ranks(scenario: Scenario) -> None:
    ranks, topology_file = scenario.ranks, scenario.files.get("topology")
    if len(scenario.traces) != ranks:
        raise InputError(
            f"{len(scenario.traces)} traces for {ranks} ranks",
            file=scenario.files.get("logical"),
            field="logical-dims",
            value=list(scenario.logical_dims),
        )
    if scenario.topology.hosts < ranks:
        raise InputError(
            f"the topology has {scenario.topology.hosts} hosts for {ranks} ranks",
            file=topology_file,
            field=None if "topology" in scenario.files else "topology",
        )
    switch = next((rank for rank in range(ranks) if not scenario.topology.is_host(rank)), None)
    if switch is not None:
        raise InputError(
            f"rank r runs on node r, but node {switch} is a switch",
            file=topology_file,
            field=None if "topology" in scenario.files else "topology",
            allowed=f"nodes 0 to {ranks - 1} as hosts",
        )
    for group, members in scenario.groups.items():
        outside = [rank for rank in members if not 0 <= rank < ranks]
        if outside or len(set(members)) != len(members):
            raise InputError(
                "ranks are out of range or repeated",
                file=blame.group_file(scenario.files),
                field=f"group {group}",
                value=members,
                allowed=f"0 to {ranks - 1}, each once",
            )


def check_network(
    topology: Topology,
    network: dict[str, int | float | bool],
    ecn_rates: set[int],
    file: str | None = None,
) -> None:
    """What of the network alone cannot run: also used where there are no ranks. ``file``: the config.txt."""
    if network["ecn_enabled"]:
        for rate, link in topology.switch_port_rates().items():
            if rate not in ecn_rates:
                ends = f"{link.src} {link.dst}" if file else " to ".join(_names(topology, link))
                known = ", ".join(map(format_rate, sorted(ecn_rates))) or "none"
                raise InputError(
                    f"marking is on and a switch port of link {ends} has a rate without KMIN, KMAX and PMAX",
                    file=file,
                    field="KMIN_MAP, KMAX_MAP, PMAX_MAP" if file else "ecn",
                    value=format_rate(rate),
                    allowed=f"rates given: {known}" + ("" if file else _ECN_REMEDY),
                )
    if network["cc_mode"] == CC_MODES["dcqcn"] and network["rp_timer_us"] == 0:
        raise InputError(
            "DCQCN's increase timer would fire for ever at one time",
            file=file,
            field="rp_timer_us (RP_TIMER)",
            value=0,
            allowed="integers from 1",
        )
    if network["l2_chunk_bytes"] == 0 and (
        network["l2_back_to_zero"] or network["l2_ack_interval_bytes"] > 1
    ):
        raise InputError(
            "0 divides by zero with this acknowledgement interval or back-to-zero recovery",
            file=file,
            field="l2_chunk_bytes (L2_CHUNK_SIZE)",
            value=0,
            allowed="integers from 1",
        )


def _names(topology: Topology, link: Link) -> tuple[str, str]:
    return topology.node_names[link.src], topology.node_names[link.dst]


def _check_network(scenario: Scenario) -> None:
    rates = {row[0] for row in scenario.ecn}
    check_network(scenario.topology, scenario.network, rates, scenario.files.get("network"))
    system, file = scenario.system, scenario.files.get("system")
    if system["roofline_enabled"] and not system["replay_only"]:
        for name in ("peak_perf_tflops", "local_mem_bw_gbps"):
            if system[name] == 0 and _any_roofline_node(scenario):
                field = str(PARAMETERS[name].upstream_key) if file else name
                raise InputError(
                    "the roofline needs it", file=file, field=field, value=0, allowed="numbers above 0"
                )


def _any_roofline_node(scenario: Scenario) -> bool:
    graphs = {id(graph): graph for graph in scenario.traces}.values()
    return any(bool(((g.type == NodeType.COMP) & ~g.is_cpu_op & (g.tensor_bytes > 0)).any()) for g in graphs)


def _check_nodes(scenario: Scenario) -> None:
    for rank, graph in _distinct(scenario):
        if scenario.system["replay_only"]:
            continue
        memory = np.isin(graph.type, (NodeType.MEM_LOAD, NodeType.MEM_STORE))
        if memory.any() and scenario.system["memory_type"] == 0:
            raise InputError(
                "the trace uses remote memory and there is none",
                file=blame.trace_file(scenario.files, rank),
                field=_node(rank, graph, memory),
                value="NO_MEMORY_EXPANSION",
            )
        collective = graph.type == NodeType.COMM_COLL
        gather = collective & (graph.comm_type == CollectiveType.ALL_GATHER)
        small = gather & (graph.comm_bytes < int(scenario.system["preferred_dataset_splits"]))
        if small.any():
            raise InputError(
                "an all-gather of fewer bytes than preferred-dataset-splits never completes",
                file=blame.trace_file(scenario.files, rank),
                field=_node(rank, graph, small),
                value=int(graph.comm_bytes[small][0]),
            )


def _node(rank: int, graph: TraceGraph, mask: np.ndarray) -> str:
    return f"rank {rank}: node {int(graph.id[mask][0])}"


def _distinct(scenario: Scenario) -> Iterator[tuple[int, TraceGraph]]:
    """Each distinct trace with its lowest rank."""
    seen: set[int] = set()
    for rank, graph in enumerate(scenario.traces):
        if id(graph) not in seen:
            seen.add(id(graph))
            yield rank, graph


def _communicating_pairs(scenario: Scenario) -> set[tuple[int, int]]:
    """Ordered rank pairs that send to each other; checks every collective on the way."""
    if scenario.system["replay_only"]:
        return set()
    pairs: set[tuple[int, int]] = set()
    uses: dict[int, set[_Use]] = {}
    seen: set[_Phase] = set()
    for rank, graph in enumerate(scenario.traces):
        pairs |= _point_to_point_pairs(scenario, rank)
        for use in uses.setdefault(id(graph), _uses(graph)):
            for phase in _phases(scenario, use, rank):
                if phase not in seen:
                    seen.add(phase)
                    pairs.update(phase.pairs())
    return pairs


def _uses(graph: TraceGraph) -> set[_Use]:
    mask = graph.type == NodeType.COMM_COLL
    columns = [getattr(graph, name)[mask].tolist() for name in ("comm_type", "involved_dims", "group")]
    return {
        _Use(CollectiveType(kind), involved, group) for kind, involved, group in zip(*columns, strict=True)
    }


def _point_to_point_pairs(scenario: Scenario, rank: int) -> set[tuple[int, int]]:
    graph = scenario.traces[rank]
    mask = np.isin(graph.type, (NodeType.COMM_SEND, NodeType.COMM_RECV))
    pairs = set()
    rows = zip(graph.id[mask].tolist(), graph.type[mask].tolist(), graph.peer[mask].tolist(), strict=True)
    for node, kind, peer in rows:
        if peer >= scenario.ranks or peer == rank:
            raise InputError(
                "the peer is no other rank",
                file=blame.trace_file(scenario.files, rank),
                field=f"rank {rank}: node {node}",
                value=peer,
                allowed=f"0 to {scenario.ranks - 1} but {rank}",
            )
        pairs.add((rank, peer) if kind == NodeType.COMM_SEND else (peer, rank))
    return pairs


def _phases(scenario: Scenario, use: _Use, rank: int) -> list[_Phase]:
    if use.kind in (CollectiveType.BROADCAST, CollectiveType.BARRIER):
        return []
    name = _IMPLEMENTATION_OF[use.kind]
    entries = scenario.implementations.get(name)
    key = f"{name.replace('_', '-')}-implementation"
    system = scenario.files.get("system")
    if not entries:
        raise InputError(f"the trace uses {use.kind.name} and no algorithm is given", file=system, field=key)
    dims = scenario.logical_dims
    if len(entries) > len(dims):
        text = f"{len(entries)} algorithms for {len(dims)} logical dimensions"
        raise InputError(text, file=system, field=key)
    found = list(_members(scenario, use, rank, entries))
    if not found:
        raise InputError(
            f"{use.kind.name} over a group of one rank never completes",
            file=blame.trace_file(scenario.files, rank),
            field=_where(use, rank),
            value=f"involved dims {use.involved:#b} of {list(dims)}",
        )
    for phase in found:
        _check_algorithm(phase, use, key, scenario, rank)
    return found


def _where(use: _Use, rank: int) -> str:
    return f"rank {rank}" + (f": group {use.group}" if use.group else "")


def _members(scenario: Scenario, use: _Use, rank: int, entries: list[Implementation]) -> Iterator[_Phase]:
    involved = use.involved
    if use.group:
        members = _group_members(scenario, use, rank)
        if len(members) < scenario.ranks:
            algorithm = entries[0][0] if len(entries) == 1 else RING
            if len(members) > 1:
                yield _Phase(tuple(members), algorithm)
            return
        involved = (1 << len(scenario.logical_dims)) - 1
    if entries[0][2]:
        if scenario.ranks > 1:
            yield _Phase(tuple(range(scenario.ranks)), entries[0][0])
        return
    stride = 1
    for dim, size in enumerate(scenario.logical_dims):
        if dim < len(entries) and involved >> dim & 1 and size > 1:
            first = rank - rank // stride % size * stride
            yield _Phase(tuple(first + i * stride for i in range(size)), entries[dim][0])
        stride *= size


def _group_members(scenario: Scenario, use: _Use, rank: int) -> list[int]:
    members = scenario.groups.get(use.group)
    if members is None:
        known = ", ".join(map(str, sorted(scenario.groups))) or "none are defined"
        raise InputError(
            "unknown communicator group",
            file=blame.trace_file(scenario.files, rank),
            field=f"rank {rank}: pg_name",
            value=use.group,
            allowed=known,
        )
    if rank not in members:
        raise InputError(
            "the rank is not in the group that it uses",
            file=blame.trace_file(scenario.files, rank),
            field=_where(use, rank),
            value=members,
        )
    return members


def _check_algorithm(phase: _Phase, use: _Use, key: str, scenario: Scenario, rank: int) -> None:
    size, system = len(phase.members), scenario.files.get("system")
    name = _POWER_OF_TWO.get(phase.algorithm)
    if name and size & (size - 1):
        raise InputError(
            f"{name} needs a power of two, and a ring of {size} ranks uses it",
            file=system,
            field=key,
            value=name,
            allowed="ring, direct",
        )
    if phase.algorithm == HALVING_DOUBLING and use.kind == CollectiveType.ALL_TO_ALL:
        raise InputError("no such all-to-all", file=system, field=key, value=name, allowed="ring, direct")
    subgroup = use.group and len(scenario.groups[use.group]) < scenario.ranks
    if subgroup and phase.algorithm == DOUBLE_BINARY_TREE:
        raise InputError(
            "a communicator group cannot use the tree",
            file=system,
            field=_where(use, rank),
            value=name,
            allowed="ring, direct, halvingDoubling",
        )


def _check_reachable(scenario: Scenario, pairs: np.ndarray) -> None:
    apart = scenario.topology.links_apart
    lost = pairs[apart[pairs[:, 0], pairs[:, 1]] < 0]
    if len(lost):
        src, dst = min(map(tuple, lost.tolist()))
        raise InputError(
            f"host {src} sends to host {dst} and no path leads there (hosts do not forward)",
            file=scenario.files.get("topology"),
            field=None if "topology" in scenario.files else "topology",
        )


def _buffer_warning(scenario: Scenario) -> list[str]:
    network = scenario.network
    return topology_facts.buffer_remarks(
        scenario.topology, int(network["buffer_bytes"]), float(network["headroom_factor"])
    )


def _hop_warning(scenario: Scenario, pairs: np.ndarray) -> list[str]:
    """HPCC feedback has slots for few hops; pairs farther apart run without control."""
    limit = int(scenario.network["int_max_hops"])
    if scenario.network["cc_mode"] != CC_MODES["hpcc"]:
        return []
    if scenario.cc_disabled_pairs is not None:
        pairs = pairs[~scenario.cc_disabled_pairs[pairs[:, 0], pairs[:, 1]]]
    far = int(np.sum(scenario.topology.links_apart[pairs[:, 0], pairs[:, 1]] > limit + 1))
    if not far:
        return []
    without = f"{far} of {len(pairs)} controlled pairs run without it"
    return [f"HPCC ignores feedback over more than {limit} switches (int_max_hops): {without}"]
