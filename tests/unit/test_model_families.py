"""Public configurations against numbers worked out by hand; the arithmetic stands in the comments."""

from fractions import Fraction
from pathlib import Path

import pytest

from hpcmoe import compute, weights
from hpcmoe.model import Model, model_from_config
from hpcmoe.workload import build_workload

FAMILIES = (
    "deepseek_v3",
    "kimi_k2",
    "glm_4_5",
    "qwen3_30b_a3b",
    "qwen2_57b_a14b",
    "mixtral_8x7b",
    "llama_3_8b",
)


@pytest.fixture
def model(request: pytest.FixtureRequest, data: Path) -> Model:
    return model_from_config(data / "models" / f"{request.param}.json")


# Published sizes in 1e9 weights: all of them, then those active per token (output head included, embedding
# not). What we do not count (norms, biases, DeepSeek's and GLM's extra prediction layer) is below 1 %.
@pytest.mark.parametrize(
    ("model", "total", "active"),
    [
        ("deepseek_v3", 671, 36.6),
        ("kimi_k2", 1026, 31.7),  # "1 T, 32 B active"; 1026 is the sum of the checkpoint's tensors
        ("glm_4_5", 353, 32.9),  # 358 with the prediction layer; "355 B, 32 B active"
        ("qwen3_30b_a3b", 30.5, 3.04),  # "30.5 B, 3.3 B active" counts the embedding of 0.31 too
        ("qwen2_57b_a14b", 57.4, 13.7),  # "57 B, 14 B active" counts the embedding of 0.54 too
        ("mixtral_8x7b", 46.7, 12.7),
        ("llama_3_8b", 8.03, 7.5),
    ],
    indirect=["model"],
)
def test_weights_are_the_published_ones(model: Model, total: float, active: float) -> None:
    assert weights.total_weights(model) / 1e9 == pytest.approx(total, rel=0.004)
    assert weights.active_weights(model) / 1e9 == pytest.approx(active, rel=0.004)


# FLOP of one layer at 1000 tokens.
BY_HAND = [
    # DeepSeek-V3. Queries 7168*1536 + 1536*128*(128+64) = 11_010_048 + 37_748_736, keys and values
    # 7168*(512+64) + 512*128*(128+128) = 4_128_768 + 16_777_216, out 128*128*7168 = 117_440_512; sum
    # 187_105_280, times 2*1000. Context 1000^2 * 128 * (128+64+128) = 40_960_000_000.
    # Router 2*1000*7168*256. Shared 6*1000*7168*2048. Experts 6*1000*8*7168*2048. Dense 6*1000*7168*18432.
    (
        "deepseek_v3",
        (374_210_560_000, 40_960_000_000, 3_670_016_000, 88_080_384_000, 704_643_072_000),
        792_723_456_000,
    ),
    # Kimi K2: half the heads. Queries 11_010_048 + 1536*64*192 = 18_874_368, keys and values
    # 4_128_768 + 512*64*256 = 8_388_608, out 64*128*7168 = 58_720_256; sum 101_122_048.
    # Context 1000^2 * 64 * 320. Router 2*1000*7168*384. The rest as above.
    (
        "kimi_k2",
        (202_244_096_000, 20_480_000_000, 5_505_024_000, 88_080_384_000, 704_643_072_000),
        792_723_456_000,
    ),
    # GLM-4.5: 96 heads of 128 make 12288, 8 of them 1024. 2*5120*12288 + 2*5120*1024 = 136_314_880.
    # Context 2*1000^2*12288. Router 2*1000*5120*160. Shared 6*1000*5120*1536. Experts 8 times that.
    # Dense 6*1000*5120*12288.
    (
        "glm_4_5",
        (272_629_760_000, 24_576_000_000, 1_638_400_000, 47_185_920_000, 377_487_360_000),
        377_487_360_000,
    ),
    # Qwen3-30B-A3B: 32 heads of 128 make 4096, 4 of them 512. 2*2048*4096 + 2*2048*512 = 18_874_368.
    # Context 2*1000^2*4096. Router 2*1000*2048*128. No shared expert. Experts 6*1000*8*2048*768.
    ("qwen3_30b_a3b", (37_748_736_000, 8_192_000_000, 524_288_000, 0, 75_497_472_000), None),
    # Qwen2-57B-A14B: 28 heads of 128 make 3584, 4 of them 512. 2*3584*3584 + 2*3584*512 = 29_360_128.
    # Context 2*1000^2*3584. Router 2*1000*3584*64. Shared 6*1000*3584*20480. Experts 6*1000*8*3584*2560.
    ("qwen2_57b_a14b", (58_720_256_000, 7_168_000_000, 458_752_000, 440_401_920_000, 440_401_920_000), None),
    # Mixtral 8x7B: 32 heads of 128 make 4096, 8 of them 1024. 2*4096*4096 + 2*4096*1024 = 41_943_040.
    # Context 2*1000^2*4096. Router 2*1000*4096*8. Experts 6*1000*2*4096*14336.
    ("mixtral_8x7b", (83_886_080_000, 8_192_000_000, 65_536_000, 0, 704_643_072_000), None),
    # Llama 3 8B: attention as Mixtral. Dense 6*1000*4096*14336 = 352_321_536_000.
    ("llama_3_8b", None, 352_321_536_000),
]


