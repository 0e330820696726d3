"""How ranks talk: mpi4py when a launcher started us, a stand-in of one rank otherwise.

MPI is neither needed nor imported for a plain `python -m hpcmoe.sweep`. Every wait polls and
backs off, so a rank that has nothing to do leaves its core to others.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, Protocol

from hpcmoe.errors import HpcmoeError


class Tag(IntEnum):
    """Every message tag of a sweep. Which run a message is about is inside the message."""

    READY = 1
    """Worker to rank 0: a Report; the worker waits for a TASK."""
    TASK = 2
    """Rank 0 to worker: a Task, or None to stop."""
    EXIT = 3
    """Rank 0 to worker, after the last TASK: the exit code."""
    MERGE = 5
    """Rank 0 to worker, after the last TASK: take part in the merge."""
    ALIVE = 4
    """Either way: nothing but a sign of life, from whoever is busy while the other waits."""


class Comm(Protocol):
    """What a sweep needs of a communicator."""

    rank: int
    size: int
    library: str

    @property
    def mpi(self) -> Any:
        """The mpi4py communicator, None without MPI."""

    def broadcast(self, value: Any) -> Any: ...
    def send(self, value: Any, rank: int, tag: Tag) -> None: ...
    def poll(self, tag: Tag) -> tuple[int, Any] | None: ...
    def abort(self, code: int) -> None: ...


class SerialComm:
    """One rank and nobody to talk to."""

    rank = 0
    size = 1
    library = "none"
    mpi = None

    def broadcast(self, value: Any) -> Any:
        return value

    def send(self, value: Any, rank: int, tag: Tag) -> NoReturn:
        raise RuntimeError(f"no rank {rank} to send {tag.name} to")

    def poll(self, tag: Tag) -> None:
        return None

    def abort(self, code: int) -> None:
        """Nothing to take down: the caller returns its exit code."""


FORWARDING_S = 1.0
"""MPICH's mpiexec drops what a rank has just written when it meets that rank's MPI_Abort at the same look
(5 of 100 messages on two cores, none once there was any pause between the two)."""


class MpiComm:
    """The world communicator of mpi4py."""

    def __init__(self) -> None:
        MPI = _mpi_not_started()
        if not MPI.Is_initialized():
            with slow_naps():
                MPI.Init()
        self._mpi, self._world = MPI, MPI.COMM_WORLD
        self.rank: int = self._world.rank
        self.size: int = self._world.size
        self.library = _first_line(MPI.Get_library_version())

    @property
    def mpi(self) -> Any:
        return self._world

    def broadcast(self, value: Any) -> Any:
        return self._world.bcast(value, root=0)

    def send(self, value: Any, rank: int, tag: Tag) -> None:
        self._world.send(value, dest=rank, tag=tag)

    def poll(self, tag: Tag) -> tuple[int, Any] | None:
        """(sender, message) if one with this tag has come, without waiting."""
        status = self._mpi.Status()
        if not self._world.iprobe(source=self._mpi.ANY_SOURCE, tag=tag, status=status):
            return None
        sender = status.Get_source()
        return sender, self._world.recv(source=sender, tag=tag)

    def abort(self, code: int) -> None:
        """End all ranks, once what was said had time to get through."""
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(FORWARDING_S)
        self._world.Abort(code)


NAP_NS = 20_000_000
TIMER_SLACK = Path("/proc/self/timerslack_ns")


@contextlib.contextmanager
def slow_naps() -> Iterator[None]:
    """Lets Linux stretch short sleeps of this thread.

    A rank of Open MPI waits in MPI_Init for all others, with a look every 0.1 ms that takes 5 % of a core.
    Where ranks share cores, those that wait take them from those that are still to come.
    """
    before = _set_timer_slack(str(NAP_NS))
    try:
        yield
    finally:
        _set_timer_slack(before)


def _set_timer_slack(value: str) -> str:
    """Returns the old value. Nothing happens where there is no such thing, or on ''."""
    try:
        before = TIMER_SLACK.read_text().strip()
        if value:
            TIMER_SLACK.write_text(value)
    except OSError:
        return ""
    return before


def _mpi_not_started() -> Any:
    """mpi4py.MPI, imported without starting MPI."""
    import mpi4py

    mpi4py.rc(threads=False, initialize=False, finalize=True)
    from mpi4py import MPI

    return MPI


def _first_line(text: str) -> str:
    return text.splitlines()[0].strip("\0 ")


class Backoff:
    """Sleeps longer and longer, from 1 ms to 50 ms, until `reset`."""

    _FIRST_S, _LAST_S = 0.001, 0.05

    def __init__(self) -> None:
        self._next_s = self._FIRST_S

    def reset(self) -> None:
        self._next_s = self._FIRST_S

    def sleep(self) -> None:
        time.sleep(self._next_s)
        self._next_s = min(2 * self._next_s, self._LAST_S)


def wait_for(comm: Comm, tag: Tag, while_waiting: Callable[[], None] = lambda: None) -> Any:
    """The next message with `tag`; `while_waiting` is called at every look and may raise."""
    backoff = Backoff()
    while (found := comm.poll(tag)) is None:
        while_waiting()
        backoff.sleep()
    return found[1]


LAUNCHER_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
"""Set by launchers that tell each process how many there are."""
LAUNCHER_MARKS = (*LAUNCHER_SIZES, "PMI_RANK", "PMIX_RANK", "PMI_FD", "SLURM_STEP_ID")


def connect(environment: Mapping[str, str] = os.environ) -> Comm:
    """The communicator this process was started for.

    Raises HpcmoeError when mpi4py is missing under a launcher, or when the launcher and MPI
    disagree on the number of ranks: each would then run the whole sweep on its own.
    """
    comm: Comm = SerialComm()
    missing = None
    if any(name in environment for name in LAUNCHER_MARKS):
        try:
            comm = MpiComm()
        except (ImportError, RuntimeError) as error:
            missing = error
    _check_size(comm, environment, missing)
    return comm


PLUGINS = (("Open MPI", "pmix"), ("MPICH", "pmi2"), ("MVAPICH", "pmi2"), ("Intel", "pmi2"))
"""srun's --mpi by a word in the name of the MPI library."""


