"""``hpcmoe report``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpcmoe.commands import outputs


def report(arguments: argparse.Namespace) -> int:
    from hpcmoe.report import write_report

    outputs.check_folder(arguments.output)
    figures = arguments.figures and _can_draw()
    written = write_report(arguments.results, arguments.output, runs=arguments.runs, with_figures=figures)
    print("\n".join(_summary(written)))
    return 0


def _summary(written: Sequence[Path]) -> Iterator[str]:
    """The page, the text, and a count of each other kind of file with its folder."""
    page, text, *others = written
    yield from (str(page), str(text))
    counts = Counter((path.parent, path.suffix[1:]) for path in others)
    yield from (f"{folder}{os.sep} {count} {suffix}" for (folder, suffix), count in counts.items())


def _can_draw() -> bool:
    try:
        importlib.import_module("hpcmoe.figures.collection")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        print(
            "hpcmoe: warning: the report has no figures, which need matplotlib: "
            "pip install 'hpcmoe[figures]'; --no-figures leaves them out silently",
            file=sys.stderr,
        )
        return False
    return True
