"""Sweeps as the user starts them: plain and under mpiexec, undisturbed, failing, killed, continued.

The simulator is a cheap stand-in (fake_sweep.py), so these tests are about the sweep alone.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from hpcmoe.errors import InputError
from hpcmoe.store import open_results

sys.path.insert(0, str(Path(__file__).parent))
import sweep_tools as tools

WITHOUT_MPI = importlib.util.find_spec("mpi4py") is None or tools.mpiexec() is None
NEEDS_MPI = (pytest.mark.mpi, pytest.mark.skipif(WITHOUT_MPI, reason="mpi4py or mpiexec is missing"))
PLAIN = pytest.param(0, id="plain")
LAUNCHES = [PLAIN, *(pytest.param(n, id=f"mpiexec-{n}", marks=NEEDS_MPI) for n in (1, 2, 4))]
SELECT = ("--select", "glm/*/tp2ep16/*/*")
RUNS = 48


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file made by one plain process without any disturbance."""
    path = tmp_path_factory.mktemp("reference") / "study.h5"
    done = tools.sweep(0, path, *SELECT)
    assert done.returncode == 0, done.stdout
    return path


def assert_complete(path: Path, reference: Path) -> None:
    assert tools.datasets(path) == tools.datasets(reference)
    assert sorted(item.name for item in path.parent.iterdir() if "tmp" in item.name) == []
    assert not path.with_name(path.name + ".spool").exists()


