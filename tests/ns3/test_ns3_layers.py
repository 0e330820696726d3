"""One MoE layer of 24 configurations of the study on both backends, flow by flow."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hpcmoe import design
from hpcmoe.commands.crosscheck import compare, default_keys
from hpcmoe.model import load_model
from hpcmoe.scenario import Scenario, scenario_from_key
from hpcmoe.trace import CollectiveType

pytestmark = [pytest.mark.ns3, pytest.mark.slow]

TOKENS = 512


def one_moe_layer(key: design.RunKey) -> Scenario:
    """Without the dense layers that some models begin with."""
    model = replace(load_model(key.model), dense_at=())
    return scenario_from_key(key, tokens=TOKENS, layers=1, model=model)


def test_the_configurations_mix_all_factors() -> None:
    keys = default_keys()
    assert len(set(keys)) == 24
    assert {(key.model, key.topology) for key in keys} == {
        (model, topology) for model in design.MODELS for topology in design.TOPOLOGIES
    }
    assert {key.strategy for key in keys} == set(design.STRATEGIES)
    assert {key.collective for key in keys} == set(design.COLLECTIVES)
    assert {key.network for key in keys} == set(design.NETWORKS)


def check(key: design.RunKey) -> list[str]:
    scenario = one_moe_layer(key)
    trace = scenario.traces[0]
    dispatch_and_combine = trace.comm_bytes[trace.comm_type == CollectiveType.ALL_TO_ALL]
    assert len(dispatch_and_combine) == 2
    assert (dispatch_and_combine > 0).all()
    return list(compare(scenario))


def test_backends_agree_on_24_configurations() -> None:
    """Two at a time: each run on ns-3 has a process of its own."""
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check, default_keys()))
    different = ["\n".join(lines) for lines in results if len(lines) > 1]
    assert different == []
    assert all(lines[0].startswith("equal") for lines in results)