def srun_plugin(library: str) -> str:
    """The --mpi that fits an MPI library, '' when unknown."""
    return next((plugin for mark, plugin in PLUGINS if mark in library), "")


def choose_netmod(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let MPICH exchange short addresses under srun --mpi=pmi2. Has to come before MPI starts.

    That plug-in cuts a request off at 1024 bytes and says that all is well. MPICH sends the 4 KB of a UCX
    address in pieces that are shorter only while they compress well, and that depends on what is left over in
    memory. An address of its other netmod, libfabric, is short. A choice of the user stays.
    """
    if "PMI_FD" not in environment or "SLURM_STEP_ID" not in environment:
        return
    try:
        library = _mpi_not_started().Get_library_version()
    except (ImportError, RuntimeError):
        return  # connect says what is missing
    device = next((line for line in library.splitlines() if line.startswith("MPICH Device:")), "")
    if "ucx" in device and "ofi" in device:
        environment.setdefault("MPIR_CVAR_CH4_NETMOD", "ofi")


def warn_of_plugin(environment: Mapping[str, str] = os.environ) -> None:
    """Say which srun --mpi would fit before MPI starts: with the wrong one it may not come back."""
    if "SLURM_STEP_ID" not in environment or environment.get("SLURM_PROCID") != "0":
        return
    if "PMI_SIZE" in environment and "SLURM_MPI_TYPE" not in environment:
        return  # started by mpiexec inside the allocation
    try:
        library = _first_line(_mpi_not_started().Get_library_version())
    except (ImportError, RuntimeError):
        return  # connect says what is missing
    given, fitting = environment.get("SLURM_MPI_TYPE", "none"), srun_plugin(library)
    if fitting and not given.startswith(fitting):
        print(
            f"hpcmoe: srun was given --mpi={given}; this MPI ({library}) usually wants --mpi={fitting}",
            file=sys.stderr,
            flush=True,
        )


def _check_size(comm: Comm, environment: Mapping[str, str], missing: Exception | None) -> None:
    for name, advice in _ADVICE.items():
        text = environment.get(name, "")
        if not text.isdigit() or int(text) == comm.size:
            continue
        if missing is not None:
            raise HpcmoeError(
                f"{name}={text}, but mpi4py cannot be used in this Python ({missing}); "
                "install it: pip install mpi4py mpich"
            )
        seen = f"MPI ({comm.library}) sees" if comm.library != "none" else "this process was started as"
        raise HpcmoeError(f"{name}={text}, but {seen} {comm.size} rank(s). {advice}")


_ADVICE = {
    "SLURM_NTASKS": "Inside a Slurm allocation start it with srun and the --mpi that fits this MPI: "
    "--mpi=pmi2 for MPICH (pip install mpich), --mpi=pmix for Open MPI ('srun --mpi=list' "
    "shows what there is). To use fewer ranks than the allocation on purpose, unset "
    "SLURM_NTASKS first.",
    "PMI_SIZE": "The launcher belongs to another MPI than mpi4py: use the mpiexec of the MPI named above, "
    "or under Slurm --mpi=pmix for Open MPI.",
    "OMPI_COMM_WORLD_SIZE": "The launcher belongs to another MPI than mpi4py: use the mpiexec of the MPI "
    "named above.",
}
