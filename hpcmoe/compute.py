"""How much a model computes: totals calibrated to published GPU time, and a first-principles count.

First principles, FLOP per layer for T tokens of one sequence, 2 FLOP per weight and token; the weights W of
each part are counted in ``hpcmoe.weights``, whose letters are used here (a heads, d head dimension, n and r
dimensions of a latent head without and with rotation, u dimensions of a latent value):

* attention: 2 T W for the projections; scores and values over a causal context of T / 2 on average,
  2 T^2 a d, with latent attention T^2 a (n + r + u)
* router, latent projections, shared experts, dense FFN: 2 T W each
* routed experts: 2 T k W with k experts per token, of the weights of one expert

Attention, router, shared experts, the latent projections and the dense FFN divide by TP; the routed
experts divide by EP. Embedding and output head are outside the chain of layers and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hpcmoe import catalog
from hpcmoe.model import Model
from hpcmoe.weights import layer_weights, query_width


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


@dataclass(frozen=True)
class PartFlop:
    """FLOP of one layer by part, over all ranks of a TP (experts: EP) group."""

    projections: Fraction
    context: Fraction
    router: Fraction
    latent: Fraction
    shared: Fraction
    dense: Fraction
    experts: Fraction


def layer_parts(model: Model, tokens: int, dense: bool) -> PartFlop:
    """The formulas at the top of this file; ``context`` is the attention's scores and values."""
    held = layer_weights(model, dense)
    return PartFlop(
        projections=2 * tokens * held.attention,
        context=tokens**2 * pair_flop(model) / 2,
        router=Fraction(2 * tokens * held.router),
        latent=Fraction(2 * tokens * held.latent),
        shared=Fraction(2 * tokens * held.shared),
        dense=Fraction(2 * tokens * held.dense),
        experts=Fraction(2 * tokens * model.top_k * held.expert),
    )


def pair_flop(model: Model, *, cached: bool = False) -> Fraction:
    """FLOP of one query on one key and its value, all heads. ``cached``: on the key-value cache as it is
    stored, which latent attention uses without expanding it."""
    mla = model.mla
    if mla is None:
        return 4 * query_width(model)
    width = 2 * mla.kv_rank + mla.rope_dim if cached else mla.nope_dim + mla.rope_dim + mla.value_dim
    return Fraction(2 * model.heads * width)


def first_principles(model: Model, tokens: int, dense: bool) -> LayerFlop:
    """The parts of a layer as the chain's three compute nodes have them."""
    parts = layer_parts(model, tokens, dense)
    ffn = parts.router + parts.latent + parts.shared + parts.dense
    return LayerFlop(parts.projections + parts.context, ffn, parts.experts)


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
    sparse = getattr(count(model, tokens, False), part) if model.moe_layers else Fraction(0)
    return float(model.dense_layers * dense + model.moe_layers * sparse)
