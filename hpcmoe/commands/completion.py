"""``hpcmoe completion``: the script that teaches a shell to complete this program's command lines."""

from __future__ import annotations

import argparse
import sys

from hpcmoe.completion import SCRIPTS


def completion(arguments: argparse.Namespace) -> int:
    sys.stdout.write(SCRIPTS[arguments.shell])
    return 0
