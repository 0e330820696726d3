"""Model architectures: from the catalog or from a Hugging Face ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcmoe import catalog
from hpcmoe.errors import InputError
from hpcmoe.json_input import read_object

# Our name -> names in a config.json, the first found counts.
_KEYS: dict[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size",),
    "layers": ("num_hidden_layers",),
    "heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "routed_experts": ("n_routed_experts", "num_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token"),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "moe_intermediate": ("moe_intermediate_size",),
    "dense_intermediate": ("intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "expert_width": ("routed_expert_hidden_size",),
    "vocabulary": ("vocab_size",),
}
# What may be absent, and what that means.
_OPTIONAL: dict[str, int | None] = {
    "kv_heads": None,  # as many as heads
    "head_dim": None,  # hidden_size / heads
    "shared_experts": 0,
    "dense_intermediate": None,
    "dense_layers": 0,
    "expert_width": None,  # hidden_size
    "vocabulary": None,
}
_MAY_BE_ZERO = ("shared_experts", "dense_layers")


@dataclass(frozen=True)
class Calibration:
    """Compute totals fitted to published GPU time, FLOP over all layers at the study's tokens.

    The tensor-parallel total divides by TP. The expert total divides by EP and is given either as such
    or as GEMMs per token and chosen expert, 2 * gemms * T * k * width * m a layer.
    """

    tensor_parallel_flop: int
    expert_flop: int | None = None
    expert_gemms: int | None = None


@dataclass(frozen=True)
class Model:
    """A mixture-of-experts transformer; widths in elements. The first ``dense_layers`` have no experts."""

    name: str
    title: str
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int | None
    routed_experts: int
    top_k: int
    shared_experts: int
    moe_intermediate: int
    dense_intermediate: int | None
    dense_layers: int
    expert_width: int
    vocabulary: int | None
    all_reduce_width: int
    all_reduces_per_layer: int = 2
    calibration: Calibration | None = None

    @property
    def moe_layers(self) -> int:
        return self.layers - self.dense_layers


def load_model(name: str) -> Model:
    """A model of the catalog."""
    entry = catalog.load("models", name)
    calibrated = entry.get("calibrated")
    return _model(
        name,
        entry["config"],
        file=str(catalog.file_of("models", name)),
        title=entry["title"],
        all_reduce_width=entry.get("all_reduce_width"),
        all_reduces_per_layer=entry["all_reduces_per_layer"],
        calibration=Calibration(**calibrated) if calibrated else None,
    )


def model_from_config(path: str | Path) -> Model:
    """A model from a Hugging Face config.json; its compute follows from first principles.

    An unknown layout is refused with the keys looked for.
    """
    config = read_object(path, "model")
    return _model(
        Path(path).stem, config, file=str(path), title=str(config.get("model_type", Path(path).stem))
    )


def _model(
    name: str,
    config: Mapping[str, Any],
    *,
    file: str,
    title: str,
    all_reduce_width: int | None = None,
    all_reduces_per_layer: int = 2,
    calibration: Calibration | None = None,
) -> Model:
    values = {field: _value(config, field, file) for field in _KEYS}
    hidden: Any = values["hidden_size"]
    values["kv_heads"] = values["kv_heads"] or values["heads"]
    values["expert_width"] = values["expert_width"] or hidden
    model = Model(
        name=name,
        title=title,
        all_reduce_width=all_reduce_width or hidden,
        all_reduces_per_layer=all_reduces_per_layer,
        calibration=calibration,
        **values,  # type: ignore[arg-type]
    )
    _check(model, file)
    return model


def _value(config: Mapping[str, Any], field: str, file: str) -> int | None:
    keys = _KEYS[field]
    found = next((key for key in keys if config.get(key) is not None), None)
    if found is None:
        if field in _OPTIONAL:
            return _OPTIONAL[field]
        looked_for = "; ".join(" or ".join(names) for names in _KEYS.values())
        raise InputError(
            f"no {' or '.join(keys)}: not a layout this program knows; keys looked for: {looked_for}",
            file=file,
        )
    value = config[found]
    lowest = 0 if field in _MAY_BE_ZERO else 1
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value < 2**31:
        raise InputError("bad value", file=file, field=found, value=value, allowed=f"integers from {lowest}")
    return value


def _check(model: Model, file: str) -> None:
    if model.dense_layers >= model.layers:
        raise InputError(
            "no layer has experts",
            file=file,
            field="first_k_dense_replace",
            value=model.dense_layers,
            allowed=f"0 to {model.layers - 1}",
        )
    if model.dense_layers and model.dense_intermediate is None:
        raise InputError("dense layers need a width", file=file, field="intermediate_size")
    if model.top_k > model.routed_experts:
        raise InputError(
            "more experts per token than experts",
            file=file,
            field="num_experts_per_tok",
            value=model.top_k,
            allowed=f"1 to {model.routed_experts}",
        )
