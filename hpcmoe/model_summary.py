"""What a model is for the simulator: its layers, computation, traffic and weights, as plain data."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any

from hpcmoe import compute, weights
from hpcmoe.design import STRATEGIES, parse_strategy
from hpcmoe.model import Model
from hpcmoe.workload import all_reduce_bytes, all_to_all_bytes

KINDS = {True: "dense", False: "MoE"}


def summary(model: Model, tokens: int, strategy: str, weight_bits: int) -> dict[str, Any]:
    """Everything that ``hpcmoe model show`` prints; FLOP, bytes and elements are integers."""
    return {
        "name": model.name,
        "title": model.title,
        "architecture": _architecture(model),
        "layers": layer_ranges(model),
        "weights": {"total": weights.total_weights(model), "active": weights.active_weights(model)},
        "tokens": tokens,
        "strategy": strategy,
        "flop_per_layer": {KINDS[dense]: _flop(model, tokens, dense) for dense in _kinds(model)},
        "flop_of_all_layers": [asdict(row) for row in compute.compare(model, tokens)],
        "collectives": collectives(model, tokens, *parse_strategy(strategy)),
        "weight_bits": weight_bits,
        "residency": [residency(model, name, weight_bits) for name in dict.fromkeys((*STRATEGIES, strategy))],
    }


def _architecture(model: Model) -> dict[str, Any]:
    """Every field but what stands elsewhere in the summary."""
    fields = asdict(model)
    for name in ("name", "title", "dense_at", "calibration"):
        del fields[name]
    return {**fields, "dense_layers": model.dense_layers, "moe_layers": model.moe_layers}


def _kinds(model: Model) -> list[bool]:
    counts = ((True, model.dense_layers), (False, model.moe_layers))
    return [dense for dense, count in counts if count]


def layer_ranges(model: Model) -> list[dict[str, Any]]:
    """Runs of layers of one kind: ``first``, ``last`` (inclusive) and ``kind``."""
    dense = set(model.dense_at)
    ranges = []
    for is_dense, members in groupby(range(model.layers), lambda layer: layer in dense):
        layers = list(members)
        ranges.append({"first": layers[0], "last": layers[-1], "kind": KINDS[is_dense]})
    return ranges


def _flop(model: Model, tokens: int, dense: bool) -> dict[str, int]:
    """First principles by part."""
    return {part: int(value) for part, value in asdict(compute.layer_parts(model, tokens, dense)).items()}


def collectives(model: Model, tokens: int, tp: int, ep: int) -> list[dict[str, Any]]:
    """Collectives of all layers: ``bytes`` of one on one rank, and how many of the bytes leave the rank at
    least. Those over one rank do not take place."""
    reduce, exchange = all_reduce_bytes(model, tokens), all_to_all_bytes(model, tokens, ep)
    everywhere = model.layers
    rows = [
        ("all-reduce after attention", "TP", tp, everywhere, reduce, 2),
        ("all-to-all, dispatch", "EP", ep, model.moe_layers, exchange, 1),
        ("all-to-all, combine", "EP", ep, model.moe_layers, exchange, 1),
    ]
    if model.all_reduces_per_layer > 1:
        rows.append(("all-reduce after the FFN", "TP", tp, everywhere, reduce, 2))
    return [
        {
            "name": name,
            "over": over,
            "ranks": ranks,
            "count": count,
            "bytes": size,
            "bytes_sent": passes * size * (ranks - 1) // ranks,
        }
        for name, over, ranks, count, size, passes in rows
        if ranks > 1 and count
    ]


def residency(model: Model, strategy: str, weight_bits: int) -> dict[str, Any]:
    """Bytes of weights on one rank: divided evenly over all, and as the workload divides them."""
    tp, ep = parse_strategy(strategy)
    total_gb = weights.total_weights(model) * weight_bits / 8 / 1e9
    return {
        "strategy": strategy,
        "ranks": tp * ep,
        "even_gb": weights.residency(total_gb, tp * ep, 0.0).per_rank_gb,
        "divided_gb": weights.weights_per_rank(model, tp, ep) * weight_bits / 8 / 1e9,
    }
