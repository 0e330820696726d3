"""Command line of a sweep."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcmoe import design, manual
from hpcmoe.command_line import Parser, number, positive
from hpcmoe.errors import InputError
from hpcmoe.parameters import parse_overrides
from hpcmoe.placement import CONTIGUOUS, IN_ORDER, Placement
from hpcmoe.placement import parse as parse_placement
from hpcmoe.studyfile import RunSettings, StudyDesign, only_study
from hpcmoe.sweep.timing import parse_time_limit_s

TOKENS = 4096
"""Tokens per rank of the published study."""


@dataclass(frozen=True)
class Options:
    """What a sweep was asked for. `layers` is the number of MoE layers, None for all.

    With a `study` of the user's own, that says which runs there are and what each one's settings are;
    `tokens`, `layers` and `overrides` are then what its runs have in common.
    """

    file: Path
    select: tuple[str, ...] = ("*",)
    tokens: int = TOKENS
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
    study: StudyDesign | None = None

    def keys(self) -> tuple[design.RunKey, ...]:
        """The runs, in the order in which the file has them."""
        return tuple(design.select(self.select)) if self.study is None else self.study.select(self.select)

    def settings(self, key: design.RunKey) -> RunSettings:
        """What a run needs beside its key."""
        if self.study is None:
            return RunSettings(self.tokens, self.layers, self.overrides, self.placement)
        return self.study.of_run(key)


_seconds = number(float, "seconds above 0", lambda value: 0 < value < math.inf)


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
        "--study", metavar="FILE", help="runs and settings of this study file (see 'hpcmoe study')"
    )
    parser.add_argument("--tokens", type=positive, help=f"tokens per rank (default: {TOKENS})")
    parser.add_argument("--layers", type=positive, help="MoE layers (default: all the model has)")
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
        traces=found.traces,
        quiet=found.quiet,
        report_every_s=found.report_every_s,
        retry_failed=found.retry_failed,
        time_limit_s=None if found.time_limit is None else parse_time_limit_s(found.time_limit),
        json_lines=found.json_lines,
        io=found.io,
        patience_s=found.patience_s,
        backend=found.backend,
        **asked_for(found.study, found.tokens, found.layers, found.overrides, found.placement),
    )


def asked_for(
    study: str | None,
    tokens: int | None,
    layers: int | None,
    assignments: Sequence[str] = (),
    placement: str = CONTIGUOUS,
) -> dict[str, Any]:
    """The fields of Options that say what is simulated. InputError where a study and an option both do."""
    if study is None:
        overrides, placed = parse_overrides(assignments), parse_placement(placement)
        return {"tokens": tokens or TOKENS, "layers": layers, "overrides": overrides, "placement": placed}
    return of_study(only_study(study, tokens, layers, assignments, placement))


def of_study(study: StudyDesign) -> dict[str, Any]:
    """The fields of Options for a study: itself, and what all its runs have in common (tokens 0: nothing)."""
    found = [study.of_variant(text) for text in study.variant_texts]
    common = found[0].overrides.items() & set.intersection(*(set(one.overrides.items()) for one in found))
    return {
        "study": study,
        "tokens": found[0].tokens if len({one.tokens for one in found}) == 1 else 0,
        "layers": found[0].layers if len({one.layers for one in found}) == 1 else None,
        "overrides": dict(sorted(common)),
        "placement": found[0].placement if len({one.placement for one in found}) == 1 else IN_ORDER,
    }
