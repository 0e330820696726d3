"""Faults between ranks: sends without receives, and ranks of a group whose collectives differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from hpcmoe.et import files
from hpcmoe.et.problems import Checked
from hpcmoe.trace import NodeType, TraceNode

_Key = tuple[int, int, int]  # src, dst, tag
_POINT_TO_POINT = (NodeType.COMM_SEND, NodeType.COMM_RECV)


@dataclass(frozen=True)
class World:
    """How many ranks there are, their logical dimensions if known, and groups from a file."""

    ranks: int
    dims: Sequence[int] = ()
    groups: Mapping[int, list[int]] = field(default_factory=dict)

    def neighbours(self, rank: int, involved: int) -> tuple[int, ...]:
        """Ranks that differ from ``rank`` in involved dimensions only."""
        stride, members = 1, [rank]
        for dim, size in enumerate(self.dims):
            if involved >> dim & 1:
                members = [
                    member + (i - member // stride % size) * stride for member in members for i in range(size)
                ]
            stride *= size
        return tuple(sorted(members))


def check(traces: Mapping[int, Checked], world: World) -> int:
    """Adds faults to the traces; returns how many collectives could not be compared because they are over
    some of the logical dimensions and these are not known."""
    _match_messages(traces, world)
    return _compare_collectives(traces, world)


def _match_messages(traces: Mapping[int, Checked], world: World) -> None:
    posted: dict[int, dict[_Key, list[TraceNode]]] = {kind: defaultdict(list) for kind in _POINT_TO_POINT}
    for rank, found in traces.items():
        faulty = {fault.field for fault in found.faults}
        for node in found.nodes:
            if node.type not in _POINT_TO_POINT or f"node {node.id}: {_peer_name(node)}" in faulty:
                continue
            if node.peer >= world.ranks or node.peer == rank:
                allowed = f"0 to {world.ranks - 1} but {rank}"
                found.fault("the peer is no other rank", node.id, _peer_name(node), node.peer, allowed)
                continue
            pair = (rank, node.peer) if node.type == NodeType.COMM_SEND else (node.peer, rank)
            posted[node.type][(*pair, node.tag)].append(node)
    sends, receives = (posted[kind] for kind in _POINT_TO_POINT)
    for key in sorted({*sends, *receives}):
        _match(traces, key, sends[key], receives[key])


def _peer_name(node: TraceNode) -> str:
    return "comm_dst" if node.type == NodeType.COMM_SEND else "comm_src"


def _match(
    traces: Mapping[int, Checked], key: _Key, sends: list[TraceNode], receives: list[TraceNode]
) -> None:
    """The n-th send of a key belongs to the n-th receive of that key."""
    src, dst, tag = key
    for send, receive in zip_longest(sends, receives):
        if receive is None:
            if src in traces:
                text, remedy = f"no COMM_RECV of rank {dst} takes this message", f"one with comm_src {src}"
                traces[src].fault(text, send.id, "comm_tag", tag, f"{remedy} and this tag")
        elif send is None:
            if dst in traces:
                text, remedy = f"no COMM_SEND of rank {src} sends this message", f"one with comm_dst {dst}"
                traces[dst].fault(text, receive.id, "comm_tag", tag, f"{remedy} and this tag")
        elif send.comm_bytes != receive.comm_bytes:
            text = f"node {receive.id} of rank {dst} expects {receive.comm_bytes} bytes of this message"
            traces[src].fault(text, send.id, "comm_size", send.comm_bytes, "the same size on both sides")


def _compare_collectives(traces: Mapping[int, Checked], world: World) -> int:
    series: dict[tuple[int, tuple[int, ...]], dict[int, list[TraceNode]]] = defaultdict(dict)
    unknown = 0
    for rank, found in traces.items():
        for node in found.nodes:
            if node.type != NodeType.COMM_COLL:
                continue
            members = _members(found, node, world)
            if members is None:
                unknown += not node.group
                continue
            series[node.group, members].setdefault(rank, []).append(node)
    for (group, members), by_rank in series.items():
        _compare_group(traces, group, members, by_rank)
    return unknown


def _members(found: Checked, node: TraceNode, world: World) -> tuple[int, ...] | None:
    """The ranks that take part; None where that is unknown, or a fault that is added here."""
    rank = found.trace.rank
    if not node.group:
        return _world_members(rank, node.involved_dims, world)
    defined = found.groups.get(node.group, world.groups.get(node.group))
    if defined is None:
        known = sorted({*found.groups, *world.groups})
        found.fault("unknown communicator group", node.id, "pg_name", node.group, known or "none is defined")
        return None
    members = tuple(sorted(set(defined))) or tuple(range(world.ranks))
    if rank not in members or members[-1] >= world.ranks:
        text = f"group {node.group} is not one that rank {rank} of {world.ranks} can use"
        found.fault(text, node.id, "pg_name", list(members), f"a group of ranks of the run with rank {rank}")
        return None
    return members


def _world_members(rank: int, involved: int, world: World) -> tuple[int, ...] | None:
    if world.dims:
        return world.neighbours(rank, involved)
    everywhere = involved & (involved + 1) == 0 and involved.bit_length() > 1
    return tuple(range(world.ranks)) if everywhere else None


def _compare_group(
    traces: Mapping[int, Checked], group: int, members: tuple[int, ...], by_rank: dict[int, list[TraceNode]]
) -> None:
    """The n-th collective of a group is the same one on each of its ranks; the first rank sets the rule."""
    present = [rank for rank in members if rank in traces]
    first = min(by_rank)
    name = f"group {group}" if group else f"ranks {members[0]} to {members[-1]}"
    for rank in present:
        own = by_rank.get(rank, [])
        for position, (theirs, mine) in enumerate(zip_longest(by_rank[first], own)):
            if theirs is not None and mine is not None and _same(theirs, mine):
                continue
            _differs(traces[rank], (first, theirs), mine, f"collective {position} of {name}")
            break


def _same(a: TraceNode, b: TraceNode) -> bool:
    return (a.comm_type, a.comm_bytes) == (b.comm_type, b.comm_bytes)


def _differs(
    found: Checked, reference: tuple[int, TraceNode | None], mine: TraceNode | None, what: str
) -> None:
    rank, theirs = reference
    expected = f"as node {theirs.id} of rank {rank}" if theirs else f"as rank {rank}, which has none"
    if mine is None:
        assert theirs is not None
        found.fault(f"{what} is missing", None, "COMM_COLL", allowed=f"{expected}: {_text(theirs)}")
    elif theirs is not None and mine.comm_type == theirs.comm_type:
        found.fault(
            f"{what} differs", mine.id, "comm_size", mine.comm_bytes, f"{expected}: {theirs.comm_bytes}"
        )
    else:
        allowed = f"{expected}: {_text(theirs)}" if theirs else expected
        found.fault(f"{what} differs", mine.id, "comm_type", files.collective_name(mine.comm_type), allowed)


def _text(node: TraceNode) -> str:
    return f"{files.collective_name(node.comm_type)} of {node.comm_bytes} B"