@pytest.mark.parametrize(("model", "moe", "dense"), BY_HAND, indirect=["model"])
def test_flop_of_a_layer_by_hand(model: Model, moe: tuple[int, ...] | None, dense: int | None) -> None:
    assert (model.moe_layers > 0, model.dense_layers > 0) == (moe is not None, dense is not None)
    if moe is not None:
        parts = compute.layer_parts(model, 1000, dense=False)
        assert (parts.projections, parts.context, parts.router, parts.shared, parts.experts) == moe
        assert (parts.latent, parts.dense) == (0, 0)
    if dense is not None:
        parts = compute.layer_parts(model, 1000, dense=True)
        assert parts.dense == dense
        assert (parts.router, parts.shared, parts.experts) == (0, 0, 0)


def test_attention_is_the_same_in_dense_and_moe_layers(data: Path) -> None:
    model = model_from_config(data / "models" / "deepseek_v3.json")
    dense, moe = (compute.layer_parts(model, 64, kind) for kind in (True, False))
    assert (dense.projections, dense.context) == (moe.projections, moe.context)


@pytest.mark.parametrize(
    ("model", "elements"),
    [("deepseek_v3", 576), ("glm_4_5", 2 * 8 * 128), ("mixtral_8x7b", 2 * 8 * 128)],
    indirect=["model"],
)
def test_cache_per_token_and_layer(model: Model, elements: int) -> None:
    assert weights.cache_elements(model) == elements


@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_a_chain_has_the_flop_of_its_layers(model: Model) -> None:
    """What the workload divides adds up again: each node once per rank of its group."""
    graph = build_workload(model, 2, 4, 128, 1).graph
    layer = f"L{model.layers_run(1) - 1}"
    ops = dict(zip(graph.names, graph.num_ops.tolist(), strict=True))
    flop = compute.first_principles(model, 128, dense=not model.has_experts)
    assert ops[f"{layer}.attn"] == flop.attention / 2
    assert ops[f"{layer}.ffn"] == flop.ffn / 2
    assert ops.get(f"{layer}.exp", 0) == flop.experts / 4


def test_weights_per_rank_follow_the_strategy(data: Path) -> None:
    """Mixtral: 32 layers of 8 * 3 * 4096 * 14336 expert weights; everything else is the remainder."""
    model = model_from_config(data / "models" / "mixtral_8x7b.json")
    experts = 32 * 8 * 3 * 4096 * 14336
    rest = weights.total_weights(model) - experts
    assert weights.weights_per_rank(model, 1, 1) == experts + rest
    assert weights.weights_per_rank(model, 4, 8) == Fraction(experts, 8) + Fraction(rest, 4)


def test_a_checkpoint_divided_evenly() -> None:
    assert weights.residency(1560, 32, 64) == weights.Residency(48.75, True)
    assert not weights.residency(1560, 16, 64).fits
