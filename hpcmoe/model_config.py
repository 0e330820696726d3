"""What a Hugging Face ``config.json`` says about a model: the keys that are read and what they mean.

Read are the layouts of the DeepSeek V2/V3, Kimi K2, GLM-4.x, Qwen2/Qwen3 (MoE and dense), Mixtral and Llama
families, also where they stand inside a multimodal configuration (``text_config`` and the like). What a key
decides that the workload cannot represent is refused; what merely is left out of the count is said in
``notes``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpcmoe.errors import InputError

# Our name -> names in a config.json, the first found counts.
KEYS: dict[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size",),
    "layers": ("num_hidden_layers",),
    "heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "routed_experts": ("n_routed_experts", "num_experts", "num_local_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token"),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "shared_intermediate": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "moe_intermediate": ("moe_intermediate_size",),
    "dense_intermediate": ("intermediate_size",),
    "expert_width": ("routed_expert_hidden_size",),
    "vocabulary": ("vocab_size",),
}
MLA_KEYS: dict[str, str] = {
    "q_rank": "q_lora_rank",
    "kv_rank": "kv_lora_rank",
    "rope_dim": "qk_rope_head_dim",
    "nope_dim": "qk_nope_head_dim",
    "value_dim": "v_head_dim",
}
LAYER_KEYS = (
    "first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers", "mlp_layer_types"
)  # fmt: skip
FLAGS = ("tie_word_embeddings",)
NESTED = ("text_config", "language_config", "llm_config")

_REQUIRED = ("hidden_size", "layers", "heads")
_EXPERT_FIELDS = ("routed_experts", "top_k", "shared_experts", "shared_intermediate", "moe_intermediate")
_MAY_BE_ZERO = ("routed_experts", "shared_experts", "shared_intermediate")
_MOST = {"layers": 10_000, "routed_experts": 100_000}
_BOUND = 2**31 - 1
# Other keys than LAYER_KEYS that place experts or blocks: what they say is not represented.
_PLACES_LAYERS = re.compile(
    r"(moe|expert|dense|sparse)\w*_(layers?|step|period|offset|interval|frequency)"
    r"|interleave_moe|attn_layer_period|hybrid_override_pattern|block_configs|residual_moe"
)
_NAMES_EXPERTS = re.compile(r"expert|moe", re.IGNORECASE)


class _Config:
    """One object of the file with checked access; faults name file and key."""

    def __init__(self, values: Mapping[str, Any], file: str, prefix: str) -> None:
        self.values, self.file, self._prefix = values, file, prefix

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def error(self, text: str, key: str = "", value: Any = None, allowed: Any = None) -> InputError:
        field = f"{self._prefix}{key}" if key else None
        return InputError(text, file=self.file, field=field, value=value, allowed=allowed)

    def integer(self, key: str, lowest: int = 1, highest: int = _BOUND) -> int:
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            most = "" if highest == _BOUND else f" to {highest}"
            raise self.error("bad value", key, value, f"integers from {lowest}{most}")
        return value

    def field(self, name: str) -> int | None:
        """The value under the first of the field's keys that is there."""
        key = self.key_of(name)
        if key is None:
            return None
        return self.integer(key, 0 if name in _MAY_BE_ZERO else 1, _MOST.get(name, _BOUND))

    def key_of(self, name: str) -> str | None:
        return next((key for key in KEYS[name] if self.has(key)), None)

    def missing(self, name: str) -> InputError:
        return self.error(
            f"no {' or '.join(KEYS[name])}: not a layout this program knows; keys looked for: {looked_for()}"
        )

    def entries(self, key: str) -> list[Any]:
        value = self.values[key]
        if not isinstance(value, list):
            raise self.error("bad value", key, value, "a list")
        return value


def looked_for() -> str:
    """Every key that is read, in words."""
    names = [" or ".join(keys) for keys in KEYS.values()]
    return "; ".join([*names, *MLA_KEYS.values(), *LAYER_KEYS, *FLAGS])


