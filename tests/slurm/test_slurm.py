"""Sweeps under a real Slurm that the tests start on this machine (cluster.py)."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hpcmoe import cli
from hpcmoe.store import open_results
from hpcmoe.store.verify import verify
from hpcmoe.sweep.slurm import Job, render

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
sys.path.insert(0, str(Path(__file__).parent))
import cluster as slurm_cluster
import sweep_tools as tools

LACKING = slurm_cluster.missing()
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKING), reason=f"a Slurm needs {' '.join(LACKING)}"),
]
SELECT = ("--select", "glm/*/tp2ep16/*/*")  # 48 runs
REAL = ("--select", "flash/*/tp2ep16/ring_direct/*", "--tokens", "64", "--layers", "1")  # 24 runs
LONG_S = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_cluster.Cluster]:
    # Not below the session's folder: its name is too long for munge's socket, and private.
    folder = Path(tempfile.mkdtemp(prefix="hpcmoe-slurm-"))
    running = slurm_cluster.Cluster(folder)
    try:
        running.start()
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def library_of(python: str) -> str:
    """The MPI that mpi4py uses in an environment, '' without one."""
    text = (
        "import mpi4py; mpi4py.rc(initialize=False, finalize=False); "
        "from mpi4py import MPI; print(MPI.Get_library_version())"
    )
    done = subprocess.run(
        [python, "-c", text], env=tools.environment(), capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def find_python(mpi: str) -> str:
    """A Python whose mpi4py uses `mpi`: this one, or that of the environment with parallel HDF5; or ''."""
    pythons = filter(None, (sys.executable, os.environ.get("HPCMOE_OPENMPI_PYTHON")))
    return next((python for python in pythons if mpi in library_of(python)), "")


def python_with(mpi: str) -> str:
    return find_python(mpi) or pytest.skip(f"no Python here has mpi4py on {mpi}")


PLUGINS = {"MPICH": "pmi2", "Open MPI": "pmix"}
MPI = pytest.mark.parametrize(("mpi", "plugin"), PLUGINS.items(), ids=["mpich-pmi2", "openmpi-pmix"])


def fake_python(folder: Path, python: str) -> Path:
    """Stands for `python -m hpcmoe.sweep`: the same sweep with the stand-in simulator."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nshift 2\nexec {python} {tools.FAKE_SWEEP} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("expected") / "study.h5"
    assert tools.sweep(0, path, *SELECT).returncode == 0
    return path


@MPI
def test_many_ranks(mpi: str, plugin: str, cluster: slurm_cluster.Cluster, tmp_path: Path) -> None:
    python, path, alone = python_with(mpi), tmp_path / "study.h5", tmp_path / "alone.h5"
    ranks = 128
    task = [python, "-m", "hpcmoe.sweep", path, *REAL, "--io", "positioned"]
    done = cluster.srun(
        ["-N4", f"-n{ranks}", f"--mpi={plugin}", *task],
        tools.environment(OMPI_MCA_btl="self,tcp", MPIR_CVAR_DEBUG_SUMMARY="1"),
        LONG_S,
    )
    assert done.returncode == 0, done.stdout
    if mpi == "MPICH":  # not UCX, whose addresses are too long for pmi2
        assert "provider: tcp" in done.stdout, done.stdout
    with open_results(path) as results:
        assert results.counts() == {"missing": 0, "ok": 24, "failed": 0}
        assert results.provenance()["ranks"] == ranks
        assert mpi in results.provenance()["mpi"]
        assert results.provenance()["slurm_job"].isdigit()
    line = tools.command(0, alone, *REAL, program=("-m", "hpcmoe.sweep"))
    subprocess.run(line, env=tools.environment(), check=True, capture_output=True)
    assert tools.datasets(path) == tools.datasets(alone)


@pytest.mark.parametrize("wrong", ["none", "other"])
@MPI
def test_wrong_plugin_is_noticed(
    mpi: str, plugin: str, wrong: str, cluster: slurm_cluster.Cluster, tmp_path: Path
) -> None:
    """Each process would be a world of its own, and run the whole sweep."""
    python, path = python_with(mpi), tmp_path / "study.h5"
    given = {"none": "none", "other": {"pmi2": "pmix", "pmix": "pmi2"}[plugin]}[wrong]
    done = cluster.srun(
        ["-n4", f"--mpi={given}", "--kill-on-bad-exit=0", python, "-m", "hpcmoe.sweep", path, *REAL],
        tools.environment(),
        LONG_S,
    )
    assert done.returncode != 0
    assert f"--mpi={plugin}" in done.stdout, done.stdout
    assert not path.exists()


