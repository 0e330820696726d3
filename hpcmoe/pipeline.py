"""Data and pipeline parallelism around the workload of one TP x EP group.

Rank = ((pp * DP + dp) * EP + ep) * TP + tp; logical dimensions [TP, EP, DP, PP]. Replicas (DP) run the same
step on tokens of their own and share nothing but the network. Stages (PP) hold consecutive layers, as many
each as possible, the leading ones one more where they do not divide. The tokens of a step are cut into
microbatches in the same way. A rank is a serial chain: for one microbatch after the other it receives
activations from its peer in the stage before, runs its layers, and sends on to its peer in the stage after;
it goes on when the message is delivered. A message has tokens * hidden * 2 bytes / TP. Barriers between
layers are of the TP x EP ranks of one replica and stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from hpcmoe.design import Degrees
from hpcmoe.errors import InputError
from hpcmoe.layer_costs import BYTES_PER_ELEMENT
from hpcmoe.model import Model
from hpcmoe.parameters import Value
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode
from hpcmoe.workload import Workload, build_workload

_MOST_MESSAGE_BYTES = 2**31 - 1
_GROUP_DIMS = 0b11  # of [TP, EP, DP, PP]
_POINT_TO_POINT = (NodeType.COMM_SEND, NodeType.COMM_RECV)
_COPIED = tuple(name for name in TraceNode.__slots__ if name not in ("name", "parents"))

GroupGraphs = Callable[[int], Sequence[TraceGraph]]
"""Graphs of the TP x EP ranks of one group for a number of tokens, peers counted within the group."""


@dataclass(frozen=True)
class Traces:
    """A graph per rank, which ranks may share, and what a user has to know about them."""

    graphs: list[TraceGraph]
    warnings: tuple[str, ...]


def build_traces(
    model: Model,
    degrees: Degrees,
    tokens: int,
    moe_layers: int | None,
    options: Mapping[str, Value],
    routing: str | None = None,
) -> Traces:
    """The graphs of all ranks for one step of a model; the arguments are those of ``build_workload``."""

    @cache
    def group(size: int) -> Workload:
        return build_workload(model, degrees.tp, degrees.ep, size, moe_layers, options, routing)

    graphs = rank_graphs(
        lambda size: group(size).graphs,
        degrees,
        tokens=tokens,
        layers=model.layers_run(moe_layers),
        hidden=model.hidden_size,
        microbatches=int(options["microbatches"]),
    )
    return Traces(graphs, group(max(shares(tokens, int(options["microbatches"])))).warnings)


def rank_graphs(
    group: GroupGraphs, degrees: Degrees, *, tokens: int, layers: int, hidden: int, microbatches: int = 1
) -> list[TraceGraph]:
    """A graph per rank; ranks with equal work share theirs where it names no peer.

    ``layers`` is the number of layers that the graphs of ``group`` have, ``hidden`` the width of activations
    in elements. InputError for more stages than layers or more microbatches than tokens.
    """
    if degrees.pp == microbatches == 1:
        return _replicas(_apart(group(tokens), degrees), degrees)
    _check(degrees, tokens, layers, microbatches)
    stages, sizes = shares(layers, degrees.pp), shares(tokens, microbatches)
    by_size = {size: _apart(group(size), degrees) for size in set(sizes)}
    maker = _StageMaker(degrees, stages, sizes, by_size, hidden)
    return [maker.graph(rank) for rank in range(degrees.ranks)]


def activation_bytes(tokens: int, hidden: int, tp: int) -> int:
    """What a rank sends to the next stage: its TP share of the activations."""
    return max(1, tokens * hidden * BYTES_PER_ELEMENT // tp)


def shares(total: int, parts: int) -> list[int]:
    """``total`` in ``parts`` that differ by one at most, larger ones first."""
    return [total // parts + (part < total % parts) for part in range(parts)]


def _check(degrees: Degrees, tokens: int, layers: int, microbatches: int) -> None:
    if degrees.pp > layers:
        raise InputError(
            "more stages than layers", field="strategy: pp", value=degrees.pp, allowed=f"1 to {layers}"
        )
    if microbatches > tokens:
        raise InputError(
            "more microbatches than tokens",
            field="microbatches",
            value=microbatches,
            allowed=f"1 to {tokens}",
        )


def _apart(graphs: Sequence[TraceGraph], degrees: Degrees) -> list[TraceGraph]:
    """The graphs with barriers of one group where there are several groups."""
    if degrees.dp == degrees.pp == 1:
        return list(graphs)
    known = {id(graph): _with_own_barriers(graph) for graph in graphs}
    return [known[id(graph)] for graph in graphs]


def _with_own_barriers(graph: TraceGraph) -> TraceGraph:
    barriers = (graph.type == NodeType.COMM_COLL) & (graph.comm_type == CollectiveType.BARRIER)
    dims = np.where(barriers, _GROUP_DIMS, graph.involved_dims).astype(graph.involved_dims.dtype)
    return replace(graph, involved_dims=dims)


def _replicas(graphs: Sequence[TraceGraph], degrees: Degrees) -> list[TraceGraph]:
    size = degrees.tp * degrees.ep
    return [_moved(graphs[rank % size], rank - rank % size) for rank in range(degrees.ranks)]


def _moved(graph: TraceGraph, by: int) -> TraceGraph:
    """The graph with other peers, itself where it has none."""
    mask = np.isin(graph.type, _POINT_TO_POINT)
    if not by or not mask.any():
        return graph
    return replace(graph, peer=np.where(mask, graph.peer + by, graph.peer).astype(graph.peer.dtype))


@dataclass
class _Chain:
    """Nodes of one rank as they are put one after the other; the next one waits for ``ends``."""

    nodes: list[TraceNode] = field(default_factory=list)
    ends: tuple[int, ...] = ()
    passing: list[int] = field(default_factory=list)

    def pass_on(self, kind: NodeType, layer: int, size: int, tag: int) -> None:
        """A message to or from another stage; its peer is known per rank only."""
        role = "send" if kind == NodeType.COMM_SEND else "recv"
        node = TraceNode(len(self.nodes), kind, f"L{layer}.{role}", self.ends, layer=layer)
        node.comm_bytes, node.tag = size, tag
        self.passing.append(node.id)
        self.nodes.append(node)
        self.ends = (node.id,)

    def run(self, graph: TraceGraph, first: int, end: int) -> None:
        """The nodes of layers ``first`` to ``end - 1``."""
        kept = np.flatnonzero((graph.layer >= first) & (graph.layer < end)).tolist()
        place = {index: len(self.nodes) + position for position, index in enumerate(kept)}
        open_ends = set(place.values())
        for index in kept:
            parents = tuple(place[parent] for parent in graph.parents_of(index).tolist() if parent in place)
            open_ends.difference_update(parents)
            columns = {name: getattr(graph, name)[index].item() for name in _COPIED}
            columns["id"] = place[index]
            self.nodes.append(TraceNode(name=graph.names[index], parents=parents or self.ends, **columns))
        self.ends = tuple(sorted(open_ends))


class _StageMaker:
    """Graphs of the ranks of all stages. Ranks that differ in peers alone share their other arrays."""

    def __init__(
        self,
        degrees: Degrees,
        stages: Sequence[int],
        sizes: Sequence[int],
        graphs: Mapping[int, Sequence[TraceGraph]],
        hidden: int,
    ) -> None:
        self._degrees, self._sizes, self._graphs, self._hidden = degrees, sizes, graphs, hidden
        self._first = np.concatenate([[0], np.cumsum(stages)]).tolist()
        self._known: dict[tuple[int, ...], tuple[TraceGraph, np.ndarray]] = {}

    def graph(self, rank: int) -> TraceGraph:
        group = self._degrees.tp * self._degrees.ep
        inner, stage = rank % group, rank // (group * self._degrees.dp)
        same = (stage, *(id(graphs[inner]) for graphs in self._graphs.values()))
        if same not in self._known:
            self._known[same] = self._stage(stage, inner)
        shared, passing = self._known[same]
        moved = _moved(shared, rank - inner)
        if not passing.size:
            return moved
        step = group * self._degrees.dp
        peers = moved.peer.copy()
        peers[passing] = np.where(shared.type[passing] == NodeType.COMM_SEND, rank + step, rank - step)
        return replace(moved, peer=peers)

    def _stage(self, stage: int, inner: int) -> tuple[TraceGraph, np.ndarray]:
        """The graph of a rank of the stage, and the places of its messages from and to other stages."""
        chain, (first, end) = _Chain(), self._first[stage : stage + 2]
        for tag, size in enumerate(self._sizes):
            if stage > 0:
                chain.pass_on(NodeType.COMM_RECV, first, self._message_bytes(size), tag)
            chain.run(self._graphs[size][inner], first, end)
            if stage < self._degrees.pp - 1:
                chain.pass_on(NodeType.COMM_SEND, end - 1, self._message_bytes(size), tag)
        return TraceGraph.from_nodes(chain.nodes), np.array(chain.passing, dtype=np.int64)

    def _message_bytes(self, tokens: int) -> int:
        size = activation_bytes(tokens, self._hidden, self._degrees.tp)
        if size > _MOST_MESSAGE_BYTES:
            raise InputError(
                f"a message of {size} bytes between stages; more microbatches make it smaller",
                field="microbatches",
                value=len(self._sizes),
                allowed=f"messages up to {_MOST_MESSAGE_BYTES} bytes",
            )
        return size
