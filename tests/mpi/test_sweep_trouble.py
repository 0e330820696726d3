"""What the file system, other sweeps and dead ranks can do to a sweep: one clear message, nothing damaged."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpcmoe.store import open_results
from hpcmoe.store.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
import faults
import sweep_tools as tools

WITHOUT_MPI = importlib.util.find_spec("mpi4py") is None or tools.mpiexec() is None
NEEDS_MPI = (pytest.mark.mpi, pytest.mark.skipif(WITHOUT_MPI, reason="mpi4py or mpiexec is missing"))
NEEDS_MOUNT = pytest.mark.skipif(not faults.can_mount(), reason="this process may not mount a tmpfs")
BOTH = pytest.mark.parametrize(
    "ranks", [pytest.param(0, id="plain"), pytest.param(2, id="mpiexec-2", marks=NEEDS_MPI)]
)
SELECT = ("--select", "glm/t[12]/tp2ep16/*/*")
RUNS = 16
NO_ROOM_TO_MERGE_BYTES = 7 << 16
"""A file and the spool of its runs take 336 KiB, the copy that the merge writes another 264."""


def errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("hpcmoe: error: ")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "study.h5"
    assert tools.sweep(0, path, *SELECT).returncode == 0
    return path


@NEEDS_MOUNT
class TestDisk:
    @BOTH
    def test_full_before_the_file_is_there(self, ranks: int, tmp_path: Path) -> None:
        with faults.small_disk(tmp_path / "small", 1 << 14):
            path = tmp_path / "small" / "study.h5"
            done = tools.sweep(ranks, path, *SELECT)
            assert done.returncode == 4, done.stdout
            [error] = errors(done.stdout)
            assert f"{path}: cannot write: No space left on device" in error
            assert list(path.parent.iterdir()) == []

    @BOTH
    def test_full_in_the_middle(self, ranks: int, reference: Path, tmp_path: Path) -> None:
        with faults.small_disk(tmp_path / "small", 1 << 20):
            path, filler = tmp_path / "small" / "study.h5", tmp_path / "small" / "filler"
            with tools.start(ranks, path, *SELECT, FAKE_SECONDS="0.2") as process:
                tools.wait_until(lambda: len(tools.finished(path)) >= 3, "3 finished runs")
                faults.fill(filler)
                output, _ = process.communicate(timeout=tools.TIMEOUT_S)
            assert process.returncode == 4, output
            [error] = errors(output)
            assert "cannot write: No space left on device; finished runs are safe; make room" in error
            assert "Traceback" not in output
            assert 3 <= len(tools.finished(path)) < RUNS
            filler.unlink()
            assert tools.sweep(ranks, path, *SELECT).returncode == 0
            assert tools.datasets(path) == tools.datasets(reference)

    @BOTH
    def test_full_when_merging(self, ranks: int, reference: Path, tmp_path: Path) -> None:
        """Room for the file and its spool, but not for the copy that the merge writes."""
        with faults.small_disk(tmp_path / "small", NO_ROOM_TO_MERGE_BYTES):
            path = tmp_path / "small" / "study.h5"
            done = tools.sweep(ranks, path, *SELECT)
            assert done.returncode == 4, done.stdout
            [error] = errors(done.stdout)
            assert "No space left on device; the results file and its spool are as they were; make" in error
            assert "Traceback" not in done.stdout
            assert "Abort" not in done.stdout
            assert len(tools.finished(path)) == RUNS
            faults.grow_disk(path.parent, 4 << 20)
            tools.merge(path)
            assert tools.datasets(path) == tools.datasets(reference)
            assert list(path.parent.iterdir()) == [path]

    @BOTH
    def test_read_only(self, ranks: int, reference: Path, tmp_path: Path) -> None:
        place = tmp_path / "small"
        with faults.small_disk(place, 4 << 20):
            shutil.copy(reference, place / "old.h5")
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
            for name in ("new.h5", "old.h5"):
                done = tools.sweep(ranks, place / name, *SELECT)
                assert done.returncode == 4, done.stdout
                [error] = errors(done.stdout)
                assert f"{place}: cannot write: Read-only file system; nothing was changed" in error
            assert (place / "old.h5").read_bytes() == reference.read_bytes()
            for command in ("status", "verify"):
                line = [sys.executable, "-m", "hpcmoe", command, str(place / "old.h5")]
                subprocess.run(line, check=True, env=tools.environment(), capture_output=True)


class TestTwoSweeps:
    @BOTH
    def test_started_at_once(self, ranks: int, reference: Path, tmp_path: Path) -> None:
        path, log = tmp_path / "study.h5", tmp_path / "log"
        started = [tools.start(ranks, path, *SELECT, FAKE_LOG=str(log), FAKE_SECONDS="0.1") for _ in range(3)]
        outputs = [process.communicate(timeout=tools.TIMEOUT_S)[0] for process in started]
        codes = sorted(process.returncode for process in started)
        assert codes == [0, 2, 2], outputs
        refused = [
            output for output, process in zip(outputs, started, strict=True) if process.returncode == 2
        ]
        assert all("another sweep is writing this results file" in output for output in refused)
        assert all(len(errors(output)) == 1 for output in refused)
        assert tools.datasets(path) == tools.datasets(reference)
        assert len(tools.logged(log)) == RUNS

    def test_the_first_may_be_killed(self, reference: Path, tmp_path: Path) -> None:
        path = tmp_path / "study.h5"
        with tools.start(0, path, *SELECT, FAKE_SECONDS="0.2") as process:
            tools.wait_until(lambda: bool(tools.finished(path)), "a finished run")
            process.kill()
            process.communicate()
        done = tools.sweep(0, path, *SELECT)
        assert done.returncode == 0
        assert f"the sweep before (process {process.pid} on " in done.stdout
        assert "died without a word; continuing from what it stored" in done.stdout
        assert tools.datasets(path) == tools.datasets(reference)


class TestCopies:
    def test_copied_in_mid_write(self, reference: Path, tmp_path: Path) -> None:
        """With its spool a copy is as good as the original; without it, finished runs are done again."""
        path = tmp_path / "study.h5"
        with tools.start(0, path, *SELECT, FAKE_SECONDS="0.1") as process:
            for number in range(4):
                tools.wait_until(lambda number=number: len(tools.finished(path)) > 2 * number, "more runs")
                copies = tmp_path / f"copy{number}"
                copies.mkdir()
                shutil.copy(path, copies / "bare.h5")
                shutil.copy(path, copies / "study.h5")
                spool = path.with_name("study.h5.spool")
                shutil.copytree(
                    spool,
                    copies / "study.h5.spool",
                    ignore=lambda _d, names: [n for n in names if "tmp-" in n],
                )
            process.communicate(timeout=tools.TIMEOUT_S)
        for number in range(4):
            copies = tmp_path / f"copy{number}"
            assert verify(copies / "study.h5").faults == ()
            for name in ("bare.h5", "study.h5"):
                done = tools.sweep(0, copies / name, *SELECT)
                assert done.returncode == 0, done.stdout
                assert ("was it copied without bare.h5.spool?" in done.stdout) == (name == "bare.h5")
                assert tools.datasets(copies / name) == tools.datasets(reference)

    def test_torn_copy(self, reference: Path, tmp_path: Path) -> None:
        path = tmp_path / "study.h5"
        path.write_bytes(reference.read_bytes()[:5000])
        done = tools.sweep(0, path, *SELECT)
        assert done.returncode == 2
        [error] = errors(done.stdout)
        assert "not an HDF5 file, or damaged" in error
        assert path.stat().st_size == 5000


@NEEDS_MPI[0]
@NEEDS_MPI[1]
class TestDeadRanks:
    """A stopped process stands for one that is gone without anybody noticing."""

    @pytest.mark.parametrize("io", ["auto", "positioned"])
    def test_silent_worker(self, io: str, reference: Path, tmp_path: Path) -> None:
        path, log = tmp_path / "study.h5", tmp_path / "log"
        with tools.start(
            3, path, *SELECT, "--io", io, "--patience", "2", FAKE_LOG=str(log), FAKE_SECONDS="0.2"
        ) as process:
            tools.wait_until(lambda: len(tools.logged_processes(log)) == 3, "work on all ranks")
            rank0 = int(
                path.with_name("study.h5.spool")
                .joinpath("lock")
                .read_text()
                .split('"process": ')[1]
                .split(",")[0]
            )
            os.kill(max(tools.logged_processes(log) - {rank0}), signal.SIGSTOP)
            output, _ = process.communicate(timeout=tools.TIMEOUT_S)
        assert process.returncode != 0
        assert "was silent for too long and is taken for dead" in output
        assert tools.finished(path) == {key for key, *_ in rows(reference)}
        assert tools.datasets(path) == tools.datasets(reference)

    def test_silent_rank_0(self, reference: Path, tmp_path: Path) -> None:
        path, log = tmp_path / "study.h5", tmp_path / "log"
        with tools.start(
            3, path, *SELECT, "--patience", "2", FAKE_LOG=str(log), FAKE_SECONDS="0.2"
        ) as process:
            tools.wait_until(lambda: len(tools.logged_processes(log)) == 3, "work on all ranks")
            rank0 = int(
                path.with_name("study.h5.spool")
                .joinpath("lock")
                .read_text()
                .split('"process": ')[1]
                .split(",")[0]
            )
            os.kill(rank0, signal.SIGSTOP)
            output, _ = process.communicate(timeout=tools.TIMEOUT_S)
        assert process.returncode != 0
        assert "no answer from rank 0 for 2 s: it may be dead; finished runs are safe" in output
        tools.wait_until(lambda: not faults.alive(rank0), "rank 0 to be gone")
        assert tools.sweep(0, path, *SELECT).returncode == 0
        assert tools.datasets(path) == tools.datasets(reference)


def rows(path: Path) -> list[tuple[str, str]]:
    with open_results(path) as results:
        return [(str(row["key"]), str(row["status"])) for row in results.runs]


@BOTH
class TestTimeLimit:
    def test_ends_in_time_and_continues(self, ranks: int, reference: Path, tmp_path: Path) -> None:
        path = tmp_path / "study.h5"
        began_s = time.monotonic()
        done = tools.sweep(ranks, path, *SELECT, "--time-limit", "0:4", FAKE_SECONDS="0.9")
        assert done.returncode == 85, done.stdout
        assert time.monotonic() - began_s < 15
        assert "stopped at its time limit" in done.stdout
        assert 1 <= len(tools.finished(path)) < RUNS
        assert tools.sweep(ranks, path, *SELECT).returncode == 0
        assert tools.datasets(path) == tools.datasets(reference)

    def test_limit_that_fits_no_run_is_not_queued_again(self, ranks: int, tmp_path: Path) -> None:
        done = tools.sweep(ranks, tmp_path / "study.h5", *SELECT, "--time-limit", "0:2", FAKE_SECONDS="30")
        assert done.returncode == 1, done.stdout
        assert "no run ended within the time limit: it has to be longer" in done.stdout


@BOTH
def test_json_lines(ranks: int, tmp_path: Path) -> None:
    path, quiet = tmp_path / "study.h5", ("--report-every", "0.05")
    with tools.start(
        ranks,
        path,
        *SELECT,
        "--json",
        *quiet,
        FAKE_SECONDS="0.1",
        FAKE_FAIL="glm/t1/*/ring_direct/ib_cc0",
        stderr=str(tmp_path / "err"),
    ) as process:
        output, _ = process.communicate(timeout=tools.TIMEOUT_S)
    assert process.returncode == 1
    lines = [json.loads(line) for line in output.splitlines()]
    assert lines[0] == {
        "event": "start",
        "file": str(path),
        "runs": RUNS,
        "stored": 0,
        "ranks": max(ranks, 1),
    }
    [failed] = [line for line in lines if line["event"] == "failed"]
    assert failed["run"] == "glm/t1/tp2ep16/ring_direct/ib_cc0"
    assert "stuck" in failed["error"]
    assert lines[-1]["event"] == "end"
    assert (lines[-1]["exit_code"], lines[-1]["done"], lines[-1]["failed"], lines[-1]["left"]) == (
        1,
        RUNS - 1,
        1,
        0,
    )
    middle = [line for line in lines if line["event"] == "progress"]
    assert len(middle) > 3
    assert [line["left"] for line in middle] == sorted((line["left"] for line in middle), reverse=True)


def test_hdf5_tools_open_the_file(reference: Path, tmp_path: Path) -> None:
    """Also while it is not merged: h5ls, h5dump and plain h5py."""
    if shutil.which("h5dump") is None:
        pytest.skip("the HDF5 tools are missing")
    path = tmp_path / "study.h5"
    with tools.start(0, path, *SELECT, FAKE_SECONDS="0.2") as process:
        tools.wait_until(lambda: bool(tools.finished(path)), "a finished run")
        try:
            for file in (path, reference):
                listing = subprocess.run(
                    ["h5ls", "-r", str(file)],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"},
                ).stdout
                assert "/links" in listing
                dump = subprocess.run(
                    ["h5dump", "-d", "/runs", "-s", "0", "-c", "1", str(file)],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"},
                ).stdout
                assert '"glm/t1/tp2ep16/ring_direct/ib_cc0' in dump
        finally:
            process.kill()
            process.communicate()
