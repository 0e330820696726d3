"""The parts of a sweep one at a time: arguments, plan, order, worker, scheduler."""

from __future__ import annotations

import itertools
import signal
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcmoe import design, runner
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.scenario import scenario_from_key
from hpcmoe.store import open_results
from hpcmoe.store.rows import RowFile
from hpcmoe.sweep import comm, cost, scheduler, worker
from hpcmoe.sweep.arguments import Options, parse
from hpcmoe.sweep.plan import Plan, Task, make_plan, order_tasks
from hpcmoe.sweep.scheduler import Leader, Report, follow, wait_for_exit
from hpcmoe.sweep.signals import Stopped, StopRequest
from hpcmoe.sweep.worker import Outcome, Worker

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake

SOFTWARE = {"hpcmoe_version": "1"}
SESSION = {"started": "now", "host": "h", "ranks": 1, "mpi": "none", "other": "not an attribute of the file"}
SELECT = ("flash/t1/*/ring_direct/ib_cc0",)  # 4 runs


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(tmp_path / "study.h5", SELECT, tokens=64)


def plan_of(options: Options, software: dict[str, str] = SOFTWARE) -> tuple[Plan, list[Task], list[str]]:
    return make_plan(options, fake.fake_simulator(), software, SESSION)


def work(plan: Plan, *tasks: Task, progress: Any = lambda _info: None) -> list[Outcome]:
    plan.paths.spool.mkdir(exist_ok=True)
    with RowFile(plan.options.file, plan.row_map) as rows:
        one = Worker(plan, fake.fake_simulator(), rows, rank=0, size=1)
        return [one.execute(task, progress) for task in tasks]


