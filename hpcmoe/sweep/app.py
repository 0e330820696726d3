"""A sweep from command line to exit code.

Exit codes: 0 all runs are there; 1 some runs failed; 2 bad input; 85 asked to stop (the same
command continues); 130 interrupted from the keyboard.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import ExitStack

from hpcmoe.errors import HpcmoeError
from hpcmoe.store.merge import merge, needs_merge
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.rows import RowFile
from hpcmoe.store.spool import clear_leftovers, remove_spool
from hpcmoe.sweep.arguments import Options, parse
from hpcmoe.sweep.comm import Comm, Tag, connect
from hpcmoe.sweep.cost import predicted_cost
from hpcmoe.sweep.plan import Plan, Task, make_plan
from hpcmoe.sweep.progress import Progress, duration
from hpcmoe.sweep.scheduler import Leader, follow
from hpcmoe.sweep.session import describe_session, exclusive, record_session, software
from hpcmoe.sweep.signals import StopRequest
from hpcmoe.sweep.simulator import Simulator, real_simulator
from hpcmoe.sweep.worker import Outcome, Worker

FAILED_RUNS_EXIT_CODE = 1
SHOWN_FAILURES = 20


def main(argv: Sequence[str] | None = None, simulator: Simulator | None = None) -> int:
    """Run a sweep on all ranks; returns the exit code, the same on each."""
    try:
        comm = connect()
    except HpcmoeError as error:
        if _first_process():
            print_error(error)
        return error.exit_code
    try:
        return _sweep(comm, argv, simulator or real_simulator())
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


def _sweep(comm: Comm, argv: Sequence[str] | None, simulator: Simulator) -> int:
    with StopRequest() as stop:
        if comm.rank == 0:
            return _Lead(comm, simulator, stop).run(argv)
        start = comm.broadcast(None)
        if isinstance(start, int):
            return start
        with RowFile(start.options.file, start.row_map) as rows:
            return follow(comm, Worker(start, simulator, rows, comm.rank, comm.size), stop)


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
        for rank in range(1, self._comm.size):
            self._comm.send(code, rank, Tag.EXIT)
        return code

    def _prepare(self, options: Options, held: ExitStack) -> tuple[Plan, list[Task]]:
        session = describe_session(self._comm)
        paths = ResultPaths(options.file)
        held.enter_context(exclusive(paths))
        plan, tasks, remarks = make_plan(options, self._simulator, software(), session)
        clear_leftovers(paths)
        record_session(paths, session)
        costs = {t.run: predicted_cost(plan.keys[t.run], options.tokens, options.layers) for t in tasks}
        self._progress = Progress(costs, sys.stderr, quiet=options.quiet, interval_s=options.report_every_s)
        for remark in remarks:
            self._progress.say(f"hpcmoe: {remark}")
        stored = sum(bool(task.keep) for task in tasks)
        self._progress.note(
            f"hpcmoe: {len(tasks)} runs, {stored} of them stored already, on "
            f"{self._comm.size} rank(s), into {options.file}"
        )
        return plan, tasks

    def _lead(self, plan: Plan, tasks: list[Task]) -> None:
        self._plan = plan
        leader = Leader(self._comm, tasks, self._stop, self._note, self._progress.look)
        with RowFile(plan.options.file, plan.row_map) as rows:
            leader.lead(Worker(plan, self._simulator, rows, 0, self._comm.size))

    def _note(self, outcome: Outcome) -> None:
        self._progress.add(outcome)
        if outcome.state == "failed":
            self._failures.append(outcome)
            self._progress.say(f"hpcmoe: run {self._plan.keys[outcome.run]} failed: {outcome.error}")
            if outcome.details:
                self._progress.say(outcome.details)

    def _finish(self, plan: Plan) -> int:
        if self._stop.signal is not None and self._progress.left:
            self._progress.say(
                f"hpcmoe: stopped by signal {self._stop.signal}, {self._progress.line()}; "
                "finished runs are safe, the same command continues"
            )
            return self._stop.exit_code
        if needs_merge(plan.options.file):
            merge(plan.options.file, software())
        else:
            remove_spool(plan.paths)  # what it holds is in the file already, or belongs to older inputs
        self._progress.note(self._summary(plan))
        return self._report_failures(plan)

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
        self._progress.say(f"hpcmoe: {len(self._failures)} run(s) failed; the same command tries them again:")
        for outcome in sorted(self._failures, key=lambda failure: failure.run)[:SHOWN_FAILURES]:
            self._progress.say(f"  {plan.keys[outcome.run]}: {outcome.error}")
        hidden = len(self._failures) - SHOWN_FAILURES
        if hidden > 0:
            self._progress.say(f"  ... and {hidden} more, in the column 'error' of /runs")
        return FAILED_RUNS_EXIT_CODE
