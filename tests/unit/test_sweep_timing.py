"""Time limits, what still fits, and signals that leave time."""

from __future__ import annotations

import math
import signal

import pytest

from hpcmoe.errors import InputError
from hpcmoe.sweep.plan import Task
from hpcmoe.sweep.scheduler import Leader
from hpcmoe.sweep.signals import Stopped, StopRequest
from hpcmoe.sweep.timing import Pace, deadline_unix_s, parse_time_limit_s
from hpcmoe.sweep.worker import Outcome


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("1:30", 90), ("2:00:05", 7205), ("1-0", 86400), ("1-2:30", 95400), ("0-0:0:9", 9)],
)
def test_time_limits(text: str, seconds: float) -> None:
    assert parse_time_limit_s(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "0", "1:2:3:4", "-5", "1.5", "2-"])
def test_bad_time_limits(text: str) -> None:
    with pytest.raises(InputError, match="--time-limit: bad time limit .*allowed: MINUTES"):
        parse_time_limit_s(text)


def test_deadline() -> None:
    assert deadline_unix_s(None, {}, 1000.0) == math.inf
    assert deadline_unix_s(1000.0, {}, 5000.0) == 5990.0  # ten seconds in reserve
    assert deadline_unix_s(50.0, {}, 5000.0) == 5045.0  # or a tenth
    assert deadline_unix_s(None, {"SLURM_JOB_END_TIME": "6000"}, 5000.0) == 5990.0
    assert deadline_unix_s(100.0, {"SLURM_JOB_END_TIME": "6000"}, 5000.0) == 5090.0
    assert deadline_unix_s(None, {"SLURM_JOB_END_TIME": "?"}, 5000.0) == math.inf


@pytest.mark.parametrize(
    ("answer", "deadline"),
    [("10:00\n", 5590.0), ("1-0:00:00\n", 91390.0), ("UNLIMITED\n", math.inf), ("", math.inf)],
)
def test_slurm_is_asked_where_no_variable_tells(answer: str, deadline: float) -> None:
    asked: list[str] = []

    def ask(job: str) -> str:
        asked.append(job)
        return answer

    assert deadline_unix_s(None, {"SLURM_JOB_ID": "7"}, 5000.0, ask) == deadline
    assert deadline_unix_s(50.0, {"SLURM_JOB_ID": "7"}, 5000.0, ask) == 5045.0
    assert asked == ["7"]


def test_pace_follows_what_was_measured() -> None:
    pace = Pace()
    assert (pace.known, pace.seconds(7.0)) == (False, 7.0)
    pace.add(10.0, 20.0)
    pace.add(10.0, 40.0)
    assert pace.seconds(7.0) == 21.0


class TestStop:
    def stop(self, left_s: float, number: int | None = None) -> StopRequest:
        stop = StopRequest(clock=lambda: 100.0)
        stop.deadline_unix_s = 100.0 + left_s
        if number is not None:
            stop.request(number)
        return stop

    def test_time_is_up(self) -> None:
        self.stop(1.0).check(50.0)
        with pytest.raises(Stopped):
            self.stop(0.0).check(0.001)
        assert self.stop(0.0).reason == "at its time limit"
        assert self.stop(0.0).exit_code == 85

    def test_warning_lets_a_run_end_that_fits(self) -> None:
        self.stop(100.0, signal.SIGUSR1).check(80.0)
        with pytest.raises(Stopped):
            self.stop(100.0, signal.SIGUSR1).check(81.0)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_others_do_not(self, number: int) -> None:
        with pytest.raises(Stopped):
            self.stop(100.0, number).check(1.0)

    def test_warning_without_a_deadline_drops_the_run(self) -> None:
        with pytest.raises(Stopped):
            self.stop(math.inf, signal.SIGUSR1).check(1.0)

    def test_rest_that_is_not_known_does_not_fit(self) -> None:
        with pytest.raises(Stopped):
            self.stop(100.0, signal.SIGUSR1).check()


class Alone:
    rank, size, library, mpi = 0, 1, "test", None

    def poll(self, _tag: object) -> None: ...
    def send(self, *_: object) -> None: ...
    def broadcast(self, value: object) -> object:
        return value

    def abort(self, _code: int) -> None: ...


def test_runs_that_do_not_fit_are_not_started() -> None:
    """Once the pace is known the longest run that fits is taken, and then the sweep ends."""
    now = [0.0]
    stop = StopRequest(clock=lambda: now[0])
    stop.deadline_unix_s = 100.0
    done: list[int] = []
    costs = {0: 50.0, 1: 45.0, 2: 30.0, 3: 5.0}

    class Slow:
        def execute(self, task: Task, _progress: object) -> Outcome:
            now[0] += costs[task.run]
            done.append(task.run)
            return Outcome(task.run, "ok", wall_s=costs[task.run])

    leader = Leader(Alone(), map(Task, range(4)), stop, lambda _o: None, lambda: None, costs=costs)  # type: ignore[arg-type]
    leader.lead(Slow())  # type: ignore[arg-type]
    assert done == [0, 2, 3]
