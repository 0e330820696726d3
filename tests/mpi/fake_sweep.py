"""A sweep with a stand-in simulator: cheap, deterministic results that depend on the key alone.

Run it like `python -m hpcmoe.sweep`. The environment makes it misbehave:

    FAKE_SECONDS   wall time of each run (default 0)
    FAKE_FAIL      shell pattern of keys whose run raises SimulationError
    FAKE_CRASH     shell pattern of keys whose run raises an unexpected error
    FAKE_KILL      shell pattern of keys during whose run the process kills itself with SIGKILL
    FAKE_VERSION   part of the digest, as the simulator's version would be
    FAKE_LOG       file that gets a line for every run started: key and process id
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from hpcmoe.design import RunKey
from hpcmoe.errors import InputError, SimulationError
from hpcmoe.store import schema
from hpcmoe.sweep import main
from hpcmoe.sweep.arguments import Options
from hpcmoe.sweep.simulator import ProgressCallback, Simulator

RANKS = 4
LAYERS = 3


def link_rows(key: RunKey) -> int:
    """Differs between topologies, as it does for real ones."""
    return 4 + 2 * int(key.topology[1:])


@dataclass(frozen=True)
class FakeScenario:
    key: RunKey
    options: Options

    @property
    def tokens(self) -> int:
        return self.options.tokens

    def to_json(self) -> dict[str, Any]:
        return {"key": str(self.key), "tokens": self.tokens, "overrides": dict(self.options.overrides)}

    def digest(self) -> str:
        text = f"{self.to_json()} {self.options.layers} {os.environ.get('FAKE_VERSION', '1')}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class FakeResult:
    wall_ns: int
    gpu_ns: int
    comm_ns: int
    ranks: np.ndarray
    links: np.ndarray
    flows: np.ndarray
    queues: np.ndarray
    pauses: np.ndarray
    bottleneck_rank: int = 2
    simulated_ns: int = 2**40
    events: int = 2**33
    packet_hops: int = 12345
    layers_simulated: int = LAYERS
    layers_added: int = 2
    ecn_marks: int = 7
    pfc_pauses: int = 5
    drops: int = 0
    ignored_int_flows: int = 11
    seconds: float = field(default=0.25)


def random_rows(table: schema.Table, count: int, random: np.random.Generator) -> np.ndarray:
    """Rows with arbitrary values in every column but `run`."""
    rows = np.zeros(count, schema.dtype(table))
    for column in table.columns:
        kind = np.dtype(column.kind)
        if kind.kind == "f":
            rows[column.name] = random.random(count)
        else:
            rows[column.name] = random.integers(0, np.iinfo(kind).max, count, dtype=kind)
    names = [column.name for column in table.columns if column.name != "run"]
    return rows[names]


def fake_result(key: RunKey) -> FakeResult:
    random = np.random.default_rng(int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], "little"))
    wall, gpu = (int(value) for value in random.integers(1, 2**50, 2))
    counts = [int(value) for value in random.integers(0, 300, 3)]
    return FakeResult(
        wall,
        gpu,
        abs(wall - gpu),
        random_rows(schema.RANKS, RANKS, random),
        random_rows(schema.LINKS, link_rows(key), random),
        random_rows(schema.FCT, counts[0], random),
        random_rows(schema.QLEN, counts[1], random),
        random_rows(schema.PFC, counts[2], random),
    )


def _matches(variable: str, key: RunKey) -> bool:
    return fnmatchcase(str(key), os.environ.get(variable, ""))


def run(scenario: FakeScenario, progress: ProgressCallback, record: bool) -> FakeResult:
    key = scenario.key
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(f"{key} {os.getpid()}\n")
    end_s = time.monotonic() + float(os.environ.get("FAKE_SECONDS", "0"))
    progress(None)
    while time.monotonic() < end_s:
        time.sleep(0.01)
        progress(None)
    if _matches("FAKE_KILL", key):
        os.kill(os.getpid(), signal.SIGKILL)
    if _matches("FAKE_FAIL", key):
        raise SimulationError(f"{key}: ranks 3 and 5 are stuck in an ünusual place")
    if _matches("FAKE_CRASH", key):
        raise ZeroDivisionError("an unexpected error")
    return fake_result(key)


def scenario(key: RunKey, options: Options) -> FakeScenario:
    if "bad" in options.overrides:
        raise InputError("bad value", field="bad", value=options.overrides["bad"], allowed="none")
    return FakeScenario(key, options)


def fake_simulator() -> Simulator:
    return Simulator(scenario, run, lambda key: (RANKS, link_rows(key)))


if __name__ == "__main__":
    sys.exit(main(simulator=fake_simulator()))
