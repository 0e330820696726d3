"""Sweeps that write through parallel HDF5, against those that use positioned writes.

They run where h5py was built with MPI (.ci/build-h5py-mpi makes such an environment).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import h5py
import pytest

from hpcmoe.store import open_results
from hpcmoe.store.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
import faults
import sweep_tools as tools

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.parallel_hdf5,
    pytest.mark.skipif(not h5py.get_config().mpi, reason="h5py was built without MPI"),
]
SELECT = ("--select", "glm/*/tp2ep16/*/*")
RUNS = 48
NO_ROOM_TO_MERGE_BYTES = 11 << 17
"""The copy that the merge writes does not fit beside the file and its spool."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file made by one plain process with positioned writes."""
    path = tmp_path_factory.mktemp("reference") / "study.h5"
    done = tools.sweep(0, path, *SELECT)
    assert done.returncode == 0, done.stdout
    return path


@pytest.mark.parametrize("ranks", [1, 2, 4, 16])
@pytest.mark.parametrize("io", ["parallel", "positioned"])
def test_same_bytes_on_both_ways(io: str, ranks: int, reference: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    done = tools.sweep(ranks, path, *SELECT, "--io", io, FAKE_SECONDS="0.02")
    assert done.returncode == 0, done.stdout
    assert tools.datasets(path) == tools.datasets(reference)
    assert not path.with_name(path.name + ".spool").exists()


def test_parallel_is_what_several_ranks_choose(tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    done = tools.sweep(2, path, *SELECT, FAKE_SHOW_IO="1")
    assert done.stdout.count("rows are written by ParallelRowFile") == 2, done.stdout


@pytest.mark.parametrize("io", ["parallel", "positioned"])
def test_killed_in_the_middle_and_continued_the_other_way(io: str, reference: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    other = {"parallel": "positioned", "positioned": "parallel"}[io]
    with tools.start(4, path, *SELECT, "--io", io, FAKE_LOG=str(log), FAKE_SECONDS="0.1") as process:
        tools.wait_until(lambda: len(tools.finished(path)) >= 10, "10 finished runs")
        for number in {*tools.logged_processes(log), process.pid}:
            os.kill(number, signal.SIGKILL)
        process.communicate(timeout=tools.TIMEOUT_S)
    survived = tools.finished(path)
    assert 10 <= len(survived) < RUNS
    done = tools.sweep(4, path, *SELECT, "--io", other)
    assert done.returncode == 0, done.stdout
    assert f"{len(survived)} kept" in done.stdout
    assert tools.datasets(path) == tools.datasets(reference)


@pytest.mark.skipif(not faults.can_mount(), reason="this process may not mount a tmpfs")
def test_disk_full_when_merging(reference: Path, tmp_path: Path) -> None:
    """The ranks may not end in order then: each waits for the others inside HDF5. Nothing is lost."""
    with faults.small_disk(tmp_path / "small", NO_ROOM_TO_MERGE_BYTES):
        path = tmp_path / "small" / "study.h5"
        done = tools.sweep(4, path, *SELECT, "--io", "parallel", "--patience", "20", FAKE_SECONDS="0.02")
        assert done.returncode != 0
        assert "No space left on device; the results file and its spool are as they were" in done.stdout
        assert "Traceback" not in done.stdout
        assert len(tools.finished(path)) == RUNS
        assert verify(path).faults == ()
        faults.grow_disk(path.parent, 16 << 20)
        tools.merge(path)
        assert tools.datasets(path) == tools.datasets(reference)
        assert list(path.parent.iterdir()) == [path]


def test_failed_runs(tmp_path: Path) -> None:
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    failing = {"FAKE_FAIL": "glm/t3/*", "FAKE_CRASH": "glm/t4/*/*/ib_cc0"}
    assert tools.sweep(0, first, *SELECT, **failing).returncode == 1
    assert tools.sweep(3, second, *SELECT, "--io", "parallel", **failing).returncode == 1
    assert tools.datasets(first) == tools.datasets(second)
    with open_results(second) as results:
        assert results.counts()["failed"] == 10


def test_stopped_by_a_signal(reference: Path, tmp_path: Path) -> None:
    path, log = tmp_path / "study.h5", tmp_path / "log"
    with tools.start(3, path, *SELECT, FAKE_LOG=str(log), FAKE_SECONDS="0.1") as process:
        tools.wait_until(lambda: len(tools.finished(path)) >= 4, "4 finished runs")
        os.kill(max(tools.logged_processes(log)), signal.SIGUSR1)
        output, _ = process.communicate(timeout=tools.TIMEOUT_S)
    assert process.returncode == 85, output
    assert tools.sweep(3, path, *SELECT).returncode == 0
    assert tools.datasets(path) == tools.datasets(reference)
