"""The argument parser of every command of the program, and arguments that many commands take."""

from __future__ import annotations

import argparse
from typing import NoReturn

from hpcmoe.errors import InputError


class Parser(argparse.ArgumentParser):
    """Errors look like every other error of the program: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(InputError.exit_code, f"hpcmoe: error: {message} (see {self.prog} --help)\n")


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="change a parameter (see 'hpcmoe parameters'); may be repeated",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="also write the result as JSON; - is standard output")


def positive(text: str) -> int:
    """The type of an argument that counts something."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value
