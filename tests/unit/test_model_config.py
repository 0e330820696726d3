"""Layouts of a config.json, which layers are dense, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpcmoe import model_config
from hpcmoe.errors import InputError
from hpcmoe.model import Mla, Model, load_model, model_from_config
from hpcmoe.workload import build_workload

MOE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 128,
}  # fmt: skip
DENSE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 128,
}  # fmt: skip
MLA = {"kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}

EVERY_KEY = dict.fromkeys(model_config.looked_for().replace(" or ", "; ").split("; "), 1)


def read(tmp_path: Path, config: object) -> Model:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return model_from_config(path)


@pytest.mark.parametrize(
    ("change", "dense_at"),
    [
        ({}, ()),
        ({"first_k_dense_replace": 2}, (0, 1)),
        ({"moe_layer_freq": 2}, (1, 3, 5)),
        ({"moe_layer_freq": 1, "first_k_dense_replace": 1}, (0,)),
        ({"moe_layer_freq": [0, 1, 1, 1, 0, 1]}, (0, 4)),
        ({"decoder_sparse_step": 2}, (0, 2, 4)),
        ({"decoder_sparse_step": 1, "mlp_only_layers": [3, 5]}, (3, 5)),
        ({"decoder_sparse_step": 3, "mlp_only_layers": [2]}, (0, 1, 2, 3, 4)),
        ({"mlp_layer_types": ["dense", *["sparse"] * 5], "first_k_dense_replace": 1}, (0,)),
    ],
)
def test_which_layers_are_dense(change: dict[str, Any], dense_at: tuple[int, ...], tmp_path: Path) -> None:
    model = read(tmp_path, MOE | change)
    assert model.dense_at == dense_at
    assert model.moe_layers == 6 - len(dense_at)


def test_counted_layers_reach_to_the_last_moe_layer_asked_for(tmp_path: Path) -> None:
    model = read(tmp_path, MOE | {"decoder_sparse_step": 2})
    assert [model.layers_run(n) for n in (1, 2, 3, None)] == [2, 4, 6, 6]
    leading = read(tmp_path, MOE | {"first_k_dense_replace": 2})
    assert [leading.layers_run(n) for n in (1, 4, None)] == [3, 6, 6]
    assert [read(tmp_path, DENSE).layers_run(n) for n in (1, 6, None)] == [1, 6, 6]


def test_a_dense_model_has_no_experts(tmp_path: Path) -> None:
    model = read(tmp_path, DENSE | {"num_experts": 0})
    assert (model.routed_experts, model.top_k, model.shared_intermediate, model.moe_intermediate) == (
        0,
        0,
        0,
        0,
    )
    assert (model.dense_at, model.dense_intermediate) == ((0, 1, 2, 3, 4, 5), 128)


def test_one_width_for_all_is_that_of_the_experts(tmp_path: Path) -> None:
    config = {key: value for key, value in MOE.items() if key != "moe_intermediate_size"}
    model = read(tmp_path, config)
    assert (model.moe_intermediate, model.dense_intermediate) == (128, None)


@pytest.mark.parametrize(
    ("change", "count", "width"),
    [
        ({}, 0, 0),
        ({"n_shared_experts": 2}, 2, 64),
        ({"shared_expert_intermediate_size": 48}, 1, 48),
        ({"shared_intermediate_size": 48}, 1, 48),
        ({"n_shared_experts": None, "shared_expert_intermediate_size": 0}, 0, 0),
    ],
)
def test_shared_experts(change: dict[str, Any], count: int, width: int, tmp_path: Path) -> None:
    model = read(tmp_path, MOE | change)
    assert (model.shared_experts, model.shared_intermediate) == (count, width)


def test_latent_attention(tmp_path: Path) -> None:
    assert read(tmp_path, MOE | MLA | {"q_lora_rank": 24}).mla == Mla(24, 16, 4, 8, 8)
    for no_rank in (None, 0):
        assert read(tmp_path, MOE | MLA | {"q_lora_rank": no_rank}).mla == Mla(None, 16, 4, 8, 8)
    assert read(tmp_path, MOE | {"v_head_dim": 8}).mla is None


@pytest.mark.parametrize("name", model_config.NESTED)
def test_a_language_model_inside_another(name: str, tmp_path: Path) -> None:
    nested = {"vision_config": {"hidden_size": 5}, name: MOE}
    assert read(tmp_path, nested).hidden_size == 64
    with pytest.raises(InputError, match=rf"{name}\.num_attention_heads: bad value"):
        read(tmp_path, {name: MOE | {"num_attention_heads": 0}})


def test_an_entry_keeps_what_is_read() -> None:
    config = {"architectures": ["X"], "text_config": MOE | {"rope_theta": 1, "mlp_only_layers": []}}
    assert model_config.read_keys(config) == MOE | {"mlp_only_layers": []}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sliding_window": 4096}, "sliding_window: attention is counted over the full context"),
        ({"linear_attn_config": {"a": 1}, "index_topk": 0}, "linear_attn_config: attention"),
        ({"q_lora_rank": 8}, "without low-rank"),
        ({"hidden_act": "gelu"}, "three GEMMs"),
    ],
)
def test_notes_on_what_is_left_out(change: dict[str, Any], word: str) -> None:
    (note,) = model_config.notes(MOE | change)
    assert word in note


def test_no_notes_where_nothing_is_left_out() -> None:
    clean = {"sliding_window": 4096, "use_sliding_window": False, "hidden_act": "silu", "q_lora_rank": 8}
    assert model_config.notes(MOE | MLA | clean) == []


BROKEN = [
    ("", "not JSON"),
    ("[1]", "not a JSON object"),
    ('{"hidden_size": 1, "hidden_size": 2}', "hidden_size: the key is given twice"),
    ({}, "no hidden_size: not a layout .* keys looked for: hidden_size; num_hidden_layers"),
    ({"n_embd": 8, "n_layer": 2}, "no hidden_size"),
    (MOE | {"num_hidden_layers": None}, "no num_hidden_layers"),
    (MOE | {"num_hidden_layers": 10**6}, r"num_hidden_layers: bad value.*'?1000000'?.*1 to 10000"),
    (MOE | {"n_routed_experts": 10**6}, "n_routed_experts: bad value.*integers from 0 to 100000"),
    (MOE | {"hidden_size": "64"}, "hidden_size: bad value.*'64'.*integers from 1"),
    (MOE | {"hidden_size": 64.0}, "hidden_size: bad value"),
    (MOE | {"n_routed_experts": True}, "n_routed_experts: bad value"),
    (MOE | {"n_routed_experts": None}, "no n_routed_experts or num_experts .*num_experts_per_tok"),
    (DENSE | {"moe_num_experts": 64}, "and yet there is moe_num_experts"),
    (MOE | {"num_experts_per_tok": None}, "no num_experts_per_tok or num_experts_per_token"),
    (MOE | {"num_experts_per_tok": 9}, "num_experts_per_tok: more experts per token than experts.*9.*1 to 8"),
    (MOE | {"num_key_value_heads": 3}, "num_key_value_heads: bad value.*divisors of num_attention_heads, 4"),
    (DENSE | {"intermediate_size": None}, "no intermediate_size"),
    (DENSE | {"intermediate_size": [1, 2]}, "intermediate_size: bad value"),
    (MOE | {"first_k_dense_replace": -1}, "first_k_dense_replace: bad value.*integers from 0"),
    (MOE | {"first_k_dense_replace": 6}, "first_k_dense_replace: no layer has experts"),
    (MOE | {"moe_layer_freq": 0}, "moe_layer_freq: bad value"),
    (MOE | {"moe_layer_freq": [1, 1]}, "moe_layer_freq: bad list.*2 entries.*6 entries, each 0 or 1"),
    (MOE | {"mlp_only_layers": 3}, "mlp_only_layers: bad value.*a list"),
    (MOE | {"mlp_only_layers": [6]}, "mlp_only_layers: bad layer.*6.*0 to 5"),
    (MOE | {"mlp_layer_types": ["moe"] * 6}, "mlp_layer_types: bad list.*dense or sparse"),
    (MOE | {"mlp_layer_types": ["sparse"] * 6, "first_k_dense_replace": 1}, "mlp_layer_types: contradicts"),
    (MOE | {"moe_intermediate_size": None, "intermediate_size": None}, "no moe_intermediate_size"),
    (
        MOE | {"moe_intermediate_size": None, "first_k_dense_replace": 1},
        "intermediate_size: dense layers need a width of their own",
    ),
    (MOE | {"interleave_moe_layer_step": 2}, "interleave_moe_layer_step: places layers by a rule"),
    (MOE | {"expert_layer_period": 2}, "expert_layer_period: places layers by a rule.*first_k_dense_replace"),
    (MOE | {"num_dense_layers": 2}, "num_dense_layers: places layers"),
    (MOE | {"moe_layer_start_index": 3}, "moe_layer_start_index: places layers"),
    (MOE | {"kv_lora_rank": 8}, "qk_rope_head_dim: kv_lora_rank needs"),
    (MOE | MLA | {"v_head_dim": 0}, "v_head_dim: bad value"),
    ({"text_config": 3}, "text_config: not a JSON object"),
]


@pytest.mark.parametrize(("config", "message"), BROKEN)
def test_broken_configurations(config: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path, config)
    assert "config.json" in str(error.value)
    assert "\n" not in str(error.value)


ODD = (None, -1, 0, 1, 3, "x", [], [1], {}, {"a": 1}, 1.5, True, 10**30, float("nan"), [0] * 6, ["dense"] * 6)


def fault(tmp_path: Path, config: dict[str, Any]) -> str:
    """The message with which a configuration is refused; '' for one that a workload can be made of."""
    try:
        build_workload(read(tmp_path, config), 2, 2, 8, 1)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("key", sorted({*model_config.read_keys(EVERY_KEY), *model_config.NESTED}))
def test_odd_values_are_read_or_refused_in_one_line(key: str, tmp_path: Path) -> None:
    faults = [fault(tmp_path, base | {key: value}) for base in (MOE | MLA, DENSE) for value in ODD]
    assert not any("\n" in text for text in faults)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("title: x", "config: a model needs the keys"),
        ("config: 3", "config: a model needs the keys"),
        ("config: {hidden_size: 4}", "no num_hidden_layers"),
        ("all_reduces_per_layer: 3", "all_reduces_per_layer: bad value.*1 to 2"),
        ("all_reduce_width: wide", "all_reduce_width: bad value"),
        ("calibrated: {tensor_parallel_flop: 1}", "calibrated: bad totals"),
        ("calibrated: {expert_gemms: 2, expert_flop: 5}", "tensor_parallel_flop: missing"),
        ("calibrated: {tensor_parallel_flop: -1, expert_gemms: 2}", "tensor_parallel_flop: bad value"),
    ],
)
def test_broken_catalog_entries(
    entry: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    folder = tmp_path / "models"
    folder.mkdir()
    text = entry if "config" in entry or "title" in entry else f"{entry}\nconfig: {json.dumps(MOE)}"
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=message) as error:
        load_model("mine")
    assert "mine.yaml" in str(error.value)
