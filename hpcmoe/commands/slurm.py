"""``hpcmoe slurm``: batch scripts, submitting them, and what became of them."""

from __future__ import annotations

import argparse
import glob
import shlex
import sys
from pathlib import Path
from typing import Any

from hpcmoe.commands import common


def render(arguments: argparse.Namespace) -> int:
    from hpcmoe.sweep import slurm

    sys.stdout.write(slurm.render(_job(arguments)))
    return 0


def submit(arguments: argparse.Namespace) -> int:
    from hpcmoe.sweep import slurm

    script = Path(arguments.script or f"{arguments.results}.sbatch")
    number = slurm.submit(_job(arguments), script)
    print(f"job {number} submitted ({script}); 'hpcmoe slurm status {arguments.results}' tells how it goes")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """What Slurm and the results file say."""
    from hpcmoe.sweep import slurm
    from hpcmoe.sweep import status as state

    jobs = slurm.known_jobs(arguments.results)
    rows = slurm.job_states(jobs)
    files = _files(Path(arguments.results))
    found = [state.status(path) for path in files]
    common.write_json(arguments.json, {"jobs": rows, "files": found})
    if arguments.json != "-":
        print(
            f"submitted: {' '.join(jobs) or 'nothing'}" + ("" if rows or not jobs else "; none is queued now")
        )
        for row in rows:
            print(
                "  {job:<12} {state:<12} {elapsed:>10} of {limit:<10} {nodes} node(s) {reason}".format(**row)
            )
        for one in found:
            print("\n".join(state.describe(one)))
    return 0


def _files(path: Path) -> list[Path]:
    """The results file, or those of an array over models."""
    if path.is_file():
        return [path]
    return sorted(path.parent.glob(f"{glob.escape(path.stem)}-*{glob.escape(path.suffix)}"))


def _job(arguments: argparse.Namespace) -> Any:
    from hpcmoe.design import MODELS
    from hpcmoe.studyfile import read_study
    from hpcmoe.sweep import slurm

    study = ["--study", arguments.study] if arguments.study else []
    models = read_study(arguments.study).levels["model"] if arguments.study else MODELS
    options = dict(_option(text) for text in arguments.option)
    return slurm.Job(
        kind=arguments.kind,
        file=arguments.results,
        ranks=arguments.ranks,
        time_limit=arguments.time,
        mpi=arguments.mpi or slurm.mpi_plugin(slurm.mpi_library()),
        name=arguments.name,
        arguments=[*study, *shlex.split(arguments.sweep.strip())],
        setup=arguments.setup,
        options=options,
        python=arguments.python,
        warning_s=arguments.warning,
        restarts=arguments.restarts,
        models=models,
    )


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.removeprefix("--").partition("=")
    return name, value
