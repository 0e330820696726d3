"""The whole stack, through ``hpcmoe simulate``, against every rank's times and the traces of upstream."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcmoe.cli import main

DATA = Path(__file__).parents[1] / "data"
CASES = sorted(path.name for path in (DATA / "stack").iterdir())
Unpack = Callable[[str], dict[str, Any]]

SIMULATE = [
    "simulate",
    "--workload-configuration=et",
    "--system-configuration=system.json",
    "--network-configuration=config.txt",
    "--remote-memory-configuration=memory.json",
    "--logical-topology-configuration=logical.json",
]  # fmt: skip


def expected_times(expected: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    columns = ("rank", "wall_time", "gpu_time", "comm_time")
    return [tuple(row[name] for name in columns) for row in expected["ranks"]]


def times(result: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    columns = ("rank", "wall_ns", "gpu_ns", "comm_ns")
    return [tuple(row[name] for name in columns) for row in result["ranks"]]


def sorted_lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return sorted(text.splitlines())


def test_there_are_sixteen_cases() -> None:
    assert len(CASES) == 16


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, unpack: Unpack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = unpack(f"stack/{case}")
    monkeypatch.chdir(tmp_path)
    assert main([*SIMULATE, "--json", "result.json"]) == 0
    result = json.loads(Path("result.json").read_text())
    assert times(result) == expected_times(expected)
    assert result["simulated_ns"] == expected["simulated_ns"]
    folder = DATA / "stack" / case
    assert sorted_lines(Path("fct.txt")) == sorted_lines(folder / "fct.txt.gz")
    pauses = sorted_lines(Path("pfc.txt"))
    known = folder / "pfc.txt.gz"
    assert pauses == (sorted_lines(known) if known.exists() else [])
    assert len(pauses) == expected["pfc_lines"]
    assert result["packet_hops"] + len(pauses) == expected["packet_hops"]


def test_report_of_a_process(unpack: Unpack, tmp_path: Path) -> None:
    """What upstream prints for every rank, on standard output and nothing else."""
    expected = unpack("stack/t1_tp4_hd_cc0")
    done = subprocess.run(
        [sys.executable, "-m", "hpcmoe", *SIMULATE], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    for label, column in (("Wall", "wall_time"), ("GPU", "gpu_time"), ("Comm", "comm_time")):
        printed = re.findall(rf"sys\[(\d+)\], {label} time: (\d+)$", done.stdout, re.MULTILINE)
        assert sorted((int(rank), int(time)) for rank, time in printed) == [
            (row["rank"], row[column]) for row in expected["ranks"]
        ]
    assert len(sorted_lines(tmp_path / "fct.txt")) == expected["fct_lines"]
