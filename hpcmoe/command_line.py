"""The argument parser of every command of the program."""

from __future__ import annotations

import argparse
from typing import NoReturn

from hpcmoe.errors import InputError


class Parser(argparse.ArgumentParser):
    """Errors look like every other error of the program: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(InputError.exit_code, f"hpcmoe: error: {message} (see {self.prog} --help)\n")
