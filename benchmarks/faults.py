"""Counts what faults at seeded instants cost a sweep on four ranks; prints the table of docs/sweep.md.

    python benchmarks/faults.py [--trials 30] [--kind KIND ...]

The sweep simulates nothing (tests/mpi/fake_sweep.py), so that instants fall on every part of it: laying
the file out, runs, storing, the merge. Exits with 1 when a trial is not good.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "mpi")]
import faults  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Do faults to a sweep and count what is lost.")
    parser.add_argument("--trials", type=int, default=30, help="per kind (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--kind", choices=list(faults.FAULTS), nargs="+", default=list(faults.FAULTS))
    options = parser.parse_args(argv)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        expected = faults.undisturbed(Path(folder))
        print(
            "| fault | trials | runs finished before | of these lost | done again needlessly | wrong files |"
        )
        print("|---|---|---|---|---|---|")
        for kind in options.kind:
            seeds = range(options.first_seed, options.first_seed + options.trials)
            trials = [faults.trial(kind, seed, expected, continue_on=4 * (seed % 2)) for seed in seeds]
            print(row(kind, trials), flush=True)
            for trial in trials:
                if not trial.good:
                    bad += 1
                    print(trial, file=sys.stderr, flush=True)
    return 1 if bad else 0


def row(kind: str, trials: list[faults.Trial]) -> str:
    lost = sum(trial.lost for trial in trials)
    needless = sum(trial.redone_needlessly + trial.redone_twice for trial in trials)
    wrong = sum(not (trial.same_file and trial.clean and trial.sound) for trial in trials)
    done = sorted(trial.done for trial in trials)
    spread = f"{sum(done)} ({done[0]} to {done[-1]} of {faults.RUNS})"
    return f"| {kind} | {len(trials)} | {spread} | {lost} | {needless} | {wrong} |"


if __name__ == "__main__":
    sys.exit(main())