@pytest.mark.parametrize("ranks", LAUNCHES)
def test_same_bytes_for_any_number_of_ranks(ranks: int, reference: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    done = tools.sweep(ranks, path, *SELECT, FAKE_LOG=str(log), FAKE_SECONDS="0.02")
    assert done.returncode == 0, done.stdout
    assert_complete(path, reference)
    assert Counter(tools.logged(log)) == Counter(tools.finished(path))
    with open_results(path) as results:
        assert len(set(results.provenance()["runs"]["rank"].tolist())) == max(ranks, 1)
        assert results.provenance()["ranks"] == max(ranks, 1)
        assert [session["ranks"] for session in results.provenance()["sessions"]] == [max(ranks, 1)]


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[-1]])
def test_killed_sweep_loses_only_runs_in_flight(ranks: int, reference: Path, tmp_path: Path) -> None:
    path, log, log_again = tmp_path / "study.h5", tmp_path / "log", tmp_path / "again"
    with tools.start(ranks, path, *SELECT, FAKE_LOG=str(log), FAKE_SECONDS="0.1") as process:
        tools.wait_until(lambda: len(tools.finished(path)) >= 10, "10 finished runs")
        for number in {*tools.logged_processes(log), process.pid}:
            os.kill(number, signal.SIGKILL)
        process.communicate(timeout=tools.TIMEOUT_S)
    survived, started = tools.finished(path), Counter(tools.logged(log))
    assert 10 <= len(survived) < RUNS
    assert len(started) - len(survived) <= max(ranks, 1)
    with open_results(path) as results:
        assert all(len(results.traces(key).fct) >= 0 for key in survived)

    done = tools.sweep(ranks, path, *SELECT, FAKE_LOG=str(log_again))
    assert done.returncode == 0, done.stdout
    assert f"{RUNS - len(survived)} runs done, {len(survived)} kept" in done.stdout
    assert set(tools.logged(log_again)).isdisjoint(survived)
    assert_complete(path, reference)


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[-1]])
def test_rank_that_dies_leaves_the_others_rows(ranks: int, reference: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    fatal = "glm/t6/tp2ep16/dbt_direct/ib_hpcc"
    done = tools.sweep(ranks, path, *SELECT, FAKE_KILL=fatal, FAKE_SECONDS="0.02")
    assert done.returncode != 0
    survived = tools.finished(path)
    assert fatal not in survived
    assert len(survived) > 20
    again = tools.sweep(0, path, *SELECT)
    assert f"{len(survived)} kept" in again.stdout
    assert_complete(path, reference)


@pytest.mark.parametrize("ranks", LAUNCHES)
def test_failed_run_is_recorded_and_the_sweep_goes_on(ranks: int, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    done = tools.sweep(
        ranks, path, *SELECT, FAKE_FAIL="glm/t3/*/ring_direct/*", FAKE_CRASH="*/t4/*/dbt*/ib_cc0"
    )
    assert done.returncode == 1
    with open_results(path) as results:
        assert results.counts() == {"missing": 0, "ok": RUNS - 5, "failed": 5}
        errors = {row["key"]: row["error"] for row in results.runs if row["status"] == "failed"}
        with pytest.raises(InputError, match="this run failed: .*stuck in an ünusual place"):
            results.ranks("glm/t3/tp2ep16/ring_direct/ib_cc0")
    crashed = "glm/t4/tp2ep16/dbt_direct/ib_cc0"
    assert errors.pop(crashed) == "ZeroDivisionError: an unexpected error"
    assert all("ranks 3 and 5 are stuck in an ünusual place" in error for error in errors.values())
    assert "5 run(s) failed; --retry-failed tries them again:" in done.stdout
    assert f"  {crashed}: ZeroDivisionError" in done.stdout
    assert f"of {max(ranks, 1)} on " in done.stdout  # the traceback's head: rank, size and host
    assert "raise ZeroDivisionError" in done.stdout


@pytest.mark.parametrize("ranks", LAUNCHES)
def test_failed_file_is_the_same_for_any_number_of_ranks(ranks: int, tmp_path: Path) -> None:
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    failing = {"FAKE_FAIL": "glm/t3/*", "FAKE_CRASH": "glm/t4/*/*/ib_cc0"}
    assert tools.sweep(0, first, *SELECT, **failing).returncode == 1
    assert tools.sweep(ranks, second, *SELECT, **failing).returncode == 1
    assert tools.datasets(first) == tools.datasets(second)


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[2]])
def test_failed_runs_stay_failed_until_asked(ranks: int, reference: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    assert tools.sweep(0, path, *SELECT, FAKE_FAIL="glm/t3/*").returncode == 1
    before = path.read_bytes()
    kept = tools.sweep(ranks, path, *SELECT, FAKE_LOG=str(log))
    assert kept.returncode == 1
    assert "0 runs done, 40 kept, 8 failed" in kept.stdout
    assert kept.stdout.count("stuck in an ünusual place") == 8
    assert (path.read_bytes(), tools.logged(log)) == (before, [])
    done = tools.sweep(ranks, path, *SELECT, "--retry-failed", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stdout
    assert len(tools.logged(log)) == 8
    assert all("/t3/" in key for key in tools.logged(log))
    assert_complete(path, reference)


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[-1]])
def test_complete_sweep_is_left_alone(ranks: int, reference: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    path.write_bytes(reference.read_bytes())
    done = tools.sweep(ranks, path, *SELECT, FAKE_LOG=str(log))
    assert done.returncode == 0, done.stdout
    assert f"0 runs done, {RUNS} kept, 0 failed" in done.stdout
    assert tools.logged(log) == []
    assert path.read_bytes() == reference.read_bytes()


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[2]])
def test_changed_inputs_are_run_again(ranks: int, reference: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    path.write_bytes(reference.read_bytes())
    done = tools.sweep(ranks, path, *SELECT, FAKE_VERSION="2")
    assert done.returncode == 0, done.stdout
    assert f"{RUNS} runs done ({RUNS} renewed), 0 kept" in done.stdout
    old, new = tools.datasets(reference), tools.datasets(path)
    assert old["traces/fct"] == new["traces/fct"]
    assert old["runs"] != new["runs"]


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[2]])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 85), (signal.SIGUSR1, 85)]
)
def test_signal_stops_and_the_same_command_continues(
    ranks: int, number: int, code: int, reference: Path, tmp_path: Path
) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    with tools.start(ranks, path, *SELECT, FAKE_LOG=str(log), FAKE_SECONDS="0.1") as process:
        tools.wait_until(lambda: len(tools.finished(path)) >= 4, "4 finished runs")
        # To one rank only, and not through mpiexec, whose own reaction differs between MPIs.
        os.kill(max(tools.logged_processes(log)), number)
        output, _ = process.communicate(timeout=tools.TIMEOUT_S)
    assert process.returncode == code, output
    assert f"stopped by signal {int(number)}, " in output
    survived = tools.finished(path)
    assert len(survived) < RUNS
    assert tools.sweep(ranks, path, *SELECT).returncode == 0
    assert_complete(path, reference)


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[2]])
def test_bad_input_is_one_line_and_exit_code_2(ranks: int, tmp_path: Path) -> None:
    for arguments in (["--select", "glm/*/nonsense/*"], ["--set", "bad=1"], ["--set", "bad"]):
        done = tools.sweep(ranks, tmp_path / "study.h5", *arguments)
        assert done.returncode == 2, done.stdout
        assert done.stdout.count("hpcmoe: error: ") == 1
        assert "Traceback" not in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranks", [PLAIN, LAUNCHES[2]])
