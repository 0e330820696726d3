"""Hands out runs. Rank 0 serves requests between slices of its own run, so no rank idles.

worker                                   rank 0
READY Report(outcome of the last task) ->
                                       <- TASK Task, or None when there is no more
ALIVE, now and then during a task      ->
... repeated until None ...
                                       <- MERGE, where ranks merge together
                                       <- ALIVE, now and then during the merge
                                       <- EXIT code, after the merge

A rank that is silent for longer than the patience is taken for dead: its run goes to another, and since
MPI cannot end in order without it, rank 0 ends all ranks once the work is done.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hpcmoe.errors import HpcmoeError
from hpcmoe.store.trouble import StorageError
from hpcmoe.sweep.comm import Backoff, Comm, Tag, wait_for
from hpcmoe.sweep.plan import Task
from hpcmoe.sweep.signals import Stopped, StopRequest
from hpcmoe.sweep.timing import Pace, Stopwatch
from hpcmoe.sweep.worker import Outcome, Worker

PATIENCE_S = 300.0
"""How long a rank may be silent; building a scenario and storing a run are done in silence."""
STOP_GRACE_S = 60.0
"""The same once a stop was asked for: the job is about to be killed anyway."""
BEAT_S = 5.0
LOST_EVERY_S = 0.5


@dataclass(frozen=True)
class Report:
    """A worker's message: how its last task ended (None: had none, or dropped it), any signal, and
    why it can store nothing, if so."""

    outcome: Outcome | None
    signal: int | None
    trouble: str = ""


@dataclass
class Assignment:
    """What a rank is doing since `since_unix_s`; `heard_s` is when it last gave a sign of life."""

    task: Task | None
    since_unix_s: float
    heard_s: float


class Leader:
    """Rank 0: serves the others and works itself.

    `costs` is the predicted cost per run; `on_look` is called several times per second. After lead(),
    `trouble` says why storing had to end ('' if it did not) and `lost` which ranks are dead.
    """

    def __init__(
        self,
        comm: Comm,
        tasks: Iterable[Task],
        stop: StopRequest,
        on_outcome: Callable[[Outcome], None],
        on_look: Callable[[], None],
        *,
        costs: Mapping[int, float] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._comm, self._stop = comm, stop
        self._tasks = deque(tasks)
        self._on_outcome, self._on_look = on_outcome, on_look
        self._costs = costs or {}
        self._patience_s = patience_s
        self._pace = Pace()
        self.assignments = {rank: _assigned(None) for rank in range(comm.size)}
        self._waiting_for = set(range(1, comm.size))
        self._looked_s = time.monotonic()
        self.lost: set[int] = set()
        self.trouble = ""

    def lead(self, worker: Worker) -> None:
        """Return when every task is done, or when stopping and every rank has dropped its own."""
        backoff = Backoff()
        while True:
            if (task := self._next_task()) is not None:
                self._work(worker, task)
            elif not self._waiting_for:
                return
            self._on_look()
            if self.serve() or task is not None:
                backoff.reset()
            else:
                backoff.sleep()

    def serve(self) -> int:
        """Answer all waiting requests; returns how many messages there were."""
        answered = 0
        while (request := self._comm.poll(Tag.READY)) is not None:
            self._answer(*request)
            answered += 1
        while (sign := self._comm.poll(Tag.ALIVE)) is not None:
            self.assignments[sign[0]].heard_s = time.monotonic()
            answered += 1
        if time.monotonic() - self._looked_s > LOST_EVERY_S:
            self._look_for_lost()
        return answered

    def _work(self, worker: Worker, task: Task) -> None:
        self.assignments[0] = _assigned(task)
        watch, expected_s = Stopwatch(), self._expected_s(task)
        try:
            self._note(worker.execute(task, lambda _info: self._progress(expected_s - watch.seconds())))
        except Stopped:
            pass
        except StorageError as error:
            self._give_up(str(error))
        self.assignments[0] = _assigned(None)

    def _answer(self, sender: int, report: Report) -> None:
        if report.outcome is not None:
            self._note(report.outcome)
        if report.signal is not None:
            self._stop.request(report.signal)
        if report.trouble:
            self._give_up(report.trouble)
        task = self._next_task()
        self.assignments[sender] = _assigned(task)
        if task is None:
            self._waiting_for.discard(sender)
        if task is not None:
            task = replace(task, expected_s=self._expected_s(task))
        self._comm.send(task, sender, Tag.TASK)

    def _note(self, outcome: Outcome) -> None:
        if outcome.state == "ok":
            self._pace.add(self._costs.get(outcome.run, 0.0), outcome.wall_s)
        self._on_outcome(outcome)

    def _give_up(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble

    def _next_task(self) -> Task | None:
        """The longest task that can end in time; None when there is none, or when stopping."""
        if self._stop.asked or self.trouble:
            return None
        for position, task in enumerate(self._tasks):
            if not self._pace.known or self._stop.fits(self._expected_s(task)):
                del self._tasks[position]
                return task
        return None

    def _expected_s(self, task: Task) -> float:
        return self._pace.seconds(self._costs.get(task.run, 0.0)) if self._pace.known else math.inf

    def _progress(self, rest_s: float) -> None:
        """Called by the simulator during rank 0's own run."""
        self.serve()
        self._on_look()
        if self.trouble:
            raise Stopped
        self._stop.check(rest_s)

    def _look_for_lost(self) -> None:
        self._looked_s = now_s = time.monotonic()
        patience_s = min(STOP_GRACE_S, self._patience_s) if self._stop.asked else self._patience_s
        for rank in sorted(self._waiting_for):
            assignment = self.assignments[rank]
            if now_s - assignment.heard_s > patience_s:
                self.lost.add(rank)
                self._waiting_for.discard(rank)
                if assignment.task is not None:
                    self._tasks.appendleft(assignment.task)
                self.assignments[rank] = _assigned(None)


