"""What the compute nodes of a layer cost: operations, and bytes for the roofline.

Prefill of T tokens: FLOP as ``hpcmoe.compute`` has them (calibrated where the model is), and byte counts
that keep every node compute-bound. With C tokens in the key-value cache before the step, attention has T C
more pairs of query and key.

Decode of one token for each of B sequences with C tokens in the cache, first principles throughout:

* attention: 2 B W + B C p FLOP, p being 4 a d, or 4 a c + 2 a r with latent attention, which works on the
  cache as it is stored; reads W weights and B C cached elements per token and layer
* FFN (router, latent projections, shared experts or dense FFN): 2 B W FLOP; reads W weights
* routed experts: 2 B k W FLOP; reads the weights of the experts that any of the B tokens chooses: with a
  share s of the popularity an expert is chosen with probability 1 - (1 - min(1, k s))^B, and the expected
  number of chosen ones is rounded

2 bytes an element. Attention's and the FFN's divide by TP, but for the cache: its key-value heads divide by
TP as far as they go, and a latent cache is on every rank. Activations are left out of the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hpcmoe import catalog
from hpcmoe.compute import layer_flop, pair_flop
from hpcmoe.model import Model
from hpcmoe.weights import cache_elements, layer_weights

BYTES_PER_ELEMENT = 2


@dataclass(frozen=True)
class Cost:
    """FLOP and bytes of one node on one rank."""

    ops: int
    tensor_bytes: int


@dataclass(frozen=True)
class Share:
    """What one EP rank has of a MoE layer: its part of the tokens, and the popularity of each of its experts
    as parts of one."""

    tokens: Fraction
    experts: Sequence[Fraction]


class PrefillCosts:
    """Compute-bound nodes; all tokens are of one sequence."""

    def __init__(self, model: Model, tp: int, tokens: int, context: int) -> None:
        self._tp, self._tokens = tp, tokens
        self._cut: dict[str, Any] = catalog.study()["layer"]
        kinds = ((True, model.dense_layers), (False, model.moe_layers))
        self._flop = {dense: layer_flop(model, tokens, dense) for dense, count in kinds if count}
        self._cached = tokens * context * pair_flop(model)

    def attention(self, dense: bool) -> Cost:
        flop = self._flop[dense].attention + self._cached
        return _cost(flop / self._tp, self._cut["attention_tensor_bytes"])

    def ffn(self, dense: bool) -> Cost:
        size = self._cut["ffn_tensor_bytes"] * self._tokens // catalog.study()["tokens"]
        return _cost(self._flop[dense].ffn / self._tp, size)

    def experts(self, share: Share) -> Cost:
        return _cost(self._flop[False].experts * share.tokens, self._cut["expert_tensor_bytes"])


class DecodeCosts:
    """Nodes that read their weights and the cache once a step."""

    def __init__(self, model: Model, tp: int, batch: int, context: int) -> None:
        self._model, self._tp, self._batch, self._context = model, tp, batch, context

    def attention(self, dense: bool) -> Cost:
        model, steps = self._model, self._batch * self._context
        held = layer_weights(model, dense).attention
        flop = 2 * self._batch * held + steps * pair_flop(model, cached=True)
        cache = steps * cache_elements(model) / self._cache_parts()
        return _cost(flop / self._tp, BYTES_PER_ELEMENT * (held / self._tp + cache))

    def _cache_parts(self) -> int:
        return 1 if self._model.mla is not None else min(self._tp, self._model.kv_heads)

    def ffn(self, dense: bool) -> Cost:
        layer = layer_weights(self._model, dense)
        held = Fraction(layer.tensor_parallel - layer.attention, self._tp)
        return _cost(2 * self._batch * held, BYTES_PER_ELEMENT * held)

    def experts(self, share: Share) -> Cost:
        expert = layer_weights(self._model, dense=False).expert
        flop = 2 * self._batch * self._model.top_k * expert * share.tokens
        return _cost(flop, Fraction(BYTES_PER_ELEMENT * expert * self._chosen(share)))

    def _chosen(self, share: Share) -> int:
        """How many of the rank's experts any token chooses, rounded."""
        top_k = self._model.top_k
        return round(math.fsum(1 - (1 - min(1.0, float(top_k * s))) ** self._batch for s in share.experts))


def _cost(flop: Fraction, tensor_bytes: Fraction | int) -> Cost:
    """Whole numbers from 1: a node without operations or bytes would take no time at all."""
    return Cost(max(1, int(flop)), max(1, int(tensor_bytes)))
