"""``hpcmoe model``: the models of the catalog, and the user's own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from hpcmoe import catalog, model_config, model_summary, weights
from hpcmoe.commands import common, outputs
from hpcmoe.errors import InputError
from hpcmoe.json_input import read_object
from hpcmoe.model import Model, add_model, find_model, load_model

_PARTS = {
    "projections": ("attention, projections", "2 T W", "TP"),
    "context": ("attention, scores and values", "T^2 times head widths", "TP"),
    "router": ("router", "2 T H E", "TP"),
    "latent": ("latent projections", "4 T H w", "TP"),
    "shared": ("shared experts", "6 T H S", "TP"),
    "dense": ("dense FFN", "6 T H f", "TP"),
    "experts": ("routed experts", "6 T k w m", "EP"),
}
_MOST_BITS, _MOST_TOKENS = 64, 2**31 - 1


def add(arguments: argparse.Namespace) -> int:
    path = add_model(arguments.config, arguments.name, arguments.title, replace=arguments.replace)
    print(f"{path}: added")
    print("\n".join(_facts(load_model(arguments.name))))
    for note in model_config.notes(read_object(arguments.config, "model")):
        print(f"  note: {note}")
    print(f"Try: hpcmoe run {arguments.name}/t1/tp2ep16/ring_direct/ib_cc0 --tokens 64 --layers 1")
    return 0


def remove(arguments: argparse.Namespace) -> int:
    print(f"{catalog.remove('models', arguments.name)}: removed")
    return 0


def list_models(arguments: argparse.Namespace) -> int:
    for name in catalog.names("models"):
        origin = "" if name in catalog.built_in("models") else "  (your own)"
        try:
            print(f"{name:<24}{_in_short(load_model(name))}{origin}")
        except InputError as error:  # the others are still worth a line
            print(f"{name:<24}not usable: {error}")
    return 0


def _in_short(model: Model) -> str:
    total = f"{weights.total_weights(model) / 1e9:.1f}e9 weights"
    if not model.has_experts:
        return f"{model.title}: {total}, {model.layers} dense layers"
    return f"{model.title}: {total}, {model.layers} layers, {model.routed_experts} experts, top {model.top_k}"


def show(arguments: argparse.Namespace) -> int:
    outputs.check({"--json": arguments.json}, [])
    model = find_model(arguments.model)
    tokens = catalog.study()["tokens"] if arguments.tokens is None else arguments.tokens
    _check_range("--tokens", tokens, _MOST_TOKENS)
    _check_range("--weight-bits", arguments.weight_bits, _MOST_BITS)
    content = model_summary.summary(model, tokens, arguments.strategy, arguments.weight_bits)
    common.write_json(arguments.json, content)
    if arguments.json != "-":
        print("\n".join(_page(model, content)))
    return 0


def _check_range(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InputError("bad value", field=option, value=value, allowed=f"1 to {most}")


def _page(model: Model, content: Mapping[str, Any]) -> Iterator[str]:
    yield f"{model.name}: {model.title}"
    yield from _facts(model)
    yield from ("", f"FLOP per layer at {content['tokens']} tokens (10^9)")
    yield from _flop_table(content["flop_per_layer"])
    yield from _calibrated(model, content["flop_of_all_layers"])
    yield from ("", f"Collectives at {content['strategy']}")
    yield from _collective_table(content["collectives"])
    yield from ("", f"Weights on one rank at {content['weight_bits']} bits (GB)")
    yield f"  {'strategy':<12}{'evenly over all':>16}{'experts by EP, rest by TP':>27}"
    for row in content["residency"]:
        yield f"  {row['strategy']:<12}{row['even_gb']:>16.2f}{row['divided_gb']:>27.2f}"


def _facts(model: Model) -> Iterator[str]:
    attention = f"{model.heads} heads, {model.kv_heads} for keys and values"
    if model.mla is not None:
        attention = f"{model.heads} heads, latent (rank {model.mla.kv_rank})"
    yield f"  hidden size {model.hidden_size}; attention: {attention}"
    if model.has_experts:
        shared = f", shared experts of width {model.shared_intermediate}" if model.shared_intermediate else ""
        yield (
            f"  {model.routed_experts} experts of width {model.moe_intermediate}, "
            f"{model.top_k} per token{shared}"
        )
    else:
        yield f"  no experts: FFN of width {model.dense_intermediate}; EP counts replicas that do not talk"
    yield f"  layers: {_ranges(model)}"
    yield (
        f"  weights: {weights.total_weights(model) / 1e9:.3f}e9, "
        f"{weights.active_weights(model) / 1e9:.3f}e9 of them met by a token"
    )


def _ranges(model: Model) -> str:
    rows = model_summary.layer_ranges(model)
    shown = [f"{_span(row)} {row['kind']}" for row in rows[:6]]
    if len(rows) > len(shown):
        shown.append(f"and so on: {model.dense_layers} dense, {model.moe_layers} MoE")
    return ", ".join(shown)


def _span(row: Mapping[str, Any]) -> str:
    return f"{row['first']}" if row["first"] == row["last"] else f"{row['first']} to {row['last']}"


def _flop_table(flop: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield f"  {'part':<30}{'formula':<24}{'by':<4}" + "".join(f"{kind:>14}" for kind in flop)
    for part, (name, formula, by) in _PARTS.items():
        if any(parts[part] for parts in flop.values()):
            numbers = "".join(f"{parts[part] / 1e9:>14.3f}" for parts in flop.values())
            yield f"  {name:<30}{formula:<24}{by:<4}{numbers}"


def _calibrated(model: Model, rows: list[dict[str, Any]]) -> Iterator[str]:
    if model.calibration is None:
        return
    yield "  Used in its place: totals calibrated to published GPU time, 10^12 over all layers"
    for row in rows:
        yield (
            f"    {row['part'].replace('_', ' ')}: {row['calibrated'] / 1e12:.3f} calibrated, "
            f"{row['first_principles'] / 1e12:.3f} counted ({row['relative']:+.1%})"
        )


def _collective_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield "  none: no group has more than one rank"
        return
    yield f"  {'collective':<30}{'over':<8}{'count':>6}{'volume (bytes)':>17}{'sent by a rank':>17}"
    for row in rows:
        over = f"{row['over']} {row['ranks']}"
        yield f"  {row['name']:<30}{over:<8}{row['count']:>6}{row['bytes']:>17}{row['bytes_sent']:>17}"
