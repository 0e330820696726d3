"""Batch scripts for Slurm, and the few commands that bring them there.

`render` is a pure function of a Job: same job, same text. The files in slurm/ are what it gives for the
default job of each kind. Only what differs from Slurm's manual is explained, in the scripts themselves.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcmoe.design import MODELS
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.sweep.comm import srun_plugin
from hpcmoe.sweep.signals import REQUEUE_EXIT_CODE
from hpcmoe.sweep.timing import parse_time_limit_s

KINDS = ("plain", "requeue", "array")
MPI_CHOICES = ("pmi2", "pmix", "none")


@dataclass(frozen=True)
class Job:
    """A sweep as a batch job. `arguments` are those of `python -m hpcmoe.sweep` after the file; `setup`
    are shell lines before it (modules, environments); `options` are further sbatch options; `models` are
    those of an array."""

    kind: str = "requeue"
    file: str = "study.h5"
    ranks: int = 128
    time_limit: str = "04:00:00"
    mpi: str = "pmi2"
    name: str = "hpcmoe"
    arguments: Sequence[str] = ()
    setup: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    python: str = "python"
    warning_s: int = 120
    restarts: int = 20
    models: Sequence[str] = MODELS


def render(job: Job) -> str:
    """The batch script. Raises InputError for a job that cannot be."""
    _check(job)
    lines = ["#!/bin/bash", *_directives(job), *_header(job), "set -u"]
    lines += job.setup
    if job.mpi == "pmi2" and job.kind != "plain":
        lines += [
            "# MPICH names shared memory by job and step, and a requeued job has the same names again.",
            'if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then export MPIR_CVAR_NOLOCAL=1; fi',
        ]
    if job.mpi == "pmix":
        lines.append("export OMPI_MCA_mpi_yield_when_idle=1")
    if job.kind == "array":
        lines += [f"models=({' '.join(job.models)})", "model=${models[$SLURM_ARRAY_TASK_ID]}"]
    lines += ["", *_body(job)]
    return "\n".join(lines) + "\n"


def _check(job: Job) -> None:
    if job.kind not in KINDS:
        raise InputError("unknown kind of job", field="kind", value=job.kind, allowed=KINDS)
    if job.mpi not in MPI_CHOICES:
        raise InputError("unknown MPI plug-in", field="--mpi", value=job.mpi, allowed=MPI_CHOICES)
    if job.ranks < 1:
        raise InputError("bad number of ranks", field="--ranks", value=job.ranks, allowed="1 or more")
    if job.kind == "array" and any(word.startswith("--select") for word in job.arguments):
        raise InputError(
            "an array selects by model itself", field="--select", allowed="kind plain or requeue"
        )
    limit_s = parse_time_limit_s(job.time_limit)
    if job.kind != "plain" and limit_s <= job.warning_s:
        raise InputError(
            "shorter than the warning before its end",
            field="--time",
            value=job.time_limit,
            allowed=f"more than {job.warning_s} s",
        )


def _directives(job: Job) -> list[str]:
    """#SBATCH lines; the user's own options come last and win."""
    options = {"job-name": job.name, "ntasks": str(job.ranks), "cpus-per-task": "1", "time": job.time_limit}
    options["output"] = f"{job.name}-%A_%a.log" if job.kind == "array" else f"{job.name}-%j.log"
    if job.kind != "plain":
        options |= {"signal": f"B:USR1@{job.warning_s}", "open-mode": "append", "requeue": ""}
    if job.kind == "array":
        options["array"] = f"0-{len(job.models) - 1}"
    options |= job.options
    return [f"#SBATCH --{name}" + (f"={value}" if value else "") for name, value in options.items()]


def _header(job: Job) -> list[str]:
    what = {
        "plain": ["# One sweep. Submit it again to continue one that ran out of time."],
        "requeue": [
            "# One sweep that ends in order before its time limit and queues itself again until done."
        ],
        "array": ["# One sweep per model, each into a file of its own, each queued again until done."],
    }
    return what[job.kind]