@MPI
def test_dead_rank_does_not_hang_the_job(
    mpi: str, plugin: str, expected: Path, cluster: slurm_cluster.Cluster, tmp_path: Path
) -> None:
    """With pmi2 and without --kill-on-bad-exit nobody tells the others."""
    python, path = python_with(mpi), tmp_path / "study.h5"
    fatal = "glm/t3/tp2ep16/ring_direct/ib_hpcc"
    step = [
        "-n4",
        f"--mpi={plugin}",
        "--kill-on-bad-exit=0",
        python,
        tools.FAKE_SWEEP,
        path,
        *SELECT,
        "--patience",
        "5",
    ]
    first = cluster.srun(
        step, tools.environment(FAKE_KILL=fatal, FAKE_SECONDS="0.05", OMPI_MCA_btl="self,tcp"), LONG_S
    )
    assert first.returncode != 0, first.stdout
    again = cluster.srun(step, tools.environment(OMPI_MCA_btl="self,tcp"), LONG_S)
    assert again.returncode == 0, again.stdout
    assert tools.datasets(path) == tools.datasets(expected)


@pytest.fixture(scope="module")
def requeued(cluster: slurm_cluster.Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder per MPI with a job that meets its time limit: both wait for it at the same time."""
    folders = {}
    for mpi, plugin in PLUGINS.items():
        if python := find_python(mpi):
            folders[mpi] = folder = tmp_path_factory.mktemp("requeued")
            job = Job(
                "requeue",
                str(folder / "study.h5"),
                ranks=2,
                time_limit="1",
                mpi=plugin,
                arguments=SELECT,
                python=str(fake_python(folder, python)),
                warning_s=35,
                options={"output": str(folder / "job.log"), "nodes": "1"},
                setup=(
                    "export FAKE_SECONDS=1.5 OMPI_MCA_btl=self,tcp",
                    f"export FAKE_LOG={folder / 'log'} PYTHONPATH={tools.ROOT}",
                ),
            )
            (folder / "number").write_text(sbatch(cluster, folder, job))
    return folders


@MPI
def test_job_that_reaches_its_time_limit_is_queued_again_and_completes(
    mpi: str, plugin: str, requeued: dict[str, Path], expected: Path, cluster: slurm_cluster.Cluster
) -> None:
    python_with(mpi)
    folder = requeued[mpi]
    path, number = folder / "study.h5", (folder / "number").read_text()
    cluster.wait(lambda: ended(cluster, number), f"job {number}", LONG_S)
    output = (folder / "job.log").read_text()
    assert "stopped by signal 10" in output, output
    assert "queued again" in output
    with open_results(path) as results:
        assert results.counts()["ok"] == 48, output
        sessions = results.provenance()["sessions"]
    assert len(sessions) >= 2
    assert {session["slurm_job"] for session in sessions} == {number}
    assert tools.datasets(path) == tools.datasets(expected)
    done_twice = len(tools.logged(folder / "log")) - 48
    assert 0 <= done_twice <= 2 * (len(sessions) - 1)


@MPI
def test_array_over_models(mpi: str, plugin: str, cluster: slurm_cluster.Cluster, tmp_path: Path) -> None:
    job = Job(
        "array",
        str(tmp_path / "study.h5"),
        ranks=2,
        time_limit="10",
        mpi=plugin,
        arguments=("--no-traces",),
        python=str(fake_python(tmp_path, python_with(mpi))),
        options={"output": str(tmp_path / "%a.log")},
        setup=(f"export PYTHONPATH={tools.ROOT} OMPI_MCA_btl=self,tcp",),
    )
    number = sbatch(cluster, tmp_path, job)
    cluster.wait(lambda: ended(cluster, number), f"job {number}", LONG_S)
    logs = "".join(log.read_text() for log in sorted(tmp_path.glob("*.log")))
    for model in ("flash", "k3", "glm", "pro"):
        with open_results(tmp_path / f"study-{model}.h5") as results:
            assert results.counts() == {"missing": 0, "ok": 192, "failed": 0}, logs
            assert np.all(results.runs["model"] == model)
        assert verify(tmp_path / f"study-{model}.h5").faults == ()
    (last,) = {line for line in logs.splitlines() if line.startswith("when all tasks are done: ")}
    words = shlex.split(last.partition(": ")[2])
    assert words[:2] == ["hpcmoe", "join"]
    assert cli.main(words[1:]) == 0
    with open_results(tmp_path / "study.h5") as results:
        assert results.counts() == {"missing": 0, "ok": 768, "failed": 0}


def sbatch(cluster: slurm_cluster.Cluster, folder: Path, job: Job) -> str:
    """Submit a job; returns its number."""
    script = folder / "job.sbatch"
    script.write_text(render(job))
    return cluster.run("sbatch", "--parsable", script)


def ended(cluster: slurm_cluster.Cluster, number: str) -> bool:
    """Whether a job, or every task of an array, is over for good."""
    shown = cluster.run("scontrol", "--oneliner", "show", "job", number)
    states = {word.partition("=")[2] for word in shown.split() if word.startswith("JobState=")}
    return bool(states) and states <= {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
