"""Fast-forward on runs of the study, small: the result is the one of simulating every layer."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcmoe import runner
from hpcmoe.design import COLLECTIVES, MODELS, NETWORKS, STRATEGIES, TOPOLOGIES, RunKey
from hpcmoe.runner import RunResult
from hpcmoe.scenario import scenario_from_key
from hpcmoe.store.repeats import expand
from hpcmoe.store.result import result_traces
from hpcmoe.store.schema import TRACE_KINDS

TOTALS = ("wall_ns", "gpu_ns", "comm_ns", "bottleneck_rank", "simulated_ns", "events", "packet_hops",
          "ecn_marks", "pfc_pauses", "drops", "ignored_int_flows")  # fmt: skip


def mixed_keys() -> list[RunKey]:
    """Each model on each topology, the other factors rotating."""
    return [
        RunKey(
            model, topology, STRATEGIES[(a + b) % 4], COLLECTIVES[(a + b // 2) % 2], NETWORKS[(2 * a + b) % 4]
        )
        for a, model in enumerate(MODELS)
        for b, topology in enumerate(TOPOLOGIES)
    ]


def both_ways(key: RunKey | str, tokens: int, layers: int, **options: Any) -> tuple[RunResult, RunResult]:
    scenario = scenario_from_key(key, tokens=tokens, layers=layers, **options)
    return runner.run(scenario), runner.run(scenario, fast_forward=False)


def assert_same(fast: RunResult, full: RunResult) -> None:
    assert full.layers_added == 0
    assert fast.layers_added + fast.layers_simulated == full.layers_simulated
    for name in TOTALS:
        assert getattr(fast, name) == getattr(full, name), name
    np.testing.assert_array_equal(fast.ranks, full.ranks)
    np.testing.assert_array_equal(fast.links, full.links)


def assert_same_records(fast: RunResult, full: RunResult) -> None:
    written_out = expand(result_traces(fast, 0, digest="", config="", keep=True))
    whole = result_traces(full, 0, digest="", config="", keep=True)
    for kind in TRACE_KINDS:
        np.testing.assert_array_equal(getattr(written_out, kind), getattr(whole, kind), err_msg=kind)


@pytest.mark.parametrize("key", mixed_keys(), ids=str)
def test_mixed_factors(key: RunKey) -> None:
    assert_same(*both_ways(key, tokens=32, layers=8))


def test_most_layers_of_a_regular_run_are_added() -> None:
    fast, full = both_ways("flash/t1/tp2ep16/ring_direct/ib_cc0", tokens=256, layers=20)
    assert_same(fast, full)
    assert fast.layers_added >= 15
    assert fast.events == full.events
    assert len(fast.flows) < len(full.flows) / 2


@pytest.mark.parametrize(
    "key",
    [
        "flash/t1/tp2ep16/ring_direct/ib_cc0",
        "glm/t6/tp16ep2/dbt_direct/ib_cc0",
        "k3/t2/tp4ep8/ring_direct/roce_hpcc",
    ],
)
def test_records_with_their_copies_are_those_of_the_whole_run(key: str) -> None:
    fast, full = both_ways(key, tokens=128, layers=12)
    assert_same(fast, full)
    assert len(fast.repeats) > 0
    assert_same_records(fast, full)


def test_quirks_of_upstream_keep_absolute_state_and_nothing_is_added() -> None:
    scenario = scenario_from_key("flash/t1/tp2ep16/ring_direct/ib_cc0", tokens=64, layers=6)
    network = {**scenario.network, "restart_counters_when_idle": False}
    result = runner.run(dataclasses.replace(scenario, network=network))
    assert result.layers_added == 0
    assert result.quiet_moments > 0


RANKS = 16  # of 32 GPUs, so that placements differ
DEGREES = ("tp1ep16", "tp16ep1", "tp2ep8", "tp4ep2dp2", "tp2ep2dp2pp2", "tp2ep4pp2")
CHANGES = (
    {},
    {"expert_skew": 1},
    {"overlap_shared_ffn": 1},
    {"ecn": "*:5000:20000:0.5"},
    {"microbatches": 2},
)
PLACEMENTS = st.sampled_from(["contiguous", "round_robin"]) | st.permutations(range(RANKS))
KEYS = st.builds(
    RunKey,
    st.sampled_from(MODELS),
    st.sampled_from([*TOPOLOGIES, "validation32"]),
    st.sampled_from(DEGREES),
    st.sampled_from(COLLECTIVES),
    st.sampled_from(NETWORKS),
)


@settings(derandomize=True, deadline=None, max_examples=25, database=None)
@given(
    KEYS,
    st.sampled_from([3, 64]),
    st.integers(2, 5),
    st.sampled_from(["none", "barrier"]),
    st.sampled_from(CHANGES),
    PLACEMENTS,
)
def test_any_run_is_the_same_in_full(
    key: RunKey, tokens: int, layers: int, sync: str, changes: dict[str, Any], placement: Any
) -> None:
    overrides = {**changes, "layer_sync": sync}
    fast, full = both_ways(key, tokens, layers, overrides=overrides, placement=placement)
    assert_same(fast, full)
    assert_same_records(fast, full)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("strategy", ["tp2ep16", "tp1ep32", "tp4ep2"])
def test_with_barriers_equal_layers_add_up(network: str, strategy: str) -> None:
    """Every layer starts with all ranks together on an empty network."""
    key = f"flash/t3/{strategy}/ring_direct/{network}"
    walls = {
        layers: runner.run(
            scenario_from_key(key, tokens=64, layers=layers, overrides={"layer_sync": "barrier"}),
            fast_forward=False,
        ).wall_ns
        for layers in (1, 3)
    }
    assert walls[3] == 3 * walls[1]