def read_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a configuration that are read, in their order there: what a catalog entry keeps."""
    known = {key for keys in KEYS.values() for key in keys} | {*MLA_KEYS.values(), *LAYER_KEYS, *FLAGS}
    return {key: value for key, value in _language_model(config)[0].items() if key in known}


def architecture(config: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Fields of a Model by name, ``mla`` as a dict or None; InputError for a layout that is not known."""
    values, prefix = _language_model(config)
    if not isinstance(values, Mapping):
        raise InputError("not a JSON object", file=file, field=prefix.rstrip("."))
    found = _Config(values, file, prefix)
    fields: dict[str, Any] = {name: found.field(name) for name in KEYS}
    for name in _REQUIRED:
        if fields[name] is None:
            raise found.missing(name)
    _refuse_unknown_rules(found)
    if fields["routed_experts"]:
        _complete_experts(found, fields)
    else:
        _complete_dense(found, fields)
    fields["dense_at"] = _dense_at(found, fields)
    fields["kv_heads"] = fields["kv_heads"] or fields["heads"]
    fields["expert_width"] = fields["expert_width"] or fields["hidden_size"]
    fields["mla"] = _mla(found)
    fields["tied_embeddings"] = values.get("tie_word_embeddings") is True
    _check(found, fields)
    return fields


