"""One fault done to a running sweep, and what is left of it afterwards.

The sweep has the stand-in simulator of fake_sweep.py. A trial starts it, waits until it has its lock,
sleeps for a time drawn from the seed over the length of an undisturbed sweep, does the fault, lets the
launcher end, and looks; then it continues with the same command.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sweep_tools as tools

from hpcmoe.errors import InputError
from hpcmoe.store import open_results
from hpcmoe.store.verify import verify

SELECT = ("--select", "glm/*/tp2ep16/*/*")
RUNS = 48
RANKS = 4
RUN_SECONDS = "0.05"
TMPFS_BYTES = 24 << 20


@dataclass(frozen=True)
class Trial:
    """What one fault did. `done` runs were reported as finished before the job ended, `stored` are in the
    file with their traces, `lost` is the difference; `redone` were simulated by the continued sweep."""

    kind: str
    seed: int
    exit_code: int
    seconds_to_end: float
    done: int
    stored: int
    lost: int
    redone: int
    redone_twice: int
    redone_needlessly: int
    same_file: bool
    clean: bool
    sound: bool
    output: str

    @property
    def good(self) -> bool:
        nothing_wrong = not (self.lost or self.redone_twice or self.redone_needlessly)
        complete = self.stored + self.redone == RUNS
        return nothing_wrong and complete and self.same_file and self.clean and self.sound


@dataclass(frozen=True)
class Undisturbed:
    """A sweep without fault: its file, and how long it takes from its lock to its end."""

    file: Path
    seconds: float


class Job:
    """A running sweep; `pids` by rank, `report` holds keys of runs as they are finished."""

    def __init__(self, path: Path, scratch: Path, ranks: int) -> None:
        self.path, self._pids = path, scratch / "pids"
        self.log, self.report = scratch / "log", scratch / "done"
        self._pids.mkdir(exist_ok=True)
        self.process = tools.start(
            ranks,
            path,
            *SELECT,
            "--patience",
            "20",
            FAKE_LOG=str(self.log),
            FAKE_DONE=str(self.report),
            FAKE_PIDS=str(self._pids),
            FAKE_SECONDS=RUN_SECONDS,
        )

    @property
    def pids(self) -> dict[int, int]:
        return {int(file.name): int(file.read_text() or 0) for file in self._pids.iterdir()}

    def wait_for_lock(self, ranks: int) -> None:
        lock = self.path.with_name(self.path.name + ".spool") / "lock"
        tools.wait_until(lambda: lock.exists() or self.process.poll() is not None, "the sweep's lock")
        tools.wait_until(lambda: len(self.pids) == ranks or self.process.poll() is not None, "all ranks")


Fault = Callable[[Job, random.Random], None]


def signalled(number: int) -> Fault:
    """To all ranks, as Slurm does it, or to any one of them."""

    def fault(job: Job, choice: random.Random) -> None:
        pids = job.pids
        for pid in choice.choice([list(pids.values()), [pids[choice.randrange(len(pids))]]]):
            send(pid, number)

    return fault


def kill_worker(job: Job, choice: random.Random) -> None:
    send(job.pids[choice.randrange(1, RANKS)], signal.SIGKILL)


def kill_rank_0(job: Job, _choice: random.Random) -> None:
    send(job.pids[0], signal.SIGKILL)


def kill_all(job: Job, _choice: random.Random) -> None:
    for pid in [job.process.pid, *job.pids.values()]:
        send(pid, signal.SIGKILL)


def fill_disk(job: Job, _choice: random.Random) -> None:
    fill(job.path.with_name("filler"))


def fill(filler: Path) -> None:
    """Leave no room on the file system of `filler`."""
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as stream:
        while True:
            stream.write(bytes(1 << 12))


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


FAULTS: dict[str, Fault] = {
    "kill -9 of a worker": kill_worker,
    "kill -9 of rank 0": kill_rank_0,
    "kill -9 of all ranks": kill_all,
    "SIGTERM": signalled(signal.SIGTERM),
    "SIGUSR1": signalled(signal.SIGUSR1),
    "disk full": fill_disk,
}


def undisturbed(folder: Path, ranks: int = RANKS) -> Undisturbed:
    job = Job(folder / "study.h5", folder, ranks)
    job.wait_for_lock(ranks)
    started_s = time.monotonic()
    output, _ = job.process.communicate(timeout=tools.TIMEOUT_S)
    assert job.process.returncode == 0, output
    return Undisturbed(job.path, time.monotonic() - started_s)


def trial(kind: str, seed: int, expected: Undisturbed, *, continue_on: int = 0) -> Trial:
    """Do one fault; the sweep is continued on `continue_on` ranks (0: a plain process)."""
    choice = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory() as text, workplace(kind, Path(text)) as place:
        scratch = Path(text)
        job = Job(place / "study.h5", scratch, RANKS)
        job.wait_for_lock(RANKS)
        time.sleep(choice.uniform(0, expected.seconds))
        FAULTS[kind](job, choice)
        fault_s = time.monotonic()
        output, _ = job.process.communicate(timeout=tools.TIMEOUT_S)
        ended_s = time.monotonic() - fault_s
        for pid in job.pids.values():
            tools.wait_until(lambda pid=pid: not alive(pid), f"process {pid} to be gone", 30)
        place.joinpath("filler").unlink(missing_ok=True)
        return _continued(kind, seed, job, expected, output, ended_s, continue_on)


def _continued(
    kind: str, seed: int, job: Job, expected: Undisturbed, output: str, ended_s: float, ranks: int
) -> Trial:
    done, stored = set(tools.logged(job.report)), whole(job.path)
    job.log.unlink(missing_ok=True)
    again = tools.sweep(ranks, job.path, *SELECT, FAKE_LOG=str(job.log))
    redone = Counter(tools.logged(job.log))
    names = {item.name for item in job.path.parent.iterdir()} - {"log", "done", "pids"}
    return Trial(
        kind,
        seed,
        job.process.returncode,
        ended_s,
        len(done),
        len(stored),
        len(done - stored),
        len(redone),
        sum(count > 1 for count in redone.values()),
        len(set(redone) & stored),
        again.returncode == 0 and tools.datasets(job.path) == tools.datasets(expected.file),
        names == {"study.h5"},
        again.returncode == 0 and not verify(job.path).faults,
        output + again.stdout,
    )


def whole(path: Path) -> set[str]:
    """Keys stored as ok whose traces can be read."""
    found = set()
    for key in tools.finished(path):
        with contextlib.suppress(InputError), open_results(path) as results:
            results.traces(key)
            found.add(key)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def workplace(kind: str, scratch: Path) -> Iterator[Path]:
    """A folder for the results file: for a full disk, a small file system of its own."""
    if kind != "disk full":
        yield scratch
        return
    place = scratch / "small"
    with small_disk(place, TMPFS_BYTES):
        yield place


@contextlib.contextmanager
def small_disk(place: Path, size_bytes: int, options: str = "") -> Iterator[None]:
    """A tmpfs at `place`."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}{options}", "tmpfs", str(place)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def grow_disk(place: Path, size_bytes: int) -> None:
    """Another size for a small_disk."""
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(place)], check=True)


def can_mount() -> bool:
    """Whether this process may mount a tmpfs."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder) / "probe", 1 << 16):
                return True
        except subprocess.CalledProcessError:
            return False
