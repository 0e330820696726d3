"""Small sweeps with the real simulator."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcmoe.store import open_results

sys.path.insert(0, str(Path(__file__).parent))
import sweep_tools as tools

WITHOUT_MPI = importlib.util.find_spec("mpi4py") is None or tools.mpiexec() is None
NEEDS_MPI = (pytest.mark.mpi, pytest.mark.skipif(WITHOUT_MPI, reason="mpi4py or mpiexec is missing"))
SELECT = ("--select", "flash/*/tp2ep16/ring_direct/ib_cc0", "flash/t3/tp2ep16/*/roce_*")
SMALL = (*SELECT, "--tokens", "64", "--layers", "1")


def sweep(ranks: int, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = tools.command(ranks, path, *(arguments or SMALL), program=("-m", "hpcmoe.sweep"))
    return subprocess.run(
        line, env=tools.environment(), capture_output=True, text=True, timeout=tools.TIMEOUT_S, check=False
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "study.h5"
    done = sweep(0, path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=NEEDS_MPI) for n in (1, 2, 4)])
def test_same_bytes_for_any_number_of_ranks(ranks: int, reference: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.h5"
    done = sweep(ranks, path)
    assert done.returncode == 0, done.stderr
    assert tools.datasets(path) == tools.datasets(reference)


STUDY = """\
models: [flash]
topologies: [t1]
strategies: [tp2ep4dp2, tp2ep4pp2]
collectives: [{name: own_rings, all_reduce: [ring, ring], all_to_all: [ring, ring]}]
networks: [{name: shallow, base: roce_dcqcn, set: {buffer_bytes: 4e6}}]
layers: 2
variants: {tokens: [64, 32]}
"""


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=NEEDS_MPI)])
def test_what_a_study_file_defines_reaches_every_rank(ranks: int, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    alone, shared = tmp_path / "alone.h5", tmp_path / "shared.h5"
    for count, path in ((0, alone), (ranks, shared)):
        done = sweep(count, path, "--study", str(study))
        assert done.returncode == 0, done.stderr
    assert tools.datasets(shared) == tools.datasets(alone)


def test_continued_sweep_keeps_everything(reference: Path) -> None:
    before = reference.read_bytes()
    done = sweep(0, reference)
    assert done.returncode == 0
    assert "0 runs done, 10 kept, 0 failed" in done.stderr
    assert reference.read_bytes() == before


def test_parts_of_the_file_agree(reference: Path) -> None:
    with open_results(reference) as results:
        assert results.counts() == {"missing": 0, "ok": 10, "failed": 0}
        for number, row in enumerate(results.runs):
            ranks, links, traces = results.ranks(number), results.links(number), results.traces(number)
            slowest = int(np.argmax(ranks["wall_ns"]))
            assert (row["bottleneck_rank"], row["wall_ns"]) == (slowest, ranks["wall_ns"][slowest])
            assert row["comm_ns"] == ranks["comm_ns"][slowest] > 0
            assert links["ecn_marks"].sum() == row["ecn_marks"]
            assert (links["data_packets"] + links["ack_packets"]).sum() == row["packet_hops"]
            assert (row["tokens"], row["layers"]) == (64, 1)
            assert len(traces.fct) > 0
            assert set(traces.fct["layer"].tolist()) <= {-1, 0}
            assert results.config(number)["key"] == row["key"]
            assert results.provenance()["runs"]["seconds"][number] > 0
