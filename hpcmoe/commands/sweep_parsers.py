"""Arguments of the subcommands about sweeps and their files."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from hpcmoe.command_line import add_json, positive

Command = Callable[[argparse._SubParsersAction, str, str, str], argparse.ArgumentParser]


def add_all(commands: argparse._SubParsersAction, command: Command) -> None:
    """`command` adds one subcommand: (commands, name, 'module:function', help)."""
    _add_plan(commands, command)
    _add_file_commands(commands, command)
    study = commands.add_parser(
        "study", help="studies of your own", description="Study files: studies of your own."
    )
    _add_study(study.add_subparsers(metavar="ACTION", required=True, parser_class=type(study)), command)
    slurm = commands.add_parser(
        "slurm", help="batch scripts for Slurm", description="Batch scripts for Slurm."
    )
    _add_slurm(slurm.add_subparsers(metavar="ACTION", required=True, parser_class=type(slurm)), command)


def _add_plan(commands: argparse._SubParsersAction, command: Command) -> None:
    parser = command(
        commands, "plan", "plan:plan", "predict what a sweep costs, and on how many ranks it pays"
    )
    parser.add_argument("results", metavar="FILE.h5", nargs="?", help="plan what this file lacks")
    parser.add_argument(
        "--select", metavar="GLOB", nargs="+", action="extend", help="runs (default: all 768)"
    )
    add_study_option(parser)
    parser.add_argument("--tokens", type=positive, help="tokens per rank (default: 4096)")
    parser.add_argument("--layers", type=positive, help="MoE layers (default: all the model has)")
    parser.add_argument(
        "--ranks", type=positive, metavar="N", nargs="+", help="show these numbers of ranks too"
    )
    add_json(parser)


def add_study_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--study", metavar="FILE", help="a study file (see 'hpcmoe study'): its runs and settings"
    )


def _add_study(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "init", "study:init", "write a commented example of a study file")
    parser.add_argument("file", metavar="FILE", nargs="?", default="study.yaml", help="default: %(default)s")
    parser = command(actions, "check", "study:check", "check a study file and say what it comes to")
    parser.add_argument("file", metavar="FILE", help="the study file")
    add_json(parser)


def _add_file_commands(commands: argparse._SubParsersAction, command: Command) -> None:
    parser = command(
        commands, "status", "status:status", "tell how far a results file is, and who works on it"
    )
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    add_json(parser)
    parser = command(
        commands, "merge", "merge:merge", "take the traces of finished runs into the results file"
    )
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser = command(commands, "join", "join:join", "join results files of one study into a new one")
    parser.add_argument("output", metavar="OUT.h5", help="file to write")
    parser.add_argument("parts", metavar="PART.h5", nargs="+", help="results file to take the runs of")
    parser = command(commands, "pack", "pack:pack", "write a small copy of a results file, without traces")
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser.add_argument("-o", "--output", required=True, metavar="COPY.h5", help="file to write")
    parser = command(
        commands, "verify", "verify:verify", "check a results file and say which runs to do again"
    )
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser.add_argument(
        "--reset", action="store_true", help="mark faulty runs as missing, for the next sweep"
    )
    add_json(parser)


def _add_slurm(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "render", "slurm:render", "print a batch script")
    _add_job(parser)
    parser = command(actions, "submit", "slurm:submit", "submit a batch script")
    _add_job(parser)
    parser.add_argument("--script", metavar="FILE", help="where to keep the script (default: FILE.h5.sbatch)")
    parser = command(actions, "status", "slurm:status", "tell what became of submitted jobs")
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    add_json(parser)


def _add_job(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", metavar="FILE.h5", help="results file; an array adds the model to its name")
    add("--kind", choices=("plain", "requeue", "array"), default="requeue", help="default: %(default)s")
    add("--ranks", type=positive, default=128, help="MPI ranks (default: %(default)s)")
    add("--time", default="04:00:00", help="time limit (default: %(default)s)")
    add("--mpi", choices=("pmi2", "pmix", "none"), help="srun --mpi (default: what fits mpi4py's MPI)")
    add("--name", default="hpcmoe", help="job name (default: %(default)s)")
    add("--python", default="python", help="the Python to run (default: %(default)s)")
    add(
        "--setup", metavar="LINE", action="append", default=[], help="shell line before the sweep; repeatable"
    )
    add(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="further sbatch option; repeatable",
    )
    add("--warning", type=positive, default=120, metavar="SECONDS", help="before the limit (default: 120)")
    add("--restarts", type=positive, default=20, help="requeues at most (default: %(default)s)")
    add_study_option(parser)
    add("--sweep", metavar="ARGUMENTS", default="", help="arguments of the sweep, as one text: '--layers 1'")