def _body(job: Job) -> list[str]:
    # Since Slurm 22.05 srun does not take --cpus-per-task over from sbatch.
    srun = f"srun --mpi={job.mpi} --kill-on-bad-exit=1 --cpus-per-task=1"
    command = f"{srun} {job.python} -m hpcmoe.sweep {_file(job)}"
    arguments = ['--select "$model/*"'] if job.kind == "array" else []
    command = " ".join([command, *arguments, *map(shlex.quote, job.arguments)])
    if job.kind == "plain":
        return [f"exec {command}"]
    return [f"{command} &", *_WAIT, *_requeue_lines(job)]


def _file(job: Job) -> str:
    if job.kind != "array":
        return shlex.quote(job.file)
    path = Path(job.file)
    return shlex.quote(str(path.with_suffix(""))) + '-"$model"' + shlex.quote(path.suffix)


_WAIT = (
    "step=$!",
    "# The warning comes to this shell alone, and wakes it from wait before the step has ended.",
    "warned=0",
    "trap 'warned=1; kill -USR1 \"$step\"' USR1",
    'wait "$step"; code=$?',
    'while [ "$warned" = 1 ]; do warned=0; wait "$step"; code=$?; done',
)


def _requeue_lines(job: Job) -> list[str]:
    closing = [f'if [ "$code" = 0 ]; then echo {shlex.quote(_join_remark(job))}; fi']
    return [
        f'if [ "$code" = {REQUEUE_EXIT_CODE} ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {job.restarts} ]; then',
        '  echo "queued again"',
        '  scontrol requeue "$SLURM_JOB_ID"',
        "fi",
        *(closing if job.kind == "array" else []),
        'exit "$code"',
    ]


def _join_remark(job: Job) -> str:
    path = Path(job.file)
    parts = [f"{path.with_suffix('')}-{model}{path.suffix}" for model in job.models]
    return f"when all tasks are done: {shlex.join(['hpcmoe', 'join', job.file, *parts])}"


def mpi_plugin(library: str) -> str:
    """srun's --mpi for an MPI library, by the text of its version. Raises HpcmoeError if unknown."""
    if plugin := srun_plugin(library):
        return plugin
    raise HpcmoeError(f"cannot tell which srun --mpi fits this MPI ({library}); name one with --mpi")


def mpi_library() -> str:
    """Version text of the MPI that mpi4py uses here. Raises HpcmoeError without mpi4py."""
    try:
        import mpi4py

        mpi4py.rc(initialize=False, finalize=False)
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise HpcmoeError(
            f"mpi4py cannot be used in this Python ({error}); name a plug-in with --mpi"
        ) from None
    return MPI.Get_library_version().splitlines()[0].strip("\0 ")


Run = Callable[[Sequence[str]], str]


def call(arguments: Sequence[str]) -> str:
    """Output of a Slurm command. Raises HpcmoeError when it is missing or fails."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HpcmoeError(f"{arguments[0]} is not here: this has to run on a Slurm cluster") from None
    if done.returncode:
        raise HpcmoeError(f"{arguments[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def submit(job: Job, script: Path, run: Run = call) -> str:
    """Write the script, hand it to sbatch, remember the job beside the results file; returns its id."""
    script.write_text(render(job))
    output = run(["sbatch", "--parsable", str(script)])
    number = output.strip().partition(";")[0]
    if not number.isdigit():
        raise HpcmoeError(f"cannot read a job id from what sbatch says: {output!r}; see squeue")
    jobs = [*known_jobs(job.file), number]
    jobs_file(job.file).write_text(json.dumps(jobs) + "\n")
    return number


def jobs_file(file: str | Path) -> Path:
    """Where the ids of the jobs submitted for a results file are."""
    return Path(f"{file}.jobs")


def known_jobs(file: str | Path) -> list[str]:
    try:
        found: list[str] = json.loads(jobs_file(file).read_text())
    except (OSError, ValueError):
        return []
    return found


def job_states(jobs: Sequence[str], run: Run = call) -> list[dict[str, Any]]:
    """What squeue knows of the jobs, one entry per job or array task; those that are gone are not there."""
    if not jobs:
        return []
    names = ("job", "state", "elapsed", "limit", "nodes", "reason")
    text = run(["squeue", "--noheader", "--format=%i|%T|%M|%l|%D|%R"])
    rows = [dict(zip(names, line.split("|"), strict=True)) for line in text.splitlines() if line.strip()]
    return [row for row in rows if row["job"].partition("_")[0] in jobs]
