"""Command line of a sweep."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpcmoe import manual
from hpcmoe.command_line import Parser
from hpcmoe.errors import InputError
from hpcmoe.parameters import parse_overrides
from hpcmoe.placement import CONTIGUOUS, IN_ORDER, Placement
from hpcmoe.placement import parse as parse_placement
from hpcmoe.sweep.timing import parse_time_limit_s


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
    retry_failed: bool = False
    time_limit_s: float | None = None
    json_lines: bool = False
    io: str = "auto"
    patience_s: float = 300.0
    backend: str = "native"
    placement: Placement = IN_ORDER


def parser() -> argparse.ArgumentParser:
    """The argument parser, also for programs that embed a sweep."""
    parser = Parser(
        allow_abbrev=False,
        prog="python -m hpcmoe.sweep",
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
        "--placement",
        metavar="NAME|FILE",
        default=CONTIGUOUS,
        help="GPU of each rank: contiguous, round_robin over the servers, or a file with a host index or GPU "
        "name per rank (default: %(default)s)",
    )
    parser.add_argument(
        "--no-traces", action="store_false", dest="traces", help="keep no per-flow, queue and pause traces"
    )
    parser.add_argument("--quiet", action="store_true", help="report failures and the end only")
    parser.add_argument(
        "--report-every",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        dest="report_every_s",
        help="time between progress lines when not on a terminal (default: %(default)s)",
    )
    _add_backend(parser)
    _add_running(parser)
    manual.apply_page(parser, "sweep")
    return parser


IO_CHOICES = ("auto", "positioned", "parallel")


def _add_running(parser: argparse.ArgumentParser) -> None:
    """Options that say how to run, not what."""
    parser.add_argument(
        "--retry-failed", action="store_true", help="do failed runs again (otherwise their error stays)"
    )
    parser.add_argument(
        "--time-limit",
        metavar="TIME",
        help="end by then with exit code 85, as [DAYS-]HOURS:MINUTES:SECONDS or MINUTES (default: the end of "
        "the Slurm job)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        dest="json_lines",
        help="progress as one JSON object per line on standard output",
    )
    parser.add_argument(
        "--io",
        choices=IO_CHOICES,
        default="auto",
        help="how ranks write the file: through parallel HDF5, or with positioned writes (default: parallel "
        "where h5py has it and there are several ranks)",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=_seconds,
        default=300.0,
        dest="patience_s",
        help="silence after which another rank is taken for dead (default: %(default)s)",
    )


def _add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        choices=("native", "ns3"),
        default="native",
        help="who simulates the network: this program's engine (default) or ns-3, where it is built in",
    )


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
        found.retry_failed,
        None if found.time_limit is None else parse_time_limit_s(found.time_limit),
        found.json_lines,
        found.io,
        found.patience_s,
        found.backend,
        parse_placement(found.placement),
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return value


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value
