"""Twelve cases of the study's size against upstream: every rank's times, and the speed of both.

    python benchmarks/full_size.py [CASE ...]

Each case is one layer of the flash model at 4096 tokens, given as upstream's own input files (see
tests/data/PROVENANCE.md). The times must agree to the nanosecond; the exit code is 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_tools import machine_facts, markdown_table

from hpcmoe import runner
from hpcmoe.scenario import UpstreamFiles, scenario_from_upstream_files

CASES_FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "full_size"
CASES = tuple(sorted(path.name for path in CASES_FOLDER.iterdir()))
_INPUTS = ("system.json", "memory.json", "logical.json", "config.txt", "topology.txt")
_FILES = UpstreamFiles(
    workload="et",
    system="system.json",
    network="config.txt",
    memory="memory.json",
    logical_topology="logical.json",
)


@dataclass(frozen=True)
class Outcome:
    """``wrong`` lists (rank, expected, got) with (wall, GPU, communication) ns where they differ."""

    case: str
    wrong: list[tuple[int, tuple[int, ...], tuple[int, ...]]]
    packet_hops: int
    expected_hops: int
    seconds: float
    upstream_seconds: float

    @property
    def exact(self) -> bool:
        return not self.wrong and self.packet_hops == self.expected_hops


@contextmanager
def unpacked(case: str) -> Iterator[dict[str, Any]]:
    """The working directory is a folder with the case's files while the block runs."""
    folder = CASES_FOLDER / case
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as work:
        for name in _INPUTS:
            shutil.copy(folder / name, work)
        for rank in range(len(expected["ranks"])):  # every rank runs the same trace
            shutil.copy(folder / "trace.et", Path(work) / f"et.{rank}.et")
        os.chdir(work)
        try:
            yield expected
        finally:
            os.chdir(before)


def run_case(case: str) -> Outcome:
    with unpacked(case) as expected:
        scenario = scenario_from_upstream_files(_FILES)
        result = runner.run(scenario, record_flows=False, record_queues=False)
    wrong = []
    for row in expected["ranks"]:
        want = (row["wall_time"], row["gpu_time"], row["comm_time"])
        ours = result.ranks[row["rank"]]
        got = (int(ours["wall_ns"]), int(ours["gpu_ns"]), int(ours["comm_ns"]))
        if want != got:
            wrong.append((row["rank"], want, got))
    return Outcome(
        case, wrong, result.packet_hops, expected["packet_hops"], result.seconds, expected["upstream_cpu_s"]
    )


def table(outcomes: Sequence[Outcome]) -> str:
    header = ("case", "exact", "packet-hops", "CPU s", "M hops/CPU-s", "upstream CPU s", "ratio")
    rows = [
        (
            o.case,
            "yes" if o.exact else f"NO ({len(o.wrong)} ranks)",
            f"{o.packet_hops}",
            f"{o.seconds:.2f}",
            f"{o.packet_hops / o.seconds / 1e6:.1f}",
            f"{o.upstream_seconds:.1f}",
            f"{o.upstream_seconds / o.seconds:.0f}",
        )
        for o in outcomes
    ]
    return markdown_table(header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", metavar="CASE", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    arguments = parser.parse_args(argv)
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown:
        parser.error(f"unknown case {unknown[0]}; known are {', '.join(CASES)}")
    outcomes = [run_case(case) for case in arguments.cases or CASES]
    print("\n".join(machine_facts()), end="\n\n")
    print(table(outcomes))
    for outcome in outcomes:
        for rank, want, got in outcome.wrong[:3]:
            print(f"\n{outcome.case}: rank {rank}: expected wall, GPU, comm {want}, got {got}")
    return 0 if all(outcome.exact for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
