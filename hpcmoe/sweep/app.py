"""A sweep from command line to exit code.

Exit codes: 0 all runs are there; 1 some runs failed, or a rank died; 2 bad input; 4 the file system
refused; 85 asked to stop, or out of time (the same command continues); 130 interrupted from the keyboard.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack

from hpcmoe.errors import HpcmoeError
from hpcmoe.store.committed import needs_merge
from hpcmoe.store.merge import merge, take_part
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.spool import clear_leftovers, remove_spool
from hpcmoe.store.trouble import StorageError, reason
from hpcmoe.sweep.access import open_rows, uses_parallel_hdf5
from hpcmoe.sweep.arguments import Options, parse
from hpcmoe.sweep.comm import Comm, Tag, connect
from hpcmoe.sweep.live import LiveFile
from hpcmoe.sweep.lock import exclusive
from hpcmoe.sweep.plan import Plan, Task, expected_s, make_plan
from hpcmoe.sweep.progress import Progress, duration
from hpcmoe.sweep.scheduler import Heartbeat, Leader, follow, wait_for_exit
from hpcmoe.sweep.session import describe_session, record_session, software
from hpcmoe.sweep.signals import StopRequest
from hpcmoe.sweep.simulator import Simulator, real_simulator
from hpcmoe.sweep.timing import deadline_unix_s
from hpcmoe.sweep.worker import Outcome, Worker

FAILED_RUNS_EXIT_CODE = 1
LOST_RANK_EXIT_CODE = 1
SHOWN_FAILURES = 20


def main(
    argv: Sequence[str] | None = None, simulator: Simulator | None = None, *, process_ends: bool = False
) -> int:
    """Run a sweep on all ranks; returns the exit code, the same on each.

    With `process_ends` a stop signal that comes when all is done no longer changes the exit code.
    """
    with StopRequest(process_ends=process_ends) as stop:
        return _connected(argv, simulator or real_simulator(), stop)


def _connected(argv: Sequence[str] | None, simulator: Simulator, stop: StopRequest) -> int:
    try:
        comm = connect()
    except HpcmoeError as error:
        if _first_process():
            print_error(error)
        return error.exit_code
    try:
        return _sweep(comm, argv, simulator, stop)
    except BaseException as error:
        code = error.exit_code if isinstance(error, HpcmoeError) else 1
        if isinstance(error, HpcmoeError):
            print_error(error)
        else:
            print(
                f"hpcmoe: rank {comm.rank} of {comm.size} on {socket.gethostname()}:\n"
                + traceback.format_exc(),
                file=sys.stderr,
            )
        comm.abort(code)
        return code


def print_error(error: HpcmoeError) -> None:
    print(f"hpcmoe: error: {error}", file=sys.stderr, flush=True)


def _first_process() -> bool:
    """Whether to speak for all when ranks cannot talk to each other."""
    names = ("SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
    return all(os.environ.get(name, "0") == "0" for name in names)


def _sweep(comm: Comm, argv: Sequence[str] | None, simulator: Simulator, stop: StopRequest) -> int:
    if comm.rank == 0:
        return _Lead(comm, simulator, stop).run(argv)
    plan = comm.broadcast(None)
    if isinstance(plan, int):
        return plan
    stop.deadline_unix_s = plan.deadline_unix_s
    patience_s = plan.options.patience_s
    with open_rows(plan, comm) as rows:
        follow(comm, Worker(plan, simulator, rows, comm.rank, comm.size), stop, patience_s)
    return wait_for_exit(comm, stop, patience_s, lambda: take_part(plan.options.file, comm.mpi))


class _Lead:
    """Rank 0's part: plan, lead, merge, report."""

    def __init__(self, comm: Comm, simulator: Simulator, stop: StopRequest) -> None:
        self._comm, self._simulator, self._stop = comm, simulator, stop
        self._failures: list[Outcome] = []

    def run(self, argv: Sequence[str] | None) -> int:
        with ExitStack() as held:
            try:
                options = parse(argv)
                plan, tasks = self._prepare(options, held)
            except SystemExit as stopped:
                return int(self._comm.broadcast(int(stopped.code or 0)))
            except HpcmoeError as error:
                print_error(error)
                return int(self._comm.broadcast(error.exit_code))
            self._comm.broadcast(plan)
            self._lead(plan, tasks)
            code = self._finish(plan)
        if self._leader.lost:
            self._comm.abort(code)
        for rank in range(1, self._comm.size):
            self._comm.send(code, rank, Tag.EXIT)
        return code

    def _prepare(self, options: Options, held: ExitStack) -> tuple[Plan, list[Task]]:
        uses_parallel_hdf5(options.io, self._comm)  # says so if it was asked for in vain
        session = describe_session(self._comm)
        paths = ResultPaths(options.file)
        before = held.enter_context(exclusive(paths))
        self._stop.deadline_unix_s = deadline_unix_s(options.time_limit_s, os.environ, time.time())
        try:
            plan, tasks, remarks = make_plan(
                options, self._simulator, software(), session, self._stop.deadline_unix_s
            )
            clear_leftovers(paths)
        except OSError as error:
            raise StorageError(f"{error.filename or options.file}: cannot write: {reason(error)}") from error
        record_session(paths, session)
        self._costs = {t.run: expected_s(plan.keys[t.run], options) for t in tasks}
        self._live = LiveFile(paths)
        self._progress = Progress(
            self._costs,
            sys.stderr,
            quiet=options.quiet,
            interval_s=options.report_every_s,
            machine=sys.stdout if options.json_lines else None,
        )
        self._greet(plan, tasks, [before, *remarks])
        return plan, tasks

    def _greet(self, plan: Plan, tasks: list[Task], remarks: list[str]) -> None:
        for remark in filter(None, remarks):
            self._progress.say(f"hpcmoe: {remark}")
        stored = sum(bool(task.keep) for task in tasks)
        self._progress.note(
            f"hpcmoe: {len(tasks)} runs, {stored} of them stored already, on "
            f"{self._comm.size} rank(s), into {plan.options.file}"
        )
        self._progress.emit(
            "start",
            {
                "file": str(plan.options.file),
                "runs": len(tasks),
                "stored": stored,
                "ranks": self._comm.size,
            },
        )

    def _lead(self, plan: Plan, tasks: list[Task]) -> None:
        self._plan = plan
        self._leader = Leader(
            self._comm,
            tasks,
            self._stop,
            self._note,
            self._look,
            costs=self._costs,
            patience_s=plan.options.patience_s,
        )
        with open_rows(plan, self._comm) as rows:
            self._leader.lead(Worker(plan, self._simulator, rows, 0, self._comm.size))
            if self._leader.lost:
                rows.abandon()

    def _look(self) -> None:
        self._progress.look()
        if self._live.due:
            now_s = time.time()
            working = [
                {
                    "rank": rank,
                    "run": str(self._plan.keys[found.task.run]),
                    "seconds": now_s - found.since_unix_s,
                }
                for rank, found in self._leader.assignments.items()
                if found.task is not None
            ]
            self._live.write(
                {"ranks": self._comm.size, "working": working, "stopping": self._stop.asked}
                | self._progress.numbers()
            )

    def _note(self, outcome: Outcome) -> None:
        self._progress.add(outcome)
        if outcome.state != "failed":
            return
        self._failures.append(outcome)
        key = str(self._plan.keys[outcome.run])
        if not outcome.kept:
            self._progress.say(f"hpcmoe: run {key} failed: {outcome.error}")
        if outcome.details:
            self._progress.say(outcome.details)
        self._progress.emit("failed", {"run": key, "error": outcome.error, "stored_before": outcome.kept})

    def _finish(self, plan: Plan) -> int:
        code = self._ending(plan)
        self._progress.emit("end", {"exit_code": code, **self._progress.numbers()})
        return code

    def _ending(self, plan: Plan) -> int:
        for rank in sorted(self._leader.lost):
            self._progress.say(f"hpcmoe: rank {rank} was silent for too long and is taken for dead")
        if self._leader.trouble:
            print_error(StorageError(self._leader.trouble))
            return StorageError.exit_code
        if self._progress.left:
            return self._stopped()
        if error := self._merge(plan):
            print_error(error)
            return error.exit_code
        self._progress.note(self._summary(plan))
        return self._report_failures(plan) or (LOST_RANK_EXIT_CODE if self._leader.lost else 0)

    def _stopped(self) -> int:
        line, progress = self._progress.line(), self._progress
        if self._stop.signal is None and not progress.worked:
            progress.say(f"hpcmoe: no run ended within the time limit: it has to be longer; {line}")
            return FAILED_RUNS_EXIT_CODE
        progress.say(
            f"hpcmoe: stopped {self._stop.reason}, {line}; finished runs are safe, the same command continues"
        )
        return self._stop.exit_code

    def _merge(self, plan: Plan) -> HpcmoeError | None:
        """What went wrong is returned where the sweep can still end in order: no other rank takes part."""
        if not needs_merge(plan.options.file):
            remove_spool(plan.paths)  # what it holds is in the file already, or belongs to older inputs
            return None
        comm = self._comm.mpi if self._shared_merge(plan) else None
        try:
            merge(plan.options.file, software(), on_run=self._sign_of_life(plan), comm=comm)
        except HpcmoeError as error:
            if comm is not None:
                raise
            return error
        return None

    def _shared_merge(self, plan: Plan) -> bool:
        """Whether every rank takes part; asks them to."""
        if self._leader.lost or not uses_parallel_hdf5(plan.options.io, self._comm):
            return False
        for rank in range(1, self._comm.size):
            self._comm.send(None, rank, Tag.MERGE)
        return True

    def _sign_of_life(self, plan: Plan) -> Heartbeat:
        """Tells the ranks that wait for the exit code that a long merge goes on."""

        def tell_all() -> None:
            for rank in range(1, self._comm.size):
                if rank not in self._leader.lost:
                    self._comm.send(None, rank, Tag.ALIVE)

        return Heartbeat(tell_all, plan.options.patience_s)

    def _summary(self, plan: Plan) -> str:
        counts = self._progress.counts
        renewed = f" ({self._progress.renewed} renewed)" if self._progress.renewed else ""
        return (
            f"hpcmoe: {counts['ok']} runs done{renewed}, {counts['kept']} kept, {counts['failed']} "
            f"failed, {duration(self._progress.seconds)} of CPU time; results are in {plan.options.file}"
        )

    def _report_failures(self, plan: Plan) -> int:
        if not self._failures:
            return 0
        self._progress.say(f"hpcmoe: {len(self._failures)} run(s) failed; --retry-failed tries them again:")
        for outcome in sorted(self._failures, key=lambda failure: failure.run)[:SHOWN_FAILURES]:
            self._progress.say(f"  {plan.keys[outcome.run]}: {outcome.error}")
        hidden = len(self._failures) - SHOWN_FAILURES
        if hidden > 0:
            self._progress.say(f"  ... and {hidden} more, in the column 'error' of /runs")
        return FAILED_RUNS_EXIT_CODE
