"""How busy the scheduler keeps many ranks: a sweep of 768 runs that only sleep.

    python benchmarks/scheduler.py [--ranks 128] [--seconds 2] [--trials 1]

A rank is busy from the start of a run until it is stored; idle is the rest of the time between the first
start and the last end, over all ranks. Exits with 1 when it is more than 10 %.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "mpi")]
import sweep_tools as tools  # noqa: E402

MOST_IDLE = 0.10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how idle a scheduler leaves its ranks.")
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2.0, help="of sleep per run")
    parser.add_argument("--trials", type=int, default=1)
    options = parser.parse_args(argv)
    print("| ranks | runs | span (s) | idle | waiting for work, median (ms) |")
    print("|---|---|---|---|---|")
    worst = 0.0
    for _ in range(options.trials):
        with tempfile.TemporaryDirectory() as folder:
            started, ended = measured(Path(folder), options.ranks, options.seconds)
        idle = idle_share(started, ended, options.ranks)
        worst = max(worst, idle)
        span_s = max(end for end, _ in ended.values()) - min(start for start, _ in started.values())
        waits = sorted(waits_s(started, ended))
        wait_ms = 1000 * waits[len(waits) // 2]
        print(f"| {options.ranks} | {len(ended)} | {span_s:.1f} | {idle:.1%} | {wait_ms:.0f} |", flush=True)
    return 1 if worst > MOST_IDLE else 0


Times = dict[str, tuple[float, int]]
"""Unix time and process id by run key."""


def measured(folder: Path, ranks: int, seconds: float) -> tuple[Times, Times]:
    log, done = folder / "log", folder / "done"
    tools.TIMEOUT_S = 900
    finished = tools.sweep(
        ranks,
        folder / "study.h5",
        FAKE_LOG=str(log),
        FAKE_DONE=str(done),
        FAKE_SECONDS=str(seconds),
        FAKE_SLICE="0.04",  # the simulator calls back every 7 ms
    )
    assert finished.returncode == 0, finished.stdout
    return times(log), times(done)


def times(file: Path) -> Times:
    rows = [line.split() for line in file.read_text().splitlines()]
    return {key: (float(at), int(process)) for key, process, at in rows}


def idle_share(started: Times, ended: Times, ranks: int) -> float:
    span_s = max(end for end, _ in ended.values()) - min(start for start, _ in started.values())
    busy_s = sum(ended[key][0] - started[key][0] for key in ended)
    return 1 - busy_s / (ranks * span_s)


def waits_s(started: Times, ended: Times) -> list[float]:
    """From storing a run to starting the next, on the same rank."""
    by_process: dict[int, list[tuple[float, float]]] = {}
    for key, (end, process) in ended.items():
        by_process.setdefault(process, []).append((started[key][0], end))
    return [
        later[0] - earlier[1]
        for runs in map(sorted, by_process.values())
        for earlier, later in itertools.pairwise(runs)
    ]


if __name__ == "__main__":
    sys.exit(main())
