"""verify finds what was made wrong, and nothing in a sound file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from hpcmoe.errors import InputError
from hpcmoe.store import open_results
from hpcmoe.store.layout import read_row_map
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.rows import rows_checksum
from hpcmoe.store.verify import verify
from hpcmoe.sweep import app

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake

SELECT = ("--select", "flash/t1/*/ring_direct/ib_cc0", "--quiet")  # 4 runs
RANKS = fake.RANKS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A complete file of 4 runs."""
    file = tmp_path / "study.h5"
    assert app.main([str(file), *SELECT], fake.fake_simulator()) == 0
    return file


def faults(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for fault in verify(path).faults:
        found.setdefault(fault.key, []).append(fault.text)
    return found


def test_sound_file(path: Path) -> None:
    verdict = verify(path)
    assert (verdict.runs, verdict.checked, verdict.missing, verdict.waiting) == (4, 4, 0, 0)
    assert verdict.faults == ()


def test_unfinished_file(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.h5"
    monkeypatch.setattr(app, "merge", lambda *_a, **_k: None)
    monkeypatch.setenv("FAKE_FAIL", "*/tp4ep8/*")
    assert app.main([str(other), *SELECT], fake.fake_simulator()) == 1
    verdict = verify(other)
    assert (verdict.checked, verdict.waiting, verdict.faults) == (4, 4, ())


def flip(path: Path, dataset: str, row: int) -> None:
    """Change one bit of a row in place, without HDF5."""
    with h5py.File(path) as file:
        data = file[dataset]
        offset = data.id.get_offset() + (row + 1) * data.dtype.itemsize - 1
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(("dataset", "row"), [("/runs", 2), ("/ranks", 2 * RANKS + 1), ("/links", 2 * 6 + 5)])
def test_flipped_bit(dataset: str, row: int, path: Path) -> None:
    flip(path, dataset, row)
    assert list(faults(path).values()) == [["the checksum of its rows is wrong"]]
    assert verify(path).to_redo == [2]


def test_changed_trace(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        row = int(file["/traces/index"]["pfc_offset"][1])
        rows = file["/traces/pfc"][row : row + 1]
        rows["time_ns"] += 1
        file["/traces/pfc"][row : row + 1] = rows
    assert list(faults(path).values()) == [["the checksum of its traces is wrong"]]


def test_damaged_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.h5"
    monkeypatch.setattr(app, "merge", lambda *_a, **_k: None)
    assert app.main([str(path), *SELECT], fake.fake_simulator()) == 0
    damaged = min(ResultPaths(path).spooled())
    damaged.write_bytes(damaged.read_bytes()[:2000])
    min(ResultPaths(path).spooled() - {damaged}).unlink()
    texts = [text for found in faults(path).values() for text in found]
    assert len(texts) == 2
    assert any(text.startswith("its traces cannot be read") for text in texts)
    assert "its traces are neither in the file nor in the spool" in texts


def rewrite(path: Path, change: Callable[[Any, np.ndarray, np.ndarray], None]) -> None:
    """Change run 1 (row, ranks, links) and give it the right checksum for that."""
    read_row_map(path)
    with h5py.File(path, "r+") as file:
        row = file["/runs"][1]
        where = {
            what: slice(int(row[f"{what}_offset"]), int(row[f"{what}_offset"]) + int(row[f"{what}_count"]))
            for what in ("rank", "link")
        }
        ranks, links = file["/ranks"][where["rank"]], file["/links"][where["link"]]
        change(row, ranks, links)
        row["checksum"] = rows_checksum(row, ranks, links)
        file["/runs"][1], file["/ranks"][where["rank"]], file["/links"][where["link"]] = row, ranks, links


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda run, _r, _l: run.__setitem__("wall_ns", 1), "are not those of the bottleneck rank"),
        (
            lambda run, _r, _l: run.__setitem__("bottleneck_rank", 7),
            "not the rank with the longest wall time",
        ),
        (lambda run, _r, _l: run.__setitem__("packet_hops", 1), "packet_hops is not what the links carried"),
        (lambda run, _r, _l: run.__setitem__("ecn_marks", 1), "ecn_marks is not what the links marked"),
        (lambda run, _r, _l: run.__setitem__("drops", 1), "packets were dropped"),
        (lambda run, _r, _l: run.__setitem__("layers", 1), "layers is not layers_simulated + layers_added"),
        (lambda run, _r, _l: run.__setitem__("simulated_ns", 5), "a rank finished after the end"),
        (lambda run, _r, _l: run.__setitem__("simulated_ns", 5), "a flow ends after the end"),
        (lambda _n, ranks, _l: ranks["finished"].__setitem__(2, 0), "a rank did not finish"),
        (lambda _n, ranks, _l: ranks["rank"].__setitem__(2, 0), "ranks are not numbered in order"),
        (lambda _n, ranks, _l: ranks["run"].__setitem__(2, 0), "name another run"),
        (lambda _n, ranks, _l: ranks["bytes_sent"].__setitem__(2, 0), "bytes sent and received differ"),
        (lambda _n, ranks, _l: ranks["bytes_sent"].__setitem__(2, 0), "flows carry other bytes"),
        (lambda _n, _r, links: links["run"].__setitem__(0, 9), "name another run"),
    ],
)
def test_broken_invariant(change: Callable[[Any, Any, Any], None], text: str, path: Path) -> None:
    rewrite(path, change)
    [found] = faults(path).values()
    assert any(text in fault for fault in found), found


@pytest.mark.parametrize("column", ["fct_offset", "qlen_count", "repeats_count"])
def test_index_out_of_bounds(column: str, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        index = file["/traces/index"][...]
        index[column][3] += 1
        file["/traces/index"][...] = index
    [fault] = verify(path).faults
    assert (fault.number, fault.text.startswith("/traces/index: the ranges of")) == (-1, True)


def test_row_ranges_that_overlap(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        runs = file["/runs"][...]
        runs["rank_offset"][2] -= 1
        file["/runs"][...] = runs
    assert "/runs: rank_offset and rank_count do not divide /ranks" in verify(path).faults[0].text


@pytest.mark.parametrize("part", ["/runs", "/config", "design"])
def test_a_results_file_without_a_part_of_it_is_named(part: str, path: Path) -> None:
    with h5py.File(path, "r+") as file:
        if part == "design":
            file.attrs["design"] = "{"
        else:
            del file[part]
    with pytest.raises(InputError, match="damaged results file") as error, open_results(path):
        pass
    assert str(error.value).startswith(f"{path}: ")


def test_text_of_a_run_that_is_no_text(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        rows = file["/runs"][...]
        rows["key"][0] = b"\xa7"
        file["/runs"][...] = rows
    with pytest.raises(InputError, match="damaged results file"), open_results(path):
        pass
