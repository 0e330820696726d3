"""The reference cases of the native engine, on ns-3: byte for byte what upstream gave."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hpcmoe.cli import main

pytestmark = pytest.mark.ns3

DATA = Path(__file__).parents[1] / "data"
NETWORK = DATA / "network"
VECTORS = [tuple(line.split()) for line in (NETWORK / "INDEX.txt").read_text().splitlines()]
# Lost last packets are never repaired, so these never finish; the reference stopped at 100 ms.
NEVER_FINISH = {"lossy_glob", "drop_cc12"}
CASES = sorted(path.name for path in (DATA / "stack").iterdir())
SIMULATE = [
    "simulate",
    "--workload-configuration=et",
    "--system-configuration=system.json",
    "--network-configuration=config.txt",
    "--remote-memory-configuration=memory.json",
    "--logical-topology-configuration=logical.json",
    "--backend=ns3",
]  # fmt: skip


def flows_arguments(name: str, flows: str, output: Path) -> list[str]:
    limit = ["--until-ns=100000000"] if name in NEVER_FINISH else []
    return [
        "flows", f"--network-configuration={name}.cfg", f"--flows={flows}", f"--fct={output}",
        "--backend=ns3", *limit,
    ]  # fmt: skip


def test_all_cases_are_there() -> None:
    assert (len(VECTORS), len(CASES)) == (40, 16)


@pytest.mark.parametrize(("name", "flows"), VECTORS, ids=[name for name, _ in VECTORS])
def test_network_vector(name: str, flows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NETWORK)  # configurations name their topology relative to the working directory
    assert main(flows_arguments(name, flows, tmp_path / "fct.txt")) == 0
    assert (tmp_path / "fct.txt").read_bytes() == (NETWORK / f"{name}.ref").read_bytes()


@pytest.mark.parametrize("name", sorted(NEVER_FINISH))
def test_flows_that_never_finish_are_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(NETWORK)
    flows = dict(VECTORS)[name]
    code = main(flows_arguments(name, flows, tmp_path / "fct.txt")[:-1])  # no time limit
    total = len((NETWORK / flows).read_text().splitlines())
    stuck = total - len((NETWORK / f"{name}.ref").read_text().splitlines())
    assert code == 3
    assert f"{stuck} of {total} flows never finish" in capsys.readouterr().err


def sorted_lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return sorted(text.splitlines())


def times(rows: list[dict[str, Any]], *columns: str) -> list[tuple[int, ...]]:
    return [tuple(row[name] for name in columns) for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_stack_case(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DATA / "stack" / case
    expected = json.loads((folder / "expected.json").read_text())
    for name in ("system.json", "memory.json", "logical.json", "config.txt", "topology.txt"):
        shutil.copy(folder / name, tmp_path)
    for rank in range(len(expected["ranks"])):  # every rank runs the same trace
        shutil.copy(folder / "trace.et", tmp_path / f"et.{rank}.et")
    monkeypatch.chdir(tmp_path)
    assert main([*SIMULATE, "--json", "result.json"]) == 0
    result = json.loads(Path("result.json").read_text())
    assert times(result["ranks"], "rank", "wall_ns", "gpu_ns", "comm_ns") == times(
        expected["ranks"], "rank", "wall_time", "gpu_time", "comm_time"
    )
    assert result["simulated_ns"] == expected["simulated_ns"]
    assert sorted_lines(Path("fct.txt")) == sorted_lines(folder / "fct.txt.gz")
    known = folder / "pfc.txt.gz"
    assert sorted_lines(Path("pfc.txt")) == (sorted_lines(known) if known.exists() else [])
