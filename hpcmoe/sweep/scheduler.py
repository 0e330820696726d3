"""Hands out runs. Rank 0 serves requests between slices of its own run, so no rank idles.

worker                                   rank 0
READY Report(outcome of the last task) ->
                                       <- TASK Task, or None when there is no more
... repeated until None ...
                                       <- EXIT code, after the merge
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hpcmoe.errors import HpcmoeError
from hpcmoe.sweep.comm import Backoff, Comm, Tag, wait_for
from hpcmoe.sweep.plan import Task
from hpcmoe.sweep.signals import Stopped, StopRequest
from hpcmoe.sweep.worker import Outcome, Worker

STOP_GRACE_S = 60.0
"""How long a worker that was asked to stop waits for rank 0 before it ends all ranks."""


@dataclass(frozen=True)
class Report:
    """A worker's message: how its last task ended (None: had none, or dropped it), and any signal."""

    outcome: Outcome | None
    signal: int | None


class Leader:
    """Rank 0: serves the others and works itself."""

    def __init__(
        self,
        comm: Comm,
        tasks: Iterable[Task],
        stop: StopRequest,
        on_outcome: Callable[[Outcome], None],
        on_look: Callable[[], None],
    ) -> None:
        self._comm, self._stop = comm, stop
        self._tasks = deque(tasks)
        self._on_outcome, self._on_look = on_outcome, on_look
        self._served = 0
        self._working = set(range(1, comm.size))

    def lead(self, worker: Worker) -> None:
        """Return when every task is done, or when stopping and every rank has dropped its own."""
        while (task := self._next_task()) is not None:
            try:
                self._on_outcome(worker.execute(task, self._progress))
            except Stopped:
                break
            self.serve()
        backoff = Backoff()
        while self._working:
            self._on_look()
            if self.serve():
                backoff.reset()
            backoff.sleep()

    def serve(self) -> int:
        """Answer all waiting requests; returns how many there were."""
        answered = 0
        while (request := self._comm.poll(Tag.READY)) is not None:
            self._answer(*request)
            answered += 1
        return answered

    def _answer(self, sender: int, report: Report) -> None:
        if report.outcome is not None:
            self._on_outcome(report.outcome)
        if report.signal is not None:
            self._stop.request(report.signal)
        task = self._next_task()
        if task is None:
            self._working.discard(sender)
        self._comm.send(task, sender, Tag.TASK)

    def _next_task(self) -> Task | None:
        if self._stop.signal is not None or not self._tasks:
            return None
        return self._tasks.popleft()

    def _progress(self, _info: Any) -> None:
        """Called by the simulator during rank 0's own run."""
        self.serve()
        self._on_look()
        self._stop.check()


def follow(comm: Comm, worker: Worker, stop: StopRequest) -> int:
    """Every other rank: ask, run, report, until told to stop. Returns the exit code of the sweep."""
    outcome: Outcome | None = None
    while True:
        comm.send(Report(outcome, stop.signal), 0, Tag.READY)
        task = wait_for(comm, Tag.TASK, _Patience(stop))
        if task is None:
            return int(wait_for(comm, Tag.EXIT))
        outcome = _execute(worker, task, stop)


def _execute(worker: Worker, task: Task, stop: StopRequest) -> Outcome | None:
    try:
        stop.check()
        return worker.execute(task, lambda _info: stop.check())
    except Stopped:
        return None


class _Patience:
    """Raises when rank 0 does not answer for long after a stop signal: it may be gone."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._since_s: float | None = None

    def __call__(self) -> None:
        if self._stop.signal is None:
            return
        now_s = time.monotonic()
        self._since_s = self._since_s or now_s
        if now_s - self._since_s > STOP_GRACE_S:
            raise HpcmoeError(
                f"no answer from rank 0 for {STOP_GRACE_S:.0f} s after signal {self._stop.signal}"
            )
