"""``hpcmoe join``: one results file out of the parts of a study."""

from __future__ import annotations

import argparse
from pathlib import Path


def join(arguments: argparse.Namespace) -> int:
    from hpcmoe.store import open_results
    from hpcmoe.sweep import join as sweep_join

    out = Path(arguments.output)
    sweep_join.join(out, [Path(part) for part in arguments.parts])
    with open_results(out) as results:
        counts = results.counts()
    print(
        f"{out}: {sum(counts.values())} runs of {len(arguments.parts)} file(s), {counts['ok']} done, "
        f"{counts['failed']} failed, {counts['missing']} missing"
    )
    return 0
