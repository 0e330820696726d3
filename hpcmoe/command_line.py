"""The argument parser of every command of the program, and arguments that many commands take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn, TypeVar

from hpcmoe.errors import InputError

_Number = TypeVar("_Number", int, float)


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


def number(
    parse: Callable[[str], _Number], expected: str, fits: Callable[[_Number], bool] = lambda value: True
) -> Callable[[str], _Number]:
    """The type of an argument that `parse` reads (ValueError: it cannot) and that `fits`; the error names
    what is `expected`."""

    def convert(text: str) -> _Number:
        try:
            value = parse(text)
        except ValueError:
            pass
        else:
            if fits(value):
                return value
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")

    return convert


positive = number(int, "a whole number of at least 1", lambda value: value >= 1)
"""The type of an argument that counts something."""
