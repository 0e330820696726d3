"""How much a model computes: totals calibrated to published GPU time, and a first-principles count.

First principles, FLOP per layer for T tokens, 2 FLOP per weight and token (H hidden size, a heads,
v key-value heads, d head dimension, E routed experts, k experts per token, s shared experts,
m expert intermediate width, f dense intermediate width, w expert width):

* attention: projections 2 T (H a d + 2 H v d + a d H), scores and values over a causal context of
  T / 2 on average 2 T^2 a d
* router: 2 T H E
* shared experts, three gated GEMMs each: 6 T H m s
* dense FFN, three gated GEMMs: 6 T H f
* routed experts: 6 T k w m, and where w is not H a projection to it and back, 4 T H w

Attention, router, shared experts, the latent projections and the dense FFN divide by TP; the routed
experts divide by EP. Embedding and output head are outside the chain of layers and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hpcmoe import catalog
from hpcmoe.model import Model


@dataclass(frozen=True)
class LayerFlop:
    """FLOP of one layer over all ranks of a TP (attention, ffn) or EP (experts) group."""

    attention: Fraction
    ffn: Fraction
    experts: Fraction

    @property
    def tensor_parallel(self) -> Fraction:
        return self.attention + self.ffn


def layer_flop(model: Model, tokens: int, dense: bool) -> LayerFlop:
    """What the study uses: the calibrated totals where the model has them, else first principles."""
    if model.calibration is None:
        return first_principles(model, tokens, dense)
    steps = Fraction(tokens, catalog.study()["tokens"])
    total = steps * model.calibration.tensor_parallel_flop / model.layers
    attention = total * Fraction(*catalog.study()["layer"]["attention_share"])
    experts = Fraction(0) if dense else _calibrated_experts(model, tokens)
    return LayerFlop(attention, total - attention, experts)


def _calibrated_experts(model: Model, tokens: int) -> Fraction:
    assert model.calibration is not None
    if model.calibration.expert_flop is not None:
        return Fraction(tokens * model.calibration.expert_flop, catalog.study()["tokens"] * model.moe_layers)
    gemms = model.calibration.expert_gemms
    assert gemms is not None
    return Fraction(2 * gemms * tokens * model.top_k * model.expert_width * model.moe_intermediate)


def first_principles(model: Model, tokens: int, dense: bool) -> LayerFlop:
    """The formula at the top of this file."""
    hidden, m = model.hidden_size, model.moe_intermediate
    query = Fraction(model.heads * model.head_dim) if model.head_dim else Fraction(hidden)
    key_value = query * model.kv_heads / model.heads
    attention = 2 * tokens * (2 * hidden * query + 2 * hidden * key_value) + 2 * tokens**2 * query
    if dense:
        assert model.dense_intermediate is not None
        return LayerFlop(attention, Fraction(6 * tokens * hidden * model.dense_intermediate), Fraction(0))
    latent = 4 * hidden * model.expert_width if model.expert_width != hidden else 0
    ffn = tokens * (2 * hidden * model.routed_experts + 6 * hidden * m * model.shared_experts + latent)
    experts = 6 * tokens * model.top_k * model.expert_width * m
    return LayerFlop(attention, Fraction(ffn), Fraction(experts))


@dataclass(frozen=True)
class FlopComparison:
    """Totals over all layers in FLOP; ``relative`` is (first principles - calibrated) / calibrated."""

    part: str
    calibrated: float | None
    first_principles: float
    relative: float | None


def compare(model: Model, tokens: int) -> list[FlopComparison]:
    """Calibrated against first principles: the tensor-parallel part and the routed experts."""
    rows = []
    for part in ("tensor_parallel", "experts"):
        counted = _total(model, part, tokens, first_principles)
        fitted = _total(model, part, tokens, layer_flop) if model.calibration else None
        relative = None if fitted is None else (counted - fitted) / fitted
        rows.append(FlopComparison(part, fitted, counted, relative))
    return rows


def _total(model: Model, part: str, tokens: int, count: object) -> float:
    assert callable(count)
    dense = getattr(count(model, tokens, True), part) if model.dense_layers else Fraction(0)
    sparse = getattr(count(model, tokens, False), part)
    return float(model.dense_layers * dense + model.moe_layers * sparse)
