"""A sweep with a stand-in simulator: cheap, deterministic results that depend on the key alone.

Run it like `python -m hpcmoe.sweep`. The environment makes it misbehave:

    FAKE_SECONDS   wall time of each run (default 0)
    FAKE_SLICE     time between two calls of the progress callback (default 0.01)
    FAKE_FAIL      shell pattern of keys whose run raises SimulationError
    FAKE_CRASH     shell pattern of keys whose run raises an unexpected error
    FAKE_KILL      shell pattern of keys during whose run the process kills itself with SIGKILL
    FAKE_VERSION   part of the digest, as the simulator's version would be
    FAKE_DONE      file that gets the same line when a run is stored
    FAKE_PIDS      folder in which each rank leaves its process id
    FAKE_SHOW_IO   print how this rank writes rows
    FAKE_LOG       file that gets a line for every run started: key, process id and Unix time
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe.design import RunKey
from hpcmoe.errors import InputError, SimulationError
from hpcmoe.store import schema
from hpcmoe.sweep import app, main
from hpcmoe.sweep.arguments import Options
from hpcmoe.sweep.plan import Task
from hpcmoe.sweep.simulator import ProgressCallback, Simulator
from hpcmoe.sweep.worker import Outcome, Worker

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
    """As hpcmoe.runner.RunResult, and consistent in the same ways."""

    wall_ns: int
    gpu_ns: int
    comm_ns: int
    bottleneck_rank: int
    ranks: np.ndarray
    links: np.ndarray
    flows: np.ndarray
    queues: np.ndarray
    pauses: np.ndarray
    repeats: np.ndarray
    packet_hops: int
    ecn_marks: int
    simulated_ns: int = 2**52
    events: int = 2**33
    layers_simulated: int = LAYERS
    layers_added: int = 2
    quiet_moments: int = 9
    pfc_pauses: int = 5
    drops: int = 0
    ignored_int_flows: int = 11
    seconds: float = field(default=0.25)


def random_rows(table: schema.Table, count: int, random: np.random.Generator) -> np.ndarray:
    """Rows with arbitrary values in every column but `run`; times are below 2**50 ns, sizes below 2**40."""
    rows = np.zeros(count, schema.dtype(table))
    for column in table.columns:
        kind = np.dtype(column.kind)
        if kind.kind == "f":
            rows[column.name] = random.random(count)
        else:
            most = min(np.iinfo(kind).max, 2**40 if column.unit == "B" else 2**50)
            rows[column.name] = random.integers(0, most, count, dtype=kind)
    names = [column.name for column in table.columns if column.name != "run"]
    return rows[names]


REPEAT_COLUMNS = tuple(
    [(f"{name}_{end}", "u8") for name in ("flow", "pause", "queue") for end in ("begin", "end")]
    + [("count", "u8"), ("period_ns", "u8"), ("layer_step", "i8"), ("node_step", "u8")]
)
"""Columns of RunResult.repeats, in its order."""


def fake_result(key: RunKey) -> FakeResult:
    random = np.random.default_rng(int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], "little"))
    flows, queues, pauses = (int(value) for value in random.integers(3, 300, 3))
    sent = _flows(flows, random)
    ranks, links = _ranks(random, sent), random_rows(schema.LINKS, link_rows(key), random)
    links["ecn_marks"] = random.integers(0, 1000, len(links))
    links["data_packets"], links["ack_packets"] = random.integers(0, 10**6, (2, len(links)))
    slowest = int(np.argmax(ranks["wall_ns"]))
    return FakeResult(
        *(int(ranks[name][slowest]) for name in ("wall_ns", "gpu_ns", "comm_ns")),
        slowest,
        ranks,
        links,
        sent,
        random_rows(schema.QLEN, queues, random),
        random_rows(schema.PFC, pauses, random),
        np.array([(1, flows - 1, 0, pauses, 2, 2, 2, 10**6, 1, 6)], list(REPEAT_COLUMNS)),
        int((links["data_packets"] + links["ack_packets"]).sum()),
        int(links["ecn_marks"].sum()),
    )


def _ranks(random: np.random.Generator, flows: np.ndarray) -> np.ndarray:
    """Rows of ranks that sent the flows, the repeated ones three times."""
    ranks = random_rows(schema.RANKS, RANKS, random)
    ranks["rank"] = range(RANKS)
    ranks["finished"] = 1
    all_flows = np.concatenate([flows, flows[1:-1], flows[1:-1]])
    for column, end in (("bytes_sent", "src"), ("bytes_received", "dst")):
        ranks[column] = 0
        np.add.at(ranks[column], all_flows[end], all_flows["bytes"])
    return ranks


def _flows(count: int, random: np.random.Generator) -> np.ndarray:
    flows = random_rows(schema.FCT, count, random)
    flows["src"], flows["dst"] = random.integers(0, RANKS, (2, count))
    return flows


def _matches(variable: str, key: RunKey) -> bool:
    return fnmatchcase(str(key), os.environ.get(variable, ""))


def run(scenario: FakeScenario, progress: ProgressCallback, record: bool) -> FakeResult:
    key = scenario.key
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a") as log:
            log.write(f"{key} {os.getpid()} {time.time()}\n")
    end_s = time.monotonic() + float(os.environ.get("FAKE_SECONDS", "0"))
    slice_s = float(os.environ.get("FAKE_SLICE", "0.01"))
    progress(None)
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(slice_s, left_s))
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


def show_io() -> None:
    """Let every rank say which RowWriter it opens."""
    real = app.open_rows

    def shown(plan: Any, comm: Any) -> Any:
        rows = real(plan, comm)
        print(f"rows are written by {type(rows).__name__}", flush=True)
        return rows

    app.open_rows = shown


def log_finished(log: str) -> None:
    """Let a rank say when a run is finished: stored, and about to be reported."""
    real = Worker.execute

    def logged(self: Worker, task: Task, progress: ProgressCallback) -> Outcome:
        outcome = real(self, task, progress)
        if outcome.state == "ok":
            with open(log, "a") as stream:
                stream.write(f"{self._plan.keys[task.run]} {os.getpid()} {time.time()}\n")
        return outcome

    Worker.execute = logged


def log_process(folder: str) -> None:
    names = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
    rank = next((os.environ[name] for name in names if name in os.environ), "0")
    temporary = Path(folder).parent / f"pid-{rank}"
    temporary.write_text(str(os.getpid()))
    temporary.rename(Path(folder) / rank)


if __name__ == "__main__":
    if "FAKE_SHOW_IO" in os.environ:
        show_io()
    if "FAKE_DONE" in os.environ:
        log_finished(os.environ["FAKE_DONE"])
    if "FAKE_PIDS" in os.environ:
        log_process(os.environ["FAKE_PIDS"])
    sys.exit(main(simulator=fake_simulator(), process_ends=True))
