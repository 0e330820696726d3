"""A model's inference step on the ranks as graphs of compute and communication nodes.

A MoE layer is attention, all-reduce over TP, all-to-all over EP (dispatch), experts, all-to-all over EP
(combine), shared FFN, all-reduce over TP. A dense layer is attention, all-reduce, FFN, all-reduce. Models
with one all-reduce per layer keep the one after attention. Between layers there may be a barrier (parameter
``layer_sync``): without one the ranks drift apart by nanoseconds, and patterns that are free of collisions
when all start together lose that. A degree of one has nobody to talk to, so that collectives over it are left
out; a dense model has no all-to-all, and the groups of TP ranks that EP counts are replicas of each other.

Volumes in bytes, with 2 bytes an element: all-reduce T * width * 2, all-to-all T * width * k * 2 / EP.

All ranks run the same serial chain, but for two parameters. With ``overlap_shared_ffn`` the FFN of a MoE
layer waits for the first all-reduce alone and runs beside dispatch, experts and combine; what follows waits
for both. With an expert load (``expert_skew`` or a routing histogram) the all-to-alls become messages of
uneven size: every rank sends to the others in turn, beginning with the one after it, and has posted all its
receives; the next node waits for all of them. Experts then compute what their rank has received.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hpcmoe import expert_load, parameters
from hpcmoe.errors import InputError
from hpcmoe.expert_load import ExpertLoad
from hpcmoe.layer_costs import BYTES_PER_ELEMENT, Cost, DecodeCosts, PrefillCosts, Share
from hpcmoe.model import Model
from hpcmoe.parameters import PHASES, Value
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode

TP_DIM, EP_DIM = 0b01, 0b10  # involved dimensions: logical dims are [TP, EP]
_MOST_OPS = 2**63 - 1  # of one node, in the trace format
_MOST_MESSAGE_BYTES = 2**31 - 1  # of one SEND


@dataclass(frozen=True)
class Workload:
    """One model under one strategy: a graph per rank, rank = ep * TP + tp, which ranks may share. ``layers``
    counts dense and MoE layers together."""

    model: Model
    tp: int
    ep: int
    tokens: int
    layers: int
    graphs: tuple[TraceGraph, ...]
    warnings: tuple[str, ...] = ()

    @property
    def graph(self) -> TraceGraph:
        """The graph of rank 0: of every rank where the load is even."""
        return self.graphs[0]


def default_options() -> dict[str, Value]:
    """The study's values of the parameters of the section 'workload'."""
    return parameters.complete(parameters.defaults("study", "workload"), "workload")


def build_workload(
    model: Model,
    tp: int,
    ep: int,
    tokens: int,
    moe_layers: int | None = None,
    options: Mapping[str, Value] | None = None,
    routing: str | None = None,
) -> Workload:
    """The graphs of all layers, or of those up to the ``moe_layers``-th MoE layer (dense model: layer).

    ``options`` are parameters of the section 'workload'; those that are not given have the study's values.
    ``routing`` is the path of a routing histogram.
    """
    options = default_options() | dict(options or {})
    _check(model, tp, ep, tokens, moe_layers)
    _check_options(model, options, routing)
    layers = model.layers_run(moe_layers)
    maker = _GraphMaker(model, tp, ep, tokens, options, _load(model, ep, options, routing))
    graphs = [maker.graph(rank, layers) for rank in range(tp * ep if maker.uneven else 1)]
    shared = graphs if maker.uneven else graphs * (tp * ep)
    return Workload(model, tp, ep, tokens, layers, tuple(shared), tuple(_warnings(model, tp, ep)))


def _check(model: Model, tp: int, ep: int, tokens: int, moe_layers: int | None) -> None:
    if tp < 1 or ep < 1:
        raise InputError("bad degree", field="strategy", value=f"tp{tp}ep{ep}", allowed="integers from 1")
    if not 1 <= tokens < 2**31:
        raise InputError("bad number of tokens", field="tokens", value=tokens, allowed="integers from 1")
    if moe_layers is not None and not 1 <= moe_layers <= model.counted_layers:
        kind = "MoE layers" if model.has_experts else "layers"
        raise InputError(
            f"bad number of {kind}", field="layers", value=moe_layers, allowed=f"1 to {model.counted_layers}"
        )
    if model.has_experts and ep > model.routed_experts:
        raise InputError(
            f"more EP ranks than {model.name} has experts",
            field="strategy",
            value=f"tp{tp}ep{ep}",
            allowed=f"EP up to {model.routed_experts}",
        )


