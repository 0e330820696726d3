"""Command line of a sweep."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpcmoe.errors import InputError
from hpcmoe.parameters import parse_overrides


@dataclass(frozen=True)
class Options:
    """What a sweep was asked for. `layers` is the number of MoE layers, None for all."""

    file: Path
    select: tuple[str, ...] = ("*",)
    tokens: int = 4096
    layers: int | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    traces: bool = True
    quiet: bool = False
    report_every_s: float = 30.0


def parser() -> argparse.ArgumentParser:
    """The argument parser, also for programs that embed a sweep."""
    parser = argparse.ArgumentParser(
        prog="python -m hpcmoe.sweep",
        description="Simulate the study, or a part of it, into one results file. Start it plainly, with "
        "mpiexec or with srun. The same command again continues a sweep that ended early.",
    )
    parser.add_argument("file", metavar="OUT.h5", type=Path, help="results file, created or continued")
    parser.add_argument(
        "--select",
        metavar="GLOB",
        nargs="+",
        action="extend",
        help="runs to do, as shell patterns on model/topology/strategy/collective/network (default: all 768)",
    )
    parser.add_argument(
        "--tokens", type=_positive, default=4096, help="tokens per rank (default: %(default)s)"
    )
    parser.add_argument("--layers", type=_positive, help="MoE layers (default: all the model has)")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="change a network or system parameter in every run",
    )
    parser.add_argument(
        "--no-traces", action="store_false", dest="traces", help="keep no per-flow, queue and pause traces"
    )
    parser.add_argument("--quiet", action="store_true", help="report failures and the end only")
    parser.add_argument(
        "--report-every",
        metavar="SECONDS",
        type=float,
        default=30.0,
        dest="report_every_s",
        help="time between progress lines when not on a terminal (default: %(default)s)",
    )
    return parser


def parse(argv: Sequence[str] | None) -> Options:
    """Options of a command line. Raises SystemExit for --help and usage errors, InputError otherwise."""
    found = parser().parse_args(argv)
    if found.file.is_dir():
        raise InputError("is a directory; give the name of a results file", file=found.file)
    if not found.file.absolute().parent.is_dir():
        raise InputError("the folder for the results file does not exist", file=found.file.absolute().parent)
    return Options(
        found.file.absolute(),
        tuple(found.select or ("*",)),
        found.tokens,
        found.layers,
        parse_overrides(found.overrides),
        found.traces,
        found.quiet,
        found.report_every_s,
    )


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value