class TestArguments:
    def test_defaults(self, tmp_path: Path) -> None:
        assert parse([str(tmp_path / "a.h5")]) == Options(tmp_path / "a.h5")

    def test_everything(self, tmp_path: Path) -> None:
        text = f"{tmp_path}/a.h5 --select a b --select c --tokens 64 --layers 2 --set x=1 --set y=2 "
        text += "--no-traces --quiet"
        expected = Options(tmp_path / "a.h5", ("a", "b", "c"), 64, 2, {"x": "1", "y": "2"}, False, True)
        assert parse(text.split()) == expected

    @pytest.mark.parametrize("text", ["0", "-1", "x", "1.5"])
    def test_bad_layers(self, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            parse(["a.h5", "--layers", text])
        assert f"whole number of at least 1, got '{text}'" in capsys.readouterr().err

    def test_file_must_be_possible(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is a directory"):
            parse([str(tmp_path)])
        with pytest.raises(InputError, match="folder for the results file does not exist"):
            parse([str(tmp_path / "no" / "a.h5")])


class TestPlan:
    def test_new_file_has_everything_to_do(self, options: Options) -> None:
        plan, tasks, remarks = plan_of(options)
        assert [str(key) for key in plan.keys] == [str(key) for key in design.select(SELECT)]
        assert sorted(task.run for task in tasks) == [0, 1, 2, 3]
        assert {task.keep for task in tasks} == {""}
        assert remarks == []
        with open_results(options.file) as results:
            assert results.provenance()["created"] == "now"
            assert "other" not in results.provenance()

    def test_bad_options_leave_no_file(self, options: Options) -> None:
        with pytest.raises(InputError, match="bad: bad value"):
            plan_of(replace(options, overrides={"bad": "1"}))
        assert not options.file.exists()

    def test_finished_runs_are_offered_for_keeping(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        work(plan, Task(1), Task(2))
        _, again, _ = plan_of(options)
        kept = {task.run: task.keep for task in again}
        assert {run for run, digest in kept.items() if digest} == {1, 2}
        assert kept[1] == fake.FakeScenario(plan.keys[1], options).digest()
        assert [bool(task.keep) for task in again] == [False, False, True, True]

    def test_finished_run_without_its_traces_is_done_again(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        work(plan, Task(1), Task(2))
        lost = plan.paths.spool_file(str(plan.keys[2]), fake.FakeScenario(plan.keys[2], options).digest())
        lost.unlink()
        assert {task.run for task in plan_of(options)[1] if task.keep} == {1}

    def test_other_version_is_said(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        assert plan_of(options, {"hpcmoe_version": "2"})[2] == []  # nothing finished, nothing to say
        work(plan, Task(1))
        _, tasks, remarks = plan_of(options, {"hpcmoe_version": "2"})
        assert remarks == ["the file was written by hpcmoe 1, this is 2: finished runs are done again"]
        assert [task.run for task in tasks] == [
            task.run for task in order_tasks(map(Task, range(4)), plan.keys, options, renewed=False)
        ]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"tokens": 128},
                r"--tokens \(tokens 64 in the file, 128 asked for\)\. Repeat the first command",
            ),
            ({"layers": 3}, r"--layers \(layers all in the file, 3 asked for\)"),
            ({"traces": False}, r"--no-traces \(traces on in the file, off asked for\)"),
            (
                {"overrides": {"u_target": "0.9"}},
                r"--set \(overrides none in the file, u_target=0.9 asked for\)",
            ),
            (
                {"select": ("flash/t1/tp2ep16/*/ib_cc0",)},
                (
                    r"--select \(3 run\(s\) only in the file, .*, 1 run\(s\) only asked for, e.g. "
                    r"flash/t1/tp2ep16/dbt_direct/ib_cc0; the file was made with "
                    r"'flash/t1/\*/ring_direct/ib_cc0'\)"
                ),
            ),
            ({"select": ("flash/t1/tp2*/ring_direct/ib_cc0",)}, r"--select \(3 run\(s\) only in the file"),
        ],
    )
    def test_file_of_another_sweep_is_refused(
        self, change: dict[str, Any], message: str, options: Options
    ) -> None:
        plan_of(options)
        before = options.file.read_bytes()
        with pytest.raises(InputError, match=f"belongs to another sweep. Different: {message}"):
            plan_of(replace(options, **change))
        assert options.file.read_bytes() == before

    def test_same_runs_by_another_pattern_are_the_same_sweep(self, options: Options) -> None:
        plan_of(options)
        plan_of(replace(options, select=tuple(str(key) for key in reversed(design.select(SELECT)))))

    def test_longest_first_then_run_order(self, options: Options) -> None:
        keys = design.all_runs()
        tasks = order_tasks(map(Task, range(len(keys))), keys, options, renewed=False)
        costs = [cost.predicted_cost(keys[task.run], options.tokens, None) for task in tasks]
        assert costs == sorted(costs, reverse=True)
        for (first, one), (second, other) in itertools.pairwise(zip(costs, tasks, strict=True)):
            assert first > second or one.run < other.run

    def test_cost_scales(self) -> None:
        key = design.RunKey.parse("pro/t3/tp2ep16/ring_direct/ib_hpcc")
        assert cost.packet_hops(key, 8192, None) == pytest.approx(2 * cost.packet_hops(key, 4096, None))
        assert cost.packet_hops(key, 4096, 2) == pytest.approx(2 * cost.packet_hops(key, 4096, 1))
        assert cost.predicted_cost(key, 4096, 1) > 0


class TestWorker:
    def test_finished_run_is_on_disk(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        [outcome] = work(plan, Task(3))
        assert (outcome.run, outcome.state, outcome.renewed, outcome.error) == (3, "ok", False, "")
        with open_results(options.file) as results:
            assert results.runs["status"].tolist() == ["missing"] * 3 + ["ok"]
            assert results.config(3)["key"] == str(plan.keys[3])
            provenance = results.provenance()["runs"][3]
            assert provenance["peak_memory_bytes"] > 2**20
            assert provenance["finished_unix_s"] > 1.7e9

    def test_stored_result_is_kept_or_renewed(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        digest = fake.FakeScenario(plan.keys[0], options).digest()
        work(plan, Task(0))
        before = options.file.read_bytes()
        assert work(plan, Task(0, keep=digest))[0].state == "kept"
        assert options.file.read_bytes() == before
        [outcome] = work(plan, Task(0, keep="0" * 64))
        assert (outcome.state, outcome.renewed) == ("ok", True)

    def test_failures(self, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FAKE_FAIL", "*/tp2ep16/*")
        monkeypatch.setenv("FAKE_CRASH", "*/tp4ep8/*")
        plan, _, _ = plan_of(options)
        expected, crashed = work(plan, Task(0), Task(1))
        assert (expected.state, expected.details) == ("failed", "")
        assert "stuck in an ünusual place" in expected.error
        assert crashed.error == "ZeroDivisionError: an unexpected error"
        assert crashed.details.startswith("rank 0 of 1 on ")
        assert "raise ZeroDivisionError" in crashed.details
        with open_results(options.file) as results:
            assert results.runs["status"].tolist() == ["failed", "failed", "missing", "missing"]
            assert results.config(0)["key"] == str(plan.keys[0])

    def test_scenario_that_cannot_be_built(self, options: Options) -> None:
        plan, _, _ = plan_of(options)
        broken = replace(plan, options=replace(options, overrides={"bad": "1"}))
        [outcome] = work(broken, Task(0))
        assert outcome.error == "bad: bad value (got '1'); allowed: none"
        with open_results(options.file) as results:
            assert results.runs["digest"][0] == ""
        assert plan.paths.spooled() == set()

    def test_result_of_wrong_shape_is_a_failed_run(
        self, options: Options, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan, _, _ = plan_of(options)
        monkeypatch.setattr(fake, "link_rows", lambda _key: 99)
        [outcome] = work(plan, Task(0))
        assert outcome.error == "ValueError: the run gives 99 link rows, the file has room for 6"
        with open_results(options.file) as results:
            assert results.runs["status"][0] == "failed"

    def test_stop_drops_the_run(self, options: Options) -> None:
        plan, _, _ = plan_of(options)

        def stop(_info: object) -> None:
            raise Stopped

        with pytest.raises(Stopped):
            work(plan, Task(0), progress=stop)
        with open_results(options.file) as results:
            assert results.counts()["missing"] == 4

    def test_trouble_of_the_sweep_is_not_the_runs_fault(self, options: Options) -> None:
        plan, _, _ = plan_of(options)

        def breaks(_info: object) -> None:
            raise OSError("no space left")

        with pytest.raises(worker.CallbackError, match="no space left"):
            work(plan, Task(0), progress=breaks)
        with open_results(options.file) as results:
            assert results.counts()["failed"] == 0

    def test_peak_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert worker.peak_memory_bytes(lambda: "Name: x\nVmHWM:\t  12 kB\n") == 12 * 1024
        assert worker.peak_memory_bytes(lambda: "Name: x\n") > 2**20

        def unreadable() -> str:
            raise OSError

        assert worker.peak_memory_bytes(unreadable) > 2**20


class Mailbox:
    """Rank 0's end of a communicator whose other ranks are a script: messages come in given order."""

    rank, library, mpi = 0, "test", None

    def __init__(self, size: int, requests: list[tuple[int, Report]]) -> None:
        self.size = size
        self._requests = deque(requests)
        self.sent: list[tuple[int, comm.Tag, Any]] = []

    def broadcast(self, value: Any) -> Any:
        return value

    def send(self, value: Any, rank: int, tag: comm.Tag) -> None:
        self.sent.append((rank, tag, value))

    def poll(self, tag: comm.Tag) -> tuple[int, Any] | None:
        if tag is comm.Tag.ALIVE:
            return None
        assert tag is comm.Tag.READY
        return self._requests.popleft() if self._requests else None

    def abort(self, code: int) -> None:
        raise AssertionError


class FakeWorker:
    """Calls `progress` as often as told, then finishes."""

    def __init__(self, slices: int = 1) -> None:
        self.done: list[int] = []
        self._slices = slices

    def execute(self, task: Task, progress: Any) -> Outcome:
        for _ in range(self._slices):
            progress(None)
        self.done.append(task.run)
        return Outcome(task.run, "ok")


def lead(
    box: Mailbox, tasks: int, one: Any, stop: StopRequest | None = None
) -> tuple[list[int], list[tuple[int, comm.Tag, Any]]]:
    outcomes: list[int] = []
    leader = Leader(
        box, map(Task, range(tasks)), stop or StopRequest(), lambda o: outcomes.append(o.run), lambda: None
    )
    leader.lead(one)
    return outcomes, box.sent


class TestScheduler:
    def test_alone(self) -> None:
        one = FakeWorker()
        assert lead(Mailbox(1, []), 3, one) == ([0, 1, 2], [])
        assert one.done == [0, 1, 2]

    def test_others_are_served_during_a_run(self) -> None:
        first, second = Report(None, None), Report(Outcome(1, "ok"), None)
        outcomes, sent = lead(
            Mailbox(2, [(1, first), (1, second), (1, Report(Outcome(2, "ok"), None))]), 3, FakeWorker()
        )
        task = comm.Tag.TASK
        assert sent == [(1, task, Task(1)), (1, task, Task(2)), (1, task, None)]
        assert sorted(outcomes) == [0, 1, 2]

    def test_more_ranks_than_runs(self) -> None:
        requests = [(rank, Report(None, None)) for rank in (3, 1, 2)]
        _, sent = lead(Mailbox(4, requests), 1, FakeWorker())
        assert sent == [(rank, comm.Tag.TASK, None) for rank in (3, 1, 2)]

    def test_signal_of_a_worker_stops_all_and_keeps_its_outcome(self) -> None:
        stop, one = StopRequest(), FakeWorker()
        requests = [
            (1, Report(None, None)),
            (2, Report(None, None)),
            (1, Report(Outcome(1, "ok"), signal.SIGTERM)),
            (2, Report(None, None)),
        ]
        outcomes, sent = lead(Mailbox(3, requests), 9, one, stop)
        assert [value for _, _, value in sent] == [Task(1), Task(2), None, None]
        assert (outcomes, one.done, stop.signal) == ([1], [], signal.SIGTERM)

    def test_follower(self) -> None:
        class Rank0:
            rank, size, library = 1, 2, "test"

            def __init__(self) -> None:
                self.answers = deque([Task(5), Task(7), None, 3])
                self.reports: list[Report] = []

            def send(self, value: Any, rank: int, tag: comm.Tag) -> None:
                assert (rank, tag) == (0, comm.Tag.READY)
                self.reports.append(value)

            def poll(self, tag: comm.Tag) -> tuple[int, Any] | None:
                if tag in (comm.Tag.ALIVE, comm.Tag.MERGE):
                    return None
                answer = self.answers.popleft()
                assert tag is (comm.Tag.EXIT if answer == 3 else comm.Tag.TASK)
                return 0, answer

        box, one = Rank0(), FakeWorker()
        follow(box, one, StopRequest())  # type: ignore[arg-type]
        assert wait_for_exit(box, StopRequest()) == 3  # type: ignore[arg-type]
        assert one.done == [5, 7]
        assert [report.outcome and report.outcome.run for report in box.reports] == [None, 5, 7]

    def test_follower_gives_up_when_rank_0_is_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scheduler, "STOP_GRACE_S", 0.01)
        stop = StopRequest()
        stop.request(signal.SIGTERM)

        class Silence:
            rank, size, library = 1, 2, "test"

            def send(self, *_: Any) -> None: ...
            def poll(self, tag: comm.Tag) -> None: ...

        with pytest.raises(HpcmoeError, match="no answer from rank 0"):
            follow(Silence(), FakeWorker(), stop)  # type: ignore[arg-type]


def test_a_results_file_names_the_commit_and_flags_of_the_build() -> None:
    from hpcmoe import _version
    from hpcmoe.sweep.session import software

    assert software() == {
        "hpcmoe_version": _version.__version__,
        "git_sha": _version.__git_sha__,
        "build_flags": _version.__build_flags__,
    }


@pytest.mark.parametrize("strategy", ["tp2ep16", "tp2ep4", "tp2ep8dp2", "tp2ep8pp2", "tp2ep4dp2pp2"])
def test_the_cost_model_counts_the_packet_hops_of_any_strategy(strategy: str) -> None:
    key = design.RunKey("flash", "t4", strategy, "ring_direct", "ib_cc0")
    simulated = runner.run(scenario_from_key(key, tokens=256, layers=2), fast_forward=False)
    # Sizes are rounded up to whole packets, which small all-to-alls notice most.
    assert cost.packet_hops(key, 256, 2) == pytest.approx(simulated.packet_hops, rel=0.04)
