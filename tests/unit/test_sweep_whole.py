"""What surrounds the work of a sweep: progress, signals, communicator, session, the whole in one process."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcmoe import design
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.store import open_results
from hpcmoe.store.paths import ResultPaths
from hpcmoe.sweep import app, comm
from hpcmoe.sweep.arguments import Options
from hpcmoe.sweep.lock import exclusive
from hpcmoe.sweep.progress import Progress, duration
from hpcmoe.sweep.session import record_session
from hpcmoe.sweep.signals import Stopped, StopRequest
from hpcmoe.sweep.simulator import real_simulator
from hpcmoe.sweep.worker import Outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake

SELECT = ("flash/t1/*/ring_direct/ib_cc0",)  # 4 runs


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(tmp_path / "study.h5", SELECT, tokens=64)


class TestProgress:
    def lines(self, **options: Any) -> tuple[Progress, io.StringIO, list[float]]:
        now = [0.0]
        stream = options.pop("stream", io.StringIO())
        progress = Progress({0: 1.0, 1: 1.0, 2: 6.0}, stream, clock=lambda: now[0], **options)
        return progress, stream, now

    def test_counts_rate_and_time_left(self) -> None:
        progress, stream, now = self.lines(interval_s=30)
        progress.add(Outcome(0, "ok", seconds=2.0))
        progress.look()
        assert stream.getvalue() == ""
        now[0] = 100.0
        progress.add(Outcome(1, "failed", renewed=True, seconds=1.0))
        progress.look()
        progress.look()
        assert stream.getvalue() == "1 done, 1 failed, 1 left, 72 runs/h, about 5 min to go\n"
        assert (progress.left, progress.seconds, progress.renewed) == (1, 3.0, 1)

    def test_kept_runs_do_not_make_it_look_fast(self) -> None:
        progress, _, now = self.lines()
        now[0] = 10.0
        progress.add(Outcome(2, "kept", kept=True))
        assert progress.line() == "1 done, 0 failed, 2 left, 0 runs/h"

    def test_live_line_is_overwritten(self) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        progress, stream, now = self.lines(stream=Terminal())
        now[0] = 1.0
        progress.look()
        progress.say("a failure")
        shown = "0 done, 0 failed, 3 left, 0 runs/h"
        assert stream.getvalue() == f"\r{shown}\r\r{'a failure'.ljust(len(shown))}\n"

    def test_quiet(self) -> None:
        progress, stream, now = self.lines(quiet=True)
        now[0] = 1e6
        progress.look()
        progress.note("remark")
        assert stream.getvalue() == ""
        progress.say("failure")
        assert stream.getvalue() == "failure\n"

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0, "0 s"),
            (59.9, "59 s"),
            (60, "1 min"),
            (3599, "59 min"),
            (3600, "1 h 00 min"),
            (3 * 86400 + 7200, "3 d 2 h"),
        ],
    )
    def test_duration(self, seconds: float, text: str) -> None:
        assert duration(seconds) == text


class TestSignals:
    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 85), (signal.SIGUSR1, 85)]
    )
    def test_noted_once_then_default(self, number: int, code: int) -> None:
        before = signal.getsignal(number)
        with StopRequest() as stop:
            stop.check()
            os.kill(os.getpid(), number)
            with pytest.raises(Stopped):
                stop.check()
            assert (stop.signal, stop.exit_code) == (number, code)
            assert signal.getsignal(number) is signal.SIG_DFL
        assert signal.getsignal(number) is before


class TestConnect:
    def test_plain(self) -> None:
        found = comm.connect({})
        assert (found.rank, found.size, found.library) == (0, 1, "none")
        assert isinstance(comm.connect({"SLURM_NTASKS": "1"}), comm.SerialComm)
        assert found.broadcast(5) == 5
        assert found.poll(comm.Tag.READY) is None
        with pytest.raises(RuntimeError, match="no rank 1"):
            found.send(None, 1, comm.Tag.TASK)

    @pytest.mark.parametrize("name", ["SLURM_NTASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
    def test_ranks_that_do_not_see_each_other(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        class World(comm.SerialComm):
            library = "Some MPI 1.0"

        monkeypatch.setattr(comm, "MpiComm", World)
        environment = {name: "4", "PMIX_RANK": "2"}
        with pytest.raises(
            HpcmoeError, match=f"{name}=4, but MPI .Some MPI 1.0. sees 1 rank.*--mpi=|mpiexec"
        ):
            comm.connect(environment)
        assert isinstance(comm.connect({name: "1", "PMIX_RANK": "0"}), World)

    def test_backoff_grows_to_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        slept: list[float] = []
        monkeypatch.setattr(comm.time, "sleep", slept.append)
        backoff = comm.Backoff()
        for _ in range(8):
            backoff.sleep()
        backoff.reset()
        backoff.sleep()
        assert slept == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05, 0.001]

    def test_tags_differ_and_are_small(self) -> None:
        assert len({int(tag) for tag in comm.Tag}) == len(comm.Tag)
        assert max(comm.Tag) < 32767  # all that MPI promises


class TestSession:
    def test_lock_is_exclusive_and_leaves_nothing(self, tmp_path: Path) -> None:
        paths = ResultPaths(tmp_path / "study.h5")
        with exclusive(paths):
            record_session(paths, {"n": 1})
            record_session(paths, {"n": 2})
            assert [json.loads(paths.session_file(n).read_text()) for n in paths.session_numbers()] == [
                {"n": 1},
                {"n": 2},
            ]
            if (child := os.fork()) == 0:
                try:
                    with exclusive(paths):
                        os._exit(0)
                except InputError:
                    os._exit(42)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
        assert list(tmp_path.iterdir()) == []


class TestWhole:
    def test_sessions_are_kept(self, options: Options, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = [str(options.file), "--select", *SELECT, "--quiet"]
        os.environ["FAKE_FAIL"] = "*/tp2ep16/*"
        try:
            assert app.main(arguments, fake.fake_simulator()) == 1
        finally:
            del os.environ["FAKE_FAIL"]
        assert app.main([*arguments, "--retry-failed"], fake.fake_simulator()) == 0
        with open_results(options.file) as results:
            assert len(results.provenance()["sessions"]) == 2
            assert results.counts() == {"missing": 0, "ok": 4, "failed": 0}

    def test_foreign_file_is_not_touched(self, options: Options, capsys: pytest.CaptureFixture[str]) -> None:
        options.file.write_text("mine")
        assert app.main([str(options.file)], fake.fake_simulator()) == 2
        assert "not an HDF5 file, or damaged" in capsys.readouterr().err
        assert options.file.read_text() == "mine"
        assert [item.name for item in options.file.parent.iterdir()] == ["study.h5"]

    def test_spool_of_an_interrupted_end_is_taken_over(
        self, options: Options, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def killed(*_: object) -> None:
            raise HpcmoeError("killed")

        arguments = [str(options.file), "--select", *SELECT]
        with monkeypatch.context() as patch:
            patch.setattr(app, "merge", killed)
            assert app.main(arguments, fake.fake_simulator()) == 1
        assert len(ResultPaths(options.file).spooled()) == 4
        assert app.main(arguments, fake.fake_simulator()) == 0
        assert "0 runs done, 4 kept" in capsys.readouterr().err
        assert not ResultPaths(options.file).spool.exists()
        with open_results(options.file) as results:
            assert len(results.traces(0).fct) == len(fake.fake_result(design.select(SELECT)[0]).flows)

    @pytest.mark.parametrize("topology", design.TOPOLOGIES)
    def test_real_rows_per_run(self, topology: str) -> None:
        real = real_simulator()
        key = design.RunKey("flash", topology, "tp2ep16", "ring_direct", "ib_cc0")
        scenario = real.scenario(key, Options(Path("x"), tokens=64, layers=1))
        assert real.shape(key) == (32, 2 * len(scenario.topology.links))