def _check_options(model: Model, options: Mapping[str, Value], routing: str | None) -> None:
    if options["phase"] == PHASES["decode"] and not options["context_tokens"]:
        raise InputError(
            "decode reads a key-value cache",
            field="context_tokens",
            value=0,
            allowed="integers from 1: the tokens that each sequence has there",
        )
    if routing is None:
        return
    if not model.has_experts:
        raise InputError(f"{model.name} has no experts to route to", field="routing", value=routing)
    if options["expert_skew"]:
        raise InputError(
            "a routing histogram says how popular experts are, and so does expert_skew: give one of them",
            field="routing",
            value=routing,
        )


def _load(model: Model, ep: int, options: Mapping[str, Value], routing: str | None) -> ExpertLoad | None:
    """None: every expert gets the same, and all-to-alls stay collectives."""
    if not model.has_experts:
        return None
    measured = None if routing is None else expert_load.read_histogram(routing, model)
    if ep == 1 or not (measured or options["expert_skew"]):
        return None
    return measured or expert_load.zipf(
        model, float(options["expert_skew"]), int(options["expert_order_seed"])
    )


def _warnings(model: Model, tp: int, ep: int) -> Iterable[str]:
    if not model.has_experts and ep > 1:
        yield (
            f"{model.name} has no experts: EP has nothing to divide, its {ep} groups of {tp} ranks are "
            "replicas that do not talk to each other"
        )


def all_reduce_bytes(model: Model, tokens: int) -> int:
    """Bytes that every rank of a TP group reduces."""
    return tokens * model.all_reduce_width * BYTES_PER_ELEMENT


def all_to_all_bytes(model: Model, tokens: int, ep: int) -> int:
    """Bytes that every rank of an EP group spreads over the group, itself included."""
    return tokens * model.expert_width * model.top_k * BYTES_PER_ELEMENT // ep


class _Nodes:
    """Nodes in the order of their ids; what comes next waits for ``ends``."""

    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []
        self.ends: tuple[int, ...] = ()

    def add(self, nodes: Iterable[TraceNode], after: tuple[int, ...]) -> tuple[int, ...]:
        """Side by side; gives their ids."""
        first = len(self.nodes)
        for node in nodes:
            node.id, node.parents = len(self.nodes), after
            self.nodes.append(node)
        return tuple(range(first, len(self.nodes)))

    def then(self, nodes: Iterable[TraceNode]) -> None:
        """Side by side, after everything so far."""
        self.ends = self.add(nodes, self.ends) or self.ends