def _assigned(task: Task | None) -> Assignment:
    return Assignment(task, time.time(), time.monotonic())


def follow(comm: Comm, worker: Worker, stop: StopRequest, patience_s: float = PATIENCE_S) -> None:
    """Every other rank: ask, run, report, until told to stop."""
    report = Report(None, stop.signal)
    while True:
        comm.send(report, 0, Tag.READY)
        task = wait_for(comm, Tag.TASK, _Patience(stop, patience_s))
        if task is None:
            return
        report = _execute(worker, task, stop, Heartbeat(lambda: comm.send(None, 0, Tag.ALIVE), patience_s))


def wait_for_exit(
    comm: Comm,
    stop: StopRequest,
    patience_s: float = PATIENCE_S,
    take_part: Callable[[], None] = lambda: None,
) -> int:
    """The exit code of the sweep, when rank 0 has it; takes part in the merge when asked to."""
    patience = _Patience(stop, patience_s)

    def still_there() -> None:
        if comm.poll(Tag.MERGE) is not None:
            take_part()
            patience.reset()
        if comm.poll(Tag.ALIVE) is not None:
            patience.reset()
        patience()

    return int(wait_for(comm, Tag.EXIT, still_there))


def _execute(worker: Worker, task: Task, stop: StopRequest, beat: Heartbeat) -> Report:
    watch = Stopwatch()

    def progress(_info: Any) -> None:
        beat()
        stop.check(task.expected_s - watch.seconds())

    try:
        stop.check()
        return Report(worker.execute(task, progress), stop.signal)
    except Stopped:
        return Report(None, stop.signal)
    except StorageError as error:
        return Report(None, stop.signal, str(error))


class Heartbeat:
    """Calls `send` at most every BEAT_S, and four times within the patience of who listens."""

    def __init__(self, send: Callable[[], None], patience_s: float = PATIENCE_S) -> None:
        self._send, self._interval_s = send, min(BEAT_S, patience_s / 4)
        self._next_s = time.monotonic() + self._interval_s

    def __call__(self) -> None:
        if time.monotonic() >= self._next_s:
            self._send()
            self._next_s = time.monotonic() + self._interval_s


class _Patience:
    """Raises when rank 0 does not answer for long: it may be gone."""

    def __init__(self, stop: StopRequest, patience_s: float) -> None:
        self._stop, self._patience_s = stop, patience_s
        self.reset()

    def reset(self) -> None:
        self._since_s = time.monotonic()

    def __call__(self) -> None:
        limit_s = min(STOP_GRACE_S, self._patience_s) if self._stop.signal is not None else self._patience_s
        if time.monotonic() - self._since_s > limit_s:
            raise HpcmoeError(
                f"no answer from rank 0 for {limit_s:.0f} s: it may be dead; finished runs are safe, "
                "the same command continues"
            )
