"""Model architectures: from the catalog or from a Hugging Face ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcmoe import catalog, model_config
from hpcmoe.errors import InputError
from hpcmoe.json_input import read_object


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
class Mla:
    """Multi-head latent attention: ranks of queries (None: not compressed) and of keys and values, dimensions
    of a head with and without rotation, and of a value."""

    q_rank: int | None
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True)
class Model:
    """A transformer; widths in elements. ``dense_at`` are the layers without experts, by index from 0: all of
    them in a dense model, where every number about experts is 0.

    ``shared_intermediate`` is the width of all shared experts together. ``vocabulary`` and
    ``dense_intermediate`` may be unknown, the latter only where no layer is dense.
    """

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
    shared_intermediate: int
    moe_intermediate: int
    dense_intermediate: int | None
    dense_at: tuple[int, ...]
    expert_width: int
    vocabulary: int | None
    all_reduce_width: int
    all_reduces_per_layer: int = 2
    calibration: Calibration | None = None
    mla: Mla | None = None
    tied_embeddings: bool = False

    @property
    def dense_layers(self) -> int:
        return len(self.dense_at)

    @property
    def moe_layers(self) -> int:
        return self.layers - self.dense_layers

    @property
    def has_experts(self) -> bool:
        return self.routed_experts > 0

    @property
    def counted_layers(self) -> int:
        """What ``--layers`` counts: the MoE layers, in a dense model all layers."""
        return self.moe_layers if self.has_experts else self.layers

    def layers_run(self, counted: int | None) -> int:
        """How many layers run: all for None, else up to the last of that many counted ones."""
        if counted is None or counted >= self.counted_layers:
            return self.layers
        if not self.has_experts:
            return counted
        dense = set(self.dense_at)
        with_experts = [layer for layer in range(self.layers) if layer not in dense]
        return with_experts[counted - 1] + 1


def load_model(name: str) -> Model:
    """A model of the catalog. InputError for a faulty entry, which only one of the user's own can be."""
    entry, file = catalog.load("models", name), str(catalog.file_of("models", name))
    config = entry.get("config")
    if not isinstance(config, Mapping):
        raise InputError("a model needs the keys of its config.json", file=file, field="config", value=config)
    return _model(
        name,
        config,
        file=file,
        title=str(entry.get("title", name)),
        all_reduce_width=_integer(entry, "all_reduce_width", None, range(1, 2**31), file),
        all_reduces_per_layer=_integer(entry, "all_reduces_per_layer", 2, range(1, 3), file) or 2,
        calibration=_calibration(entry, file),
    )


def _integer(
    entry: Mapping[str, Any], key: str, default: int | None, allowed: range, file: str
) -> int | None:
    value = entry.get(key, default)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value in allowed):
        return value
    shown = f"{allowed.start} to {allowed.stop - 1}"
    raise InputError("bad value", file=file, field=key, value=value, allowed=shown)


def _calibration(entry: Mapping[str, Any], file: str) -> Calibration | None:
    found = entry.get("calibrated")
    if found is None:
        return None
    names = ("tensor_parallel_flop", "expert_flop", "expert_gemms")
    if not isinstance(found, Mapping) or not set(found) <= set(names) or len(found) != 2:
        allowed = "tensor_parallel_flop and one of expert_flop, expert_gemms"
        raise InputError("bad totals", file=file, field="calibrated", value=found, allowed=allowed)
    values = {key: _integer(found, key, None, range(1, 2**63), file) for key in names}
    if values["tensor_parallel_flop"] is None:
        raise InputError("missing", file=file, field="tensor_parallel_flop", allowed="integers from 1")
    return Calibration(**values)  # type: ignore[arg-type]


def model_from_config(path: str | Path) -> Model:
    """A model from a Hugging Face config.json; its compute follows from first principles.

    An unknown layout is refused with the keys looked for.
    """
    config = read_object(path, "model")
    return _model(
        Path(path).stem, config, file=str(path), title=str(config.get("model_type", Path(path).stem))
    )


def add_model(path: str | Path, name: str, title: str | None = None, *, replace: bool = False) -> Path:
    """Makes a config.json a catalog entry of the user's own that run keys can name; gives the entry's file.

    InputError for an unknown layout and for a name that is none or is taken.
    """
    config = read_object(path, "model")
    model_from_config(path)
    entry = {"title": title or name, "config": model_config.read_keys(config), "all_reduces_per_layer": 2}
    about = f"Made by 'hpcmoe model add' from {Path(path).name}: the keys that are read, as they stand there."
    return catalog.add("models", name, entry, replace=replace, about=about)


def find_model(name: str) -> Model:
    """A model by its name in the catalog, or by the path of a config.json."""
    if name not in catalog.names("models") and (name.endswith(".json") or Path(name).is_file()):
        return model_from_config(name)
    return load_model(name)


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
    fields = model_config.architecture(config, file)
    mla = fields.pop("mla")
    return Model(
        name=name,
        title=title,
        all_reduce_width=all_reduce_width or fields["hidden_size"],
        all_reduces_per_layer=all_reduces_per_layer,
        calibration=calibration,
        mla=Mla(**mla) if mla else None,
        **fields,
    )