class _GraphMaker:
    """Graphs of the ranks. Costs depend only on whether a layer is dense and on the load of a rank."""

    def __init__(
        self,
        model: Model,
        tp: int,
        ep: int,
        tokens: int,
        options: Mapping[str, Value],
        load: ExpertLoad | None,
    ) -> None:
        self._model, self._tp, self._ep, self._load = model, tp, ep, load
        self._synchronized, self._overlap = bool(options["layer_sync"]), bool(options["overlap_shared_ffn"])
        costs = DecodeCosts if options["phase"] == PHASES["decode"] else PrefillCosts
        self._costs = costs(model, tp, tokens, int(options["context_tokens"]))
        dense = set(model.dense_at)
        with_experts = [layer for layer in range(model.layers) if layer not in dense]
        self._moe_index = {layer: index for index, layer in enumerate(with_experts)}
        self._all_reduce_bytes = all_reduce_bytes(model, tokens)
        self._all_to_all_bytes = all_to_all_bytes(model, tokens, ep)
        self._known_parts: dict[int, list[int]] = {}

    @property
    def uneven(self) -> bool:
        """Whether ranks have graphs of their own."""
        return self._load is not None

    def graph(self, rank: int, layers: int) -> TraceGraph:
        """The nodes of a rank in ``layers`` layers."""
        line = _Nodes()
        for layer in range(layers):
            self._add_layer(line, layer, rank)
        return TraceGraph.from_nodes(line.nodes)

    def _add_layer(self, line: _Nodes, layer: int, rank: int) -> None:
        dense = layer not in self._moe_index
        if self._synchronized and layer:
            line.then([_barrier(layer)])
        line.then([_compute(layer, "attn", self._costs.attention(dense))])
        line.then(self._all_reduce(layer, "ar1"))
        begin = line.ends
        if not dense:
            line.then(self._all_to_all(layer, "disp", rank))
            line.then([_compute(layer, "exp", self._costs.experts(self._share(layer, rank)))])
            line.then(self._all_to_all(layer, "comb", rank))
        ffn = [_compute(layer, "ffn", self._costs.ffn(dense))]
        if self._overlap and not dense:
            line.ends = (*line.ends, *line.add(ffn, after=begin))
        else:
            line.then(ffn)
        if self._model.all_reduces_per_layer > 1:
            line.then(self._all_reduce(layer, "ar2"))

    def _share(self, layer: int, rank: int) -> Share:
        if self._load is None:
            held = -(-self._model.routed_experts // self._ep)
            return Share(Fraction(1, self._ep), [Fraction(1, self._model.routed_experts)] * held)
        popularity = self._load.of_layer(self._moe_index[layer])
        counts, total = expert_load.placed(popularity, self._ep)[rank // self._tp], sum(popularity)
        return Share(Fraction(sum(counts), total), [Fraction(count, total) for count in counts])

    def _all_reduce(self, layer: int, role: str) -> Sequence[TraceNode]:
        if self._tp == 1:
            return ()
        return [_collective(layer, role, CollectiveType.ALL_REDUCE, self._all_reduce_bytes, TP_DIM)]

    def _all_to_all(self, layer: int, role: str, rank: int) -> Sequence[TraceNode]:
        if self._ep == 1:
            return ()
        if self._load is not None:
            return self._messages(layer, role, rank, self._load)
        return [_collective(layer, role, CollectiveType.ALL_TO_ALL, self._all_to_all_bytes, EP_DIM)]

    def _messages(self, layer: int, role: str, rank: int, load: ExpertLoad) -> list[TraceNode]:
        """Dispatch sends what the peer's experts get, combine gives back what the own ones got."""
        part, own = self._parts(layer, load), rank // self._tp
        nodes = []
        for step in range(1, self._ep):
            to, source = (own + step) % self._ep, (own - step) % self._ep
            sent, received = (part[to], part[own]) if role == "disp" else (part[own], part[source])
            nodes += self._message(NodeType.COMM_SEND, layer, role, rank, to, sent)
            nodes += self._message(NodeType.COMM_RECV, layer, role, rank, source, received)
        return nodes

    def _parts(self, layer: int, load: ExpertLoad) -> list[int]:
        """Bytes that each EP rank gets from every rank of its group."""
        index = self._moe_index[layer]
        if index not in self._known_parts:
            weights = expert_load.loads(load.of_layer(index), self._ep)
            self._known_parts[index] = expert_load.apportion(self._all_to_all_bytes, weights)
        return self._known_parts[index]

    def _message(
        self, kind: NodeType, layer: int, role: str, rank: int, ep_rank: int, size: int
    ) -> list[TraceNode]:
        """None where there is nothing to send: a message has a byte at least."""
        if not size:
            return []
        if size > _MOST_MESSAGE_BYTES:
            raise InputError(
                f"a message of layer {layer} would be {size} bytes, more than {_MOST_MESSAGE_BYTES}",
                field="tokens",
                allowed="fewer of them, or a larger EP",
            )
        peer = ep_rank * self._tp + rank % self._tp
        word = "to" if kind == NodeType.COMM_SEND else "from"
        node = TraceNode(0, kind, f"L{layer}.{role}.{word}{peer}", layer=layer)
        node.peer, node.comm_bytes, node.tag = peer, size, 2 * layer + (role == "comb")
        return [node]


def _compute(layer: int, role: str, cost: Cost) -> TraceNode:
    if cost.ops > _MOST_OPS or cost.tensor_bytes > _MOST_OPS:
        text = f"node L{layer}.{role} would have more than 2^63 operations or bytes"
        raise InputError(text, field="tokens", allowed="fewer of them")
    node = TraceNode(0, NodeType.COMP, f"L{layer}.{role}", layer=layer)
    node.num_ops, node.tensor_bytes = cost.ops, cost.tensor_bytes
    return node


def _barrier(layer: int) -> TraceNode:
    node = TraceNode(0, NodeType.COMM_COLL, f"L{layer}.sync", layer=layer)
    node.comm_type = CollectiveType.BARRIER
    return node


def _collective(layer: int, role: str, kind: CollectiveType, size: int, involved_dims: int) -> TraceNode:
    if size > _MOST_OPS:
        text = f"collective L{layer}.{role} would have more than 2^63 bytes"
        raise InputError(text, field="tokens", allowed="fewer of them")
    node = TraceNode(0, NodeType.COMM_COLL, f"L{layer}.{role}", layer=layer)
    node.comm_type, node.comm_bytes, node.involved_dims = kind, size, involved_dims
    return node


def compute_time_ns(graph: TraceGraph, peak_tflops: float, mem_bw_gbps: float) -> int:
    """GPU time of a serial chain under the roofline, every node truncated to whole ns."""
    total = 0
    for ops, size in zip(graph.num_ops.tolist(), graph.tensor_bytes.tolist(), strict=True):
        if ops and size:
            perf = min(mem_bw_gbps * 1e9 * (ops / size), peak_tflops * 1e12)
            total += int(ops / perf * 1e9)
    return total
