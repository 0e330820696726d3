"""Starts sweeps as processes and compares the files they leave."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import h5py

from hpcmoe.errors import InputError
from hpcmoe.store import open_results

FAKE_SWEEP = Path(__file__).with_name("fake_sweep.py")
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120
_LAUNCHER_VARIABLES = ("SLURM", "PMI", "OMPI", "HYDI", "FAKE")


def mpiexec() -> str | None:
    """The launcher beside this Python, else the one on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment without traces of a launcher or an earlier test, plus `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHER_VARIABLES)}
    # The fake sweep is a script: its own folder is on the path then, the checkout's root is not.
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    kept |= {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    kept |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
    return kept | extra


def command(ranks: int, *arguments: str | Path, program: tuple[str, ...] = (str(FAKE_SWEEP),)) -> list[str]:
    """Command line of a sweep; 0 ranks is a plain process without launcher."""
    launcher = [str(mpiexec()), "-n", str(ranks)] if ranks else []
    return [*launcher, sys.executable, *program, *map(str, arguments)]


def start(
    ranks: int, *arguments: str | Path, stderr: str | None = None, **variables: str
) -> subprocess.Popen[str]:
    """Start a fake sweep and return at once. Both outputs come together, unless `stderr` names a file."""
    with open(stderr, "w") if stderr else contextlib.nullcontext(subprocess.STDOUT) as errors:
        return subprocess.Popen(
            command(ranks, *arguments),
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def sweep(ranks: int, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a fake sweep to its end."""
    with start(ranks, *arguments, **variables) as process:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, output, "")


def merge(path: Path) -> None:
    """`hpcmoe merge`."""
    line = [sys.executable, "-m", "hpcmoe", "merge", str(path)]
    subprocess.run(line, env=environment(), check=True, capture_output=True)


def datasets(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of every dataset outside /provenance."""
    found = {}

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("provenance/"):
            content = item[()]
            data = content if isinstance(content, bytes) else content.tobytes()
            found[name] = (repr(item.dtype.descr), item.shape, data)

    with h5py.File(path, "r", locking=False) as file:
        file.visititems(visit)
    return found


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"waited {timeout_s} s for {what}")
        time.sleep(0.02)


def finished(path: Path) -> set[str]:
    """Keys stored as ok; none while the file does not exist."""
    try:
        with open_results(path) as results:
            return set(results.runs["key"][results.runs["status"] == "ok"].tolist())
    except InputError:
        return set()


def logged(log: Path) -> list[str]:
    """Keys of the runs started, from FAKE_LOG."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def logged_processes(log: Path) -> set[int]:
    """Ids of the processes that started a run, from FAKE_LOG."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {int(line.split()[1]) for line in lines if " " in line}
