"""What a sweep needs of the simulator, so that tests can put another in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from hpcmoe.design import RunKey
from hpcmoe.store.result import RunResultLike
from hpcmoe.sweep.arguments import Options


class ScenarioLike(Protocol):
    """What a sweep reads of a scenario."""

    def digest(self) -> str: ...
    def to_json(self) -> dict[str, Any]: ...


ProgressCallback = Callable[[Any], None]


@dataclass(frozen=True)
class Simulator:
    """Three functions: build a scenario, run one, and tell how many rows a run fills.

    run(scenario, progress, record) calls `progress` several times per second; an exception from
    it ends the run. `record` says whether to keep traces. shape(key) -> (ranks, link rows).
    """

    scenario: Callable[[RunKey, Options], ScenarioLike]
    run: Callable[[Any, ProgressCallback, bool], RunResultLike]
    shape: Callable[[RunKey], tuple[int, int]]


def real_simulator() -> Simulator:
    """The simulator of this package."""
    return Simulator(_scenario, _run, _shape)


def _scenario(key: RunKey, options: Options) -> ScenarioLike:
    from hpcmoe.scenario import scenario_from_key

    return scenario_from_key(key, tokens=options.tokens, layers=options.layers, overrides=options.overrides)


def _run(scenario: Any, progress: ProgressCallback, record: bool) -> RunResultLike:
    from hpcmoe.runner import run

    return run(scenario, progress=progress, record_flows=record, record_pauses=record, record_queues=record)


def _shape(key: RunKey) -> tuple[int, int]:
    return _topology_shape(key.topology)


@cache
def _topology_shape(name: str) -> tuple[int, int]:
    from hpcmoe import topology

    # The delay of external links has no part in how many there are.
    built = topology.build(name, external_delay_ns=1)
    return built.hosts, 2 * len(built.links)
