"""A model's inference step on one rank as a serial chain of compute and collective nodes.

A MoE layer is attention, all-reduce over TP, all-to-all over EP (dispatch), experts, all-to-all over EP
(combine), shared FFN, all-reduce over TP. A dense layer is attention, all-reduce, FFN, all-reduce. Models
with one all-reduce per layer keep the one after attention. All ranks run the same chain. Between layers
there may be a barrier (parameter ``layer_sync``): without one the ranks drift apart by nanoseconds, and
patterns that are free of collisions when all start together lose that. A degree of one has nobody to talk to,
so that collectives over it are left out; a dense model has no all-to-all, and the groups of TP ranks that EP
counts are replicas of each other.

Volumes in bytes, with 2 bytes an element: all-reduce T * width * 2, all-to-all T * width * k * 2 / EP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hpcmoe import catalog, parameters
from hpcmoe.compute import layer_flop
from hpcmoe.errors import InputError
from hpcmoe.model import Model
from hpcmoe.parameters import Value
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode

BYTES_PER_ELEMENT = 2
TP_DIM, EP_DIM = 0b01, 0b10  # involved dimensions: logical dims are [TP, EP]


@dataclass(frozen=True)
class Workload:
    """The chain of one model under one strategy; ``layers`` counts dense and MoE layers together."""

    model: Model
    tp: int
    ep: int
    tokens: int
    layers: int
    graph: TraceGraph


def build_workload(
    model: Model,
    tp: int,
    ep: int,
    tokens: int,
    moe_layers: int | None = None,
    options: Mapping[str, Value] | None = None,
) -> Workload:
    """The chain of all layers, or of those up to the ``moe_layers``-th MoE layer (dense model: layer).

    ``options`` are parameters of the section 'workload', all of them; None is the study's defaults.
    """
    _check(model, tp, ep, tokens, moe_layers)
    options = (
        parameters.complete(parameters.defaults("study", "workload"), "workload")
        if options is None
        else options
    )
    layers = model.layers_run(moe_layers)
    maker = _LayerMaker(model, tp, ep, tokens)
    nodes: list[TraceNode] = []
    for layer in range(layers):
        for node in maker.layer(layer, synchronized=bool(options["layer_sync"]) and layer > 0):
            node.id = len(nodes)
            node.parents = (node.id - 1,) if nodes else ()
            nodes.append(node)
    return Workload(model, tp, ep, tokens, layers, TraceGraph.from_nodes(nodes))


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


def all_reduce_bytes(model: Model, tokens: int) -> int:
    """Bytes that every rank of a TP group reduces."""
    return tokens * model.all_reduce_width * BYTES_PER_ELEMENT


def all_to_all_bytes(model: Model, tokens: int, ep: int) -> int:
    """Bytes that every rank of an EP group spreads over the group, itself included."""
    return tokens * model.expert_width * model.top_k * BYTES_PER_ELEMENT // ep


class _LayerMaker:
    """Nodes of a layer; sizes depend only on whether the layer is dense."""

    def __init__(self, model: Model, tp: int, ep: int, tokens: int) -> None:
        self._model, self._tp, self._ep, self._tokens = model, tp, ep, tokens
        self._split: dict[str, Any] = catalog.study()["layer"]
        self._dense_at = frozenset(model.dense_at)
        kinds = ((True, model.dense_layers), (False, model.moe_layers))
        self._flop = {dense: layer_flop(model, tokens, dense) for dense, count in kinds if count}
        self._all_reduce_bytes = all_reduce_bytes(model, tokens)
        self._all_to_all_bytes = all_to_all_bytes(model, tokens, ep)

    def layer(self, layer: int, *, synchronized: bool) -> Iterator[TraceNode]:
        """Nodes of the layer in order, without those of a collective over one rank."""
        if synchronized:
            yield self._barrier(layer)
        for node in self._nodes(layer, layer in self._dense_at):
            if node.type != NodeType.COMM_COLL or self._ranks_of(node) > 1:
                yield node

    def _ranks_of(self, node: TraceNode) -> int:
        return self._tp if node.involved_dims == TP_DIM else self._ep

    def _nodes(self, layer: int, dense: bool) -> Iterator[TraceNode]:
        flop = self._flop[dense]
        yield self._compute(layer, "attn", flop.attention / self._tp, self._split["attention_tensor_bytes"])
        yield self._collective(layer, "ar1")
        if not dense:
            yield self._collective(layer, "disp")
            yield self._compute(layer, "exp", flop.experts / self._ep, self._split["expert_tensor_bytes"])
            yield self._collective(layer, "comb")
        yield self._compute(layer, "ffn", flop.ffn / self._tp, self._ffn_bytes())
        if self._model.all_reduces_per_layer > 1:
            yield self._collective(layer, "ar2")

    def _ffn_bytes(self) -> int:
        return max(1, self._split["ffn_tensor_bytes"] * self._tokens // catalog.study()["tokens"])

    def _compute(self, layer: int, role: str, flop: Fraction, tensor_bytes: int) -> TraceNode:
        node = TraceNode(0, NodeType.COMP, f"L{layer}.{role}", layer=layer)
        node.num_ops, node.tensor_bytes = max(1, int(flop)), tensor_bytes
        return node

    def _barrier(self, layer: int) -> TraceNode:
        node = TraceNode(0, NodeType.COMM_COLL, f"L{layer}.sync", layer=layer)
        node.comm_type = CollectiveType.BARRIER
        return node

    def _collective(self, layer: int, role: str) -> TraceNode:
        reduce = role.startswith("ar")
        node = TraceNode(0, NodeType.COMM_COLL, f"L{layer}.{role}", layer=layer)
        node.comm_type = CollectiveType.ALL_REDUCE if reduce else CollectiveType.ALL_TO_ALL
        node.comm_bytes = self._all_reduce_bytes if reduce else self._all_to_all_bytes
        node.involved_dims = TP_DIM if reduce else EP_DIM
        return node


def compute_time_ns(graph: TraceGraph, peak_tflops: float, mem_bw_gbps: float) -> int:
    """GPU time of a serial chain under the roofline, every node truncated to whole ns."""
    total = 0
    for ops, size in zip(graph.num_ops.tolist(), graph.tensor_bytes.tolist(), strict=True):
        if ops and size:
            perf = min(mem_bw_gbps * 1e9 * (ops / size), peak_tflops * 1e12)
            total += int(ops / perf * 1e9)
    return total
