"""How many weights a model has, where they lie, and how large its key-value cache is.

Weights of one layer (H hidden size, a heads, v key-value heads, d head dimension, E routed experts, w expert
width, m expert intermediate width, S intermediate width of all shared experts together, f dense intermediate
width):

* attention: 2 H a d + 2 H v d. With multi-head latent attention (ranks q and c of queries and of keys and
  values, r and n dimensions of a head with and without rotation, u dimensions of a value):
  H q + q a (n + r), or H a (n + r) without q; H (c + r) + c a (n + u); a u H
* router: H E
* latent projections, where w is not H: 2 H w
* shared experts, three gated GEMMs: 3 H S
* dense FFN, three gated GEMMs: 3 H f
* one routed expert: 3 w m

Norms, biases and gates of width one are not counted (below 0.1 % of any model). The key-value cache holds
2 v d elements per token and layer, with latent attention c + r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hpcmoe.model import Mla, Model


@dataclass(frozen=True)
class LayerWeights:
    """Elements of one layer; ``expert`` is one routed expert."""

    attention: Fraction
    router: int
    latent: int
    shared: int
    dense: int
    expert: int

    @property
    def tensor_parallel(self) -> Fraction:
        """What the strategies divide by TP."""
        return self.attention + self.router + self.latent + self.shared + self.dense


def layer_weights(model: Model, dense: bool) -> LayerWeights:
    """The formulas at the top of this file for a dense or a MoE layer."""
    attention, hidden = attention_weights(model), model.hidden_size
    if dense:
        assert model.dense_intermediate is not None
        return LayerWeights(attention, 0, 0, 0, 3 * hidden * model.dense_intermediate, 0)
    latent = 2 * hidden * model.expert_width if model.expert_width != hidden else 0
    return LayerWeights(
        attention,
        hidden * model.routed_experts,
        latent,
        3 * hidden * model.shared_intermediate,
        0,
        3 * model.expert_width * model.moe_intermediate,
    )


def attention_weights(model: Model) -> Fraction:
    """Elements of the projections of one layer."""
    if model.mla is not None:
        return Fraction(_latent_attention(model, model.mla))
    return 2 * model.hidden_size * (query_width(model) + key_value_width(model))


def _latent_attention(model: Model, mla: Mla) -> int:
    hidden, heads = model.hidden_size, model.heads
    query = heads * (mla.nope_dim + mla.rope_dim)
    queries = hidden * query if mla.q_rank is None else mla.q_rank * (hidden + query)
    keys_values = hidden * (mla.kv_rank + mla.rope_dim) + mla.kv_rank * heads * (mla.nope_dim + mla.value_dim)
    return queries + keys_values + heads * mla.value_dim * hidden


def query_width(model: Model) -> Fraction:
    """Heads times head dimension; the hidden size where no head dimension is given."""
    return Fraction(model.heads * model.head_dim) if model.head_dim else Fraction(model.hidden_size)


def key_value_width(model: Model) -> Fraction:
    """Key-value heads times head dimension."""
    return query_width(model) * model.kv_heads / model.heads


def cache_elements(model: Model) -> Fraction:
    """Elements of the key-value cache per token and layer."""
    if model.mla is not None:
        return Fraction(model.mla.kv_rank + model.mla.rope_dim)
    return 2 * key_value_width(model)


def embedding_weights(model: Model) -> int:
    """Embedding and output head, one matrix where they are tied; 0 where the vocabulary is not known."""
    matrices = 1 if model.tied_embeddings else 2
    return matrices * (model.vocabulary or 0) * model.hidden_size


def total_weights(model: Model) -> int:
    """All weights that are counted, in elements."""
    everything = _over_layers(
        model, lambda layer: layer.tensor_parallel + model.routed_experts * layer.expert
    )
    return int(everything) + embedding_weights(model)


def active_weights(model: Model) -> int:
    """Weights that one token meets: the chosen experts and the output head, and no embedding."""
    met = _over_layers(model, lambda layer: layer.tensor_parallel + model.top_k * layer.expert)
    return int(met) + (model.vocabulary or 0) * model.hidden_size


def weights_per_rank(model: Model, tp: int, ep: int) -> int:
    """Elements on one rank as the workload divides them: routed experts by EP, everything else by TP."""
    divided = _over_layers(model, lambda layer: layer.tensor_parallel) + embedding_weights(model)
    experts = _over_layers(model, lambda layer: Fraction(model.routed_experts * layer.expert))
    return math.ceil(divided / tp + experts / ep)


def _over_layers(model: Model, count: Callable[[LayerWeights], Fraction]) -> Fraction:
    kinds = ((True, model.dense_layers), (False, model.moe_layers))
    return sum((n * count(layer_weights(model, dense)) for dense, n in kinds if n), Fraction(0))


@dataclass(frozen=True)
class Residency:
    """Weights alone, divided evenly: gigabytes per rank, and whether an accelerator holds them."""

    per_rank_gb: float
    fits: bool


def residency(weights_gb: float, ranks: int, capacity_gb: float) -> Residency:
    """Weight residency of a checkpoint of ``weights_gb`` on ``ranks`` accelerators of ``capacity_gb``."""
    per_rank = weights_gb / ranks
    return Residency(per_rank, per_rank <= capacity_gb)