def test_usage_error_is_shown_once(ranks: int, tmp_path: Path) -> None:
    done = tools.sweep(ranks, tmp_path / "study.h5", "--tokens", "0")
    assert done.returncode == 2
    assert done.stdout == (
        "hpcmoe: error: argument --tokens: expected a whole number of at least 1, got '0' "
        "(see python -m hpcmoe.sweep --help)\n"
    )


def test_second_sweep_on_the_same_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    with tools.start(0, path, *SELECT, FAKE_SECONDS="0.5") as process:
        tools.wait_until(lambda: bool(tools.finished(path)), "a finished run")
        second = tools.sweep(0, path, *SELECT)
        process.kill()
        process.communicate()
    assert second.returncode == 2
    assert "another sweep is writing this results file" in second.stdout


def test_slurm_tasks_without_srun_are_refused(tmp_path: Path) -> None:
    done = tools.sweep(0, tmp_path / "study.h5", *SELECT, SLURM_NTASKS="4", SLURM_PROCID="0")
    assert done.returncode == 1
    assert "SLURM_NTASKS=4, but this process was started as 1 rank(s)" in done.stdout
    assert "--mpi=pmi2" in done.stdout
    assert not (tmp_path / "study.h5").exists()


@pytest.mark.mpi
@pytest.mark.skipif(WITHOUT_MPI, reason="mpi4py or mpiexec is missing")
def test_world_of_another_size_than_slurm_says_is_refused(tmp_path: Path) -> None:
    done = tools.sweep(2, tmp_path / "study.h5", *SELECT, SLURM_NTASKS="4")
    assert done.returncode != 0
    assert done.stdout.count("SLURM_NTASKS=4, but MPI") == 1
    assert not (tmp_path / "study.h5").exists()


def test_plain_sweep_does_not_import_mpi(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise SystemError('a plain sweep must not import mpi4py')")
    paths = os.pathsep.join([str(tmp_path), str(tools.ROOT)])
    done = tools.sweep(0, tmp_path / "study.h5", "--select", "glm/t1/*/*/ib_cc0", PYTHONPATH=paths)
    assert done.returncode == 0, done.stdout


def test_launched_without_mpi4py_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('not installed here')")
    paths = os.pathsep.join([str(tmp_path), str(tools.ROOT)])
    done = tools.sweep(0, tmp_path / "study.h5", *SELECT, PYTHONPATH=paths, PMI_SIZE="2", PMI_RANK="0")
    assert done.returncode == 1
    assert "mpi4py cannot be used in this Python (not installed here); install it" in done.stdout


def test_no_traces(reference: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    assert tools.sweep(0, path, *SELECT, "--no-traces").returncode == 0
    full, bare = tools.datasets(reference), tools.datasets(path)
    assert bare["runs"] == full["runs"]
    assert {bare[f"traces/{kind}"][1] for kind in ("fct", "qlen", "pfc")} == {(0,)}
    with open_results(path) as results:
        assert results.config(0)["key"] == results.runs["key"][0]


def test_progress_lines(tmp_path: Path) -> None:
    done = tools.sweep(0, tmp_path / "a.h5", *SELECT, "--report-every", "0.05", FAKE_SECONDS="0.02")
    assert "1 done, 0 failed, 47 left" in done.stdout or "2 done, 0 failed, 46 left" in done.stdout
    assert " runs/h, about " in done.stdout
    quiet = tools.sweep(
        0, tmp_path / "b.h5", *SELECT, "--quiet", "--report-every", "0.05", FAKE_SECONDS="0.02"
    )
    assert quiet.stdout == ""
