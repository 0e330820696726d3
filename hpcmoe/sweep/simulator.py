"""What a sweep needs of the simulator, so that tests can put another in its place."""

from __future__ import annotations

import hashlib
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

    if options.study is not None:
        options.study.install(options.file)  # on ranks that did not read the study file
    made = scenario_from_key(key, **vars(options.settings(key)))
    return made if options.backend == "native" else OnBackend(made, options.backend)


@dataclass(frozen=True)
class OnBackend:
    """A scenario for another backend than the usual one: its results are kept apart."""

    scenario: ScenarioLike
    backend: str

    def digest(self) -> str:
        return hashlib.sha256(f"{self.backend} {self.scenario.digest()}".encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {**self.scenario.to_json(), "backend": self.backend}


def _run(scenario: Any, progress: ProgressCallback, record: bool) -> RunResultLike:
    from hpcmoe.runner import run

    backend = "native"
    if isinstance(scenario, OnBackend):
        scenario, backend = scenario.scenario, scenario.backend
    return run(
        scenario,
        progress=progress,
        record_flows=record,
        record_pauses=record,
        record_queues=record,
        backend=backend,
    )


def _shape(key: RunKey) -> tuple[int, int]:
    from hpcmoe.placement import check_fit

    hosts, links = _topology_shape(key.topology)
    check_fit(hosts, key.degrees.ranks, str(key))
    return key.degrees.ranks, 2 * links


@cache
def _topology_shape(name: str) -> tuple[int, int]:
    """Hosts and links."""
    from hpcmoe import topology

    # The delay of external links has no part in how many there are.
    built = topology.build(name, external_delay_ns=1)
    return built.hosts, len(built.links)