def _language_model(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The object that describes the layers, and how its keys are called in messages."""
    for name in NESTED:
        inner = config.get(name)
        if inner is not None and (not isinstance(inner, Mapping) or "hidden_size" in inner):
            return inner, f"{name}."
    return config, ""


def _refuse_unknown_rules(found: _Config) -> None:
    for key, value in found.values.items():
        if value and key not in LAYER_KEYS and _PLACES_LAYERS.search(key):
            text = "places layers by a rule that this program does not represent; the rules it knows are"
            raise found.error(text, key, value, LAYER_KEYS)


def _complete_experts(found: _Config, fields: dict[str, Any]) -> None:
    """A configuration with one width for all (Mixtral) gives the experts' under ``intermediate_size``."""
    if fields["top_k"] is None:
        raise found.missing("top_k")
    if fields["moe_intermediate"] is None:
        if fields["dense_intermediate"] is None:
            raise found.missing("moe_intermediate")
        fields["moe_intermediate"], fields["dense_intermediate"] = fields["dense_intermediate"], None
    fields["shared_experts"] = fields["shared_experts"] or (1 if fields["shared_intermediate"] else 0)
    if fields["shared_intermediate"] is None:
        fields["shared_intermediate"] = fields["shared_experts"] * fields["moe_intermediate"]


def _complete_dense(found: _Config, fields: dict[str, Any]) -> None:
    """No experts, provided that nothing else in the file speaks of them."""
    key = found.key_of("routed_experts")
    hints = [k for k, value in found.values.items() if _NAMES_EXPERTS.search(k) and value]
    if key is None and hints:
        raise found.error(
            f"no {' or '.join(KEYS['routed_experts'])}, and yet there is {', '.join(hints[:3])}: not a "
            f"layout this program knows; keys looked for: {looked_for()}"
        )
    if fields["dense_intermediate"] is None:
        raise found.missing("dense_intermediate")
    fields.update(dict.fromkeys(_EXPERT_FIELDS, 0))


def _dense_at(found: _Config, fields: Mapping[str, Any]) -> tuple[int, ...]:
    """Indices of the layers without experts."""
    layers = fields["layers"]
    if not fields["routed_experts"]:
        return tuple(range(layers))
    dense = set(_by_rule(found, layers))
    if found.has("mlp_layer_types"):
        listed = set(_by_type(found, layers))
        if dense - listed or (dense and listed - dense):
            raise found.error("contradicts the other keys on dense layers", "mlp_layer_types")
        dense = listed
    if len(dense) == layers:
        used = next(key for key in LAYER_KEYS if found.has(key))
        raise found.error("no layer has experts", used, found.values[used])
    return tuple(sorted(dense))


def _by_rule(found: _Config, layers: int) -> Iterator[int]:
    """Leading layers, every n-th, every n-th counted from one, and listed ones."""
    if found.has("first_k_dense_replace"):
        yield from range(min(found.integer("first_k_dense_replace", 0), layers))
    if found.has("moe_layer_freq"):
        yield from _by_frequency(found, layers)
    if found.has("decoder_sparse_step"):
        step = found.integer("decoder_sparse_step")
        yield from (layer for layer in range(layers) if (layer + 1) % step)
    for layer in found.entries("mlp_only_layers") if found.has("mlp_only_layers") else ():
        if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < layers:
            raise found.error("bad layer", "mlp_only_layers", layer, f"0 to {layers - 1}")
        yield layer


def _by_frequency(found: _Config, layers: int) -> Iterator[int]:
    """A step, or 1 for each layer with experts and 0 for each without."""
    if not isinstance(found.values["moe_layer_freq"], list):
        step = found.integer("moe_layer_freq")
        yield from (layer for layer in range(layers) if layer % step)
        return
    flags = found.entries("moe_layer_freq")
    if len(flags) != layers or any(flag not in (0, 1) for flag in flags):
        raise found.error(
            "bad list", "moe_layer_freq", f"{len(flags)} entries", f"{layers} entries, each 0 or 1"
        )
    yield from (layer for layer, flag in enumerate(flags) if not flag)


def _by_type(found: _Config, layers: int) -> Iterator[int]:
    types = found.entries("mlp_layer_types")
    if len(types) != layers or any(kind not in ("dense", "sparse") for kind in types):
        allowed = f"{layers} entries, each dense or sparse"
        raise found.error("bad list", "mlp_layer_types", f"{len(types)} entries", allowed)
    yield from (layer for layer, kind in enumerate(types) if kind == "dense")


def _mla(found: _Config) -> dict[str, int | None] | None:
    """Ranks and widths of multi-head latent attention; without a rank of keys and values there is none."""
    if not found.has("kv_lora_rank"):
        return None
    for key in ("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"):
        if not found.has(key):
            raise found.error(f"kv_lora_rank needs {key} beside it", key, allowed="integers from 1")
    ranks = {name: found.integer(key, 0) for name, key in MLA_KEYS.items() if found.has(key)}
    for name in ("kv_rank", "rope_dim", "nope_dim", "value_dim"):
        found.integer(MLA_KEYS[name])
    return {**ranks, "q_rank": ranks.get("q_rank") or None}


def _check(found: _Config, fields: Mapping[str, Any]) -> None:
    top_k, experts = fields["top_k"], fields["routed_experts"]
    if top_k > experts:
        raise found.error(
            "more experts per token than experts", "num_experts_per_tok", top_k, f"1 to {experts}"
        )
    if experts and fields["dense_at"] and fields["dense_intermediate"] is None:
        text = "dense layers need a width of their own beside moe_intermediate_size"
        raise found.error(text, "intermediate_size", allowed="integers from 1")
    if fields["heads"] % fields["kv_heads"]:
        allowed = f"divisors of num_attention_heads, {fields['heads']}"
        raise found.error("bad value", "num_key_value_heads", fields["kv_heads"], allowed)


# Attention that some or all layers have in place of the full one.
_PARTIAL_ATTENTION = (
    "linear_attn_config", "linear_num_value_heads", "full_attention_interval", "index_topk", "compress_ratios"
)  # fmt: skip


def notes(config: Mapping[str, Any]) -> list[str]:
    """What the configuration asks for and the count of computation leaves out, one line each."""
    values = _language_model(config)[0]
    found = []
    partial = [key for key in _PARTIAL_ATTENTION if values.get(key)]
    if values.get("sliding_window") and values.get("use_sliding_window") is not False:
        partial.append("sliding_window")
    if partial:
        found.append(f"{', '.join(partial)}: attention is counted over the full context in every layer")
    if values.get("q_lora_rank") is not None and values.get("kv_lora_rank") is None:
        found.append("q_lora_rank without kv_lora_rank: attention is counted without low-rank projections")
    activation = values.get("hidden_act")
    if isinstance(activation, str) and activation not in ("silu", "swish", "swiglu"):
        found.append(f"hidden_act {activation}: feed-forward networks are counted as gated, three GEMMs each")
    return found
