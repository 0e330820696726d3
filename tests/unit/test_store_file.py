"""Layout, rows, spool, merge and reader, without a sweep around them."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from hpcmoe import design
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.store import merge as merge_module
from hpcmoe.store import open_results, schema
from hpcmoe.store.committed import needs_merge
from hpcmoe.store.layout import FileSpec, RowMap, RunSpec, create, read_row_map
from hpcmoe.store.merge import merge
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.result import (
    RunTraces,
    failed_rows,
    finished_rows,
    provenance_row,
    result_traces,
    take_columns,
)
from hpcmoe.store.rows import RowFile
from hpcmoe.store.spool import clear_leftovers, read_spool, write_spool

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake
import sweep_tools as tools

FACTORS = design.FACTORS
KEYS = design.select(["flash/t[123]/tp2ep16/ring_direct/roce_*"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.h5"


def lay_out(path: Path, **changes: Any) -> RowMap:
    runs = [RunSpec(str(key), fake.RANKS, fake.link_rows(key)) for key in KEYS]
    software = {"hpcmoe_version": "1.2.3"}
    return create(path, FileSpec(runs, FACTORS, tokens=64, layers=None, software=software, **changes))


def digest_of(run: int, version: int = 1) -> str:
    return f"{version:032x}{run:032x}"


def provenance() -> np.ndarray:
    return provenance_row(seconds=1.5, peak_memory_bytes=7, finished_unix_s=9.0, rank=3, host="nöde")


def store_rows(file: RowFile, run: int, version: int = 1) -> None:
    result = fake.fake_result(KEYS[run])
    file.write(
        run, finished_rows(run, result, digest=digest_of(run, version), tokens=64, provenance=provenance())
    )


def store(path: Path, row_map: RowMap, run: int, version: int = 1) -> None:
    """What a worker does with a finished run."""
    traces = result_traces(
        fake.fake_result(KEYS[run]),
        run,
        digest=digest_of(run, version),
        config=f'{{"run": {run}}}',
        keep=True,
    )
    write_spool(ResultPaths(path), str(KEYS[run]), traces, writer=0)
    with RowFile(path, row_map) as file:
        store_rows(file, run, version)


def assert_same_traces(found: RunTraces, run: int) -> None:
    result = fake.fake_result(KEYS[run])
    for kind, expected in (("fct", result.flows), ("qlen", result.queues), ("pfc", result.pauses)):
        table = schema.TRACE_TABLES[kind]
        np.testing.assert_array_equal(getattr(found, kind), take_columns(table, expected))
    assert (found.digest, found.config) == (digest_of(run), f'{{"run": {run}}}')
    [repeat], [stored] = result.repeats, found.repeats
    assert stored["run"] == run
    for ours, theirs in (("fct", "flow"), ("qlen", "queue"), ("pfc", "pause")):
        assert [stored[f"{ours}_{end}"] for end in ("begin", "end")] == [
            repeat[f"{theirs}_{end}"] for end in ("begin", "end")
        ]
    for name in ("count", "period_ns", "layer_step", "node_step"):
        assert stored[name] == repeat[name]


class TestLayout:
    def test_rows_are_ranged_in_order(self, path: Path) -> None:
        lay_out(path)
        with open_results(path) as results:
            assert results.runs["key"].tolist() == [str(key) for key in KEYS]
            assert results.runs["model"].tolist() == ["flash"] * len(KEYS)
            assert results.runs["network"].tolist() == ["roce_hpcc", "roce_dcqcn"] * 3
            assert results.runs["link_count"].tolist() == [6, 6, 8, 8, 10, 10]
            assert results.runs["link_offset"].tolist() == [0, 6, 12, 20, 28, 38]
            assert results.runs["rank_offset"].tolist() == [0, 4, 8, 12, 16, 20]
            assert results.counts() == {"missing": 6, "ok": 0, "failed": 0}
        with h5py.File(path) as file:
            assert (
                file["/links"]["run"].tolist() == [0] * 6 + [1] * 6 + [2] * 8 + [3] * 8 + [4] * 10 + [5] * 10
            )

    def test_attributes(self, path: Path) -> None:
        lay_out(path, overrides={"u_target": "0.9"}, select=["x"], provenance={"host": "h"})
        with open_results(path) as results:
            assert set(results.attrs) == set(schema.ROOT_ATTRIBUTES)
            assert results.attrs["layers"] == -1
            assert results.attrs["hpcmoe_version"] == "1.2.3"
            assert results.attrs["format_version"] == list(schema.FORMAT_VERSION)
            assert results.design["overrides"] == {"u_target": "0.9"}
            assert results.design["factors"]["topology"] == list(design.TOPOLOGIES)
            assert results.provenance()["host"] == "h"
            assert results.units("/runs")["wall_ns"] == "ns"

    def test_datasets_are_contiguous_and_allocated(self, path: Path) -> None:
        lay_out(path)
        with h5py.File(path) as file:
            for table in schema.FIXED_TABLES:
                creation = file[table.path].id.get_create_plist()
                assert creation.get_layout() == h5py.h5d.CONTIGUOUS
                assert creation.get_alloc_time() == h5py.h5d.ALLOC_TIME_EARLY
                assert file[table.path].id.get_offset() is not None

    def test_no_temporary_file_is_left(self, path: Path) -> None:
        lay_out(path)
        assert [item.name for item in path.parent.iterdir()] == ["study.h5"]

    def test_rewritten_file_is_not_continued(self, path: Path) -> None:
        lay_out(path)
        with h5py.File(path, "r+") as file:
            rows = file["/runs"][...]
            del file["/runs"]
            file.create_dataset("/runs", data=rows, chunks=True)
        with pytest.raises(InputError, match=r"/runs: rows are not stored in place.*h5repack"):
            read_row_map(path)


class TestRows:
    def test_finished_run_reads_back(self, path: Path) -> None:
        row_map = lay_out(path)
        store(path, row_map, 2)
        expected = fake.fake_result(KEYS[2])
        with open_results(path) as results:
            row = results.runs[2]
            assert row["status"] == "ok"
            for name in ("wall_ns", "gpu_ns", "comm_ns", "bottleneck_rank", "events", "packet_hops", "drops"):
                assert row[name] == getattr(expected, name)
            assert (row["layers_simulated"], row["layers_added"], row["layers"]) == (3, 2, 5)
            assert (row["tokens"], row["digest"], row["error"]) == (64, digest_of(2), "")
            for name in expected.ranks.dtype.names:
                np.testing.assert_array_equal(results.ranks(2)[name], expected.ranks[name])
            for name in expected.links.dtype.names:
                np.testing.assert_array_equal(results.links(str(KEYS[2]))[name], expected.links[name])
            assert results.provenance()["runs"][2].tolist() == (1.5, 7, 9.0, 3, "nöde")
            assert results.counts() == {"missing": 5, "ok": 1, "failed": 0}

    def test_neighbours_are_untouched(self, path: Path) -> None:
        row_map = lay_out(path)
        for run in (1, 3):
            store(path, row_map, run)
        before = tools.datasets(path)
        store(path, row_map, 2)
        after = tools.datasets(path)
        with h5py.File(path) as file:
            for table, column in ((schema.RUNS, None), (schema.RANKS, "run"), (schema.LINKS, "run")):
                rows = np.frombuffer(before[table.path[1:]][2], file[table.path].dtype)
                now = np.frombuffer(after[table.path[1:]][2], file[table.path].dtype)
                others = np.arange(len(rows)) != 2 if column is None else rows[column] != 2
                assert rows[others].tobytes() == now[others].tobytes()

    def test_failed_run_keeps_reason_and_no_old_numbers(self, path: Path) -> None:
        row_map = lay_out(path)
        store(path, row_map, 0)
        rows = failed_rows(0, "ü" * 400, rank_count=4, link_count=6, digest="d", provenance=provenance())
        with RowFile(path, row_map) as file:
            file.write(0, rows)
        with open_results(path) as results:
            row = results.runs[0]
            assert (row["status"], row["error"], row["wall_ns"], row["tokens"]) == ("failed", "ü" * 256, 0, 0)
            assert row["key"] == str(KEYS[0])
            with pytest.raises(InputError, match="this run failed: üü"):
                results.traces(0)
        with h5py.File(path) as file:
            assert not file["/links"]["bytes"][:6].any()

    def test_wrong_number_of_rows_is_refused(self, path: Path) -> None:
        row_map = lay_out(path)
        other = finished_rows(0, fake.fake_result(KEYS[4]), digest="d", tokens=1, provenance=provenance())
        before = path.read_bytes()
        with RowFile(path, row_map) as file, pytest.raises(ValueError, match="10 link rows.*room for 6"):
            file.write(0, other)
        assert path.read_bytes() == before

    def test_kill_between_any_two_writes_leaves_the_row_missing(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row_map = lay_out(path)
        store(path, row_map, 1)  # an older result that is to be replaced
        start = path.read_bytes()
        writes: list[tuple[int, bytes]] = []
        synced: list[int] = []
        real_write = os.pwrite

        def recorded(descriptor: int, data: bytes, offset: int) -> int:
            part = bytes(data)[:100]  # short writes are continued
            writes.append((offset, part))
            return real_write(descriptor, part, offset)

        monkeypatch.setattr(os, "pwrite", recorded)
        monkeypatch.setattr(os, "fdatasync", lambda _descriptor: synced.append(len(writes)))
        with RowFile(path, row_map) as file:
            store_rows(file, 1, version=2)
        monkeypatch.undo()

        copy = tmp_path / "copy.h5"
        for count in range(1, len(writes)):
            content = bytearray(start)
            for offset, data in writes[:count]:
                content[offset : offset + len(data)] = data
            copy.write_bytes(content)
            with open_results(copy) as results:
                assert results.runs["status"][1] == "missing"
        assert len(writes) > 10
        assert len(writes[-1][1]) == 1
        assert synced == [1, len(writes) - 1, len(writes)]
        with open_results(path) as results:
            assert (results.runs["status"][1], results.runs["digest"][1]) == ("ok", digest_of(1, 2))

    def test_value_that_does_not_fit_is_refused(self) -> None:
        links = fake.fake_result(KEYS[0]).links.astype([(n, "<i8") for n in schema.LINKS.names if n != "run"])
        links["src"][3] = 2**32
        with pytest.raises(ValueError, match="/links: a value of column 'src' does not fit <u4"):
            take_columns(schema.LINKS, links, run=0)

    def test_missing_column_is_refused(self) -> None:
        with pytest.raises(ValueError, match="result for /traces/qlen lacks column 'time_ns'"):
            take_columns(schema.QLEN, np.zeros(1, [("src", "u4")]))


class TestSpoolAndMerge:
    def test_spool_round_trip(self, path: Path) -> None:
        row_map = lay_out(path)
        store(path, row_map, 3)
        [spooled] = ResultPaths(path).spooled()
        assert_same_traces(read_spool(spooled), 3)
        assert len(read_spool(spooled, ("fct",)).pfc) == 0

    def test_leftovers_are_not_results(self, path: Path) -> None:
        lay_out(path)
        paths = ResultPaths(path)
        paths.spool.mkdir()
        paths.spool_temporary("a/b", 0).write_bytes(b"half")
        assert paths.spooled() == set()
        assert clear_leftovers(paths) == 1
        assert list(paths.spool.iterdir()) == []

    @pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 3, 1, 0, 2, 4)])
    def test_merged_file_does_not_depend_on_order(
        self, order: tuple[int, ...], path: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other.h5"
        for target, sequence in ((path, range(6)), (other, order)):
            row_map = lay_out(target)
            for run in sequence:
                store(target, row_map, run)
            assert needs_merge(target)
            report = merge(target)
            assert report.runs == 6
            assert not needs_merge(target)
            assert not ResultPaths(target).spool.exists()
        assert tools.datasets(path) == tools.datasets(other)
        with open_results(path) as results:
            for run in range(6):
                assert_same_traces(results.traces(run), run)
            assert results.config(4) == {"run": 4}

    def test_index_is_dense_and_in_order(self, path: Path) -> None:
        row_map = lay_out(path)
        for run in (4, 1):
            store(path, row_map, run)
        report = merge(path)
        with h5py.File(path) as file:
            index = file["/traces/index"][...]
            for kind in schema.VARIABLE_TABLES:
                ends = np.cumsum(index[f"{kind}_count"])
                np.testing.assert_array_equal(index[f"{kind}_offset"], np.concatenate([[0], ends[:-1]]))
                assert ends[-1] == report.rows[kind] == file[f"/traces/{kind}"].shape[0]
            assert index["digest"].tolist() == [
                b"",
                digest_of(1).encode(),
                b"",
                b"",
                digest_of(4).encode(),
                b"",
            ]
            assert file["/traces/fct"].compression == "gzip"
            assert "units" in file["/traces/fct"].attrs

    def test_second_merge_keeps_the_first(self, path: Path, tmp_path: Path) -> None:
        at_once = tmp_path / "at_once.h5"
        row_map = lay_out(at_once)
        for run in range(6):
            store(at_once, row_map, run)
        merge(at_once)
        row_map = lay_out(path)
        for run in (1, 4):
            store(path, row_map, run)
        merge(path)
        row_map = read_row_map(path)
        for run in (0, 2, 3, 5):
            store(path, row_map, run)
        assert merge(path).runs == 4
        assert tools.datasets(path) == tools.datasets(at_once)

    def test_version_is_replaced(self, path: Path) -> None:
        store(path, lay_out(path), 0)
        merge(path, {"hpcmoe_version": "9"})
        with open_results(path) as results:
            assert results.attrs["hpcmoe_version"] == "9"

    def test_traces_of_older_inputs_are_not_given_out(self, path: Path) -> None:
        row_map = lay_out(path)
        store(path, row_map, 0)
        merge(path)
        with RowFile(path, read_row_map(path)) as file:
            store_rows(file, 0, version=2)
        with open_results(path) as results, pytest.raises(InputError, match="neither the file nor its spool"):
            results.traces(0)
        assert not needs_merge(path)

    def test_interrupted_merge_changes_nothing(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        row_map = lay_out(path)
        store(path, row_map, 0)
        before, spooled = path.read_bytes(), ResultPaths(path).spooled()

        def fails(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(merge_module, "publish", fails)
        with pytest.raises(KeyboardInterrupt):
            merge(path)
        assert (path.read_bytes(), ResultPaths(path).spooled()) == (before, spooled)
        monkeypatch.undo()
        merge(path)
        with open_results(path) as results:
            assert_same_traces(results.traces(0), 0)

    @pytest.mark.parametrize("damaged", ["/links", "/traces/qlen"])
    def test_merge_reads_back_before_it_removes(
        self, damaged: str, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row_map = lay_out(path)
        store(path, row_map, 0)
        real = merge_module._write_index

        def damage_too(target: h5py.File, *rest: Any) -> None:
            real(target, *rest)
            rows = target[damaged][...]
            rows["src"][2] += 1
            target[damaged][...] = rows

        monkeypatch.setattr(merge_module, "_write_index", damage_too)
        before = path.read_bytes()
        name = f"/traces of {KEYS[0]}" if "traces" in damaged else damaged
        with pytest.raises(HpcmoeError, match=f"{name} does not read back as written"):
            merge(path)
        assert path.read_bytes() == before
        assert len(ResultPaths(path).spooled()) == 1


class TestReader:
    def test_follows_a_sweep(self, path: Path) -> None:
        row_map = lay_out(path)
        with open_results(path) as results:
            store(path, row_map, 5)
            results.refresh()
            assert results.runs["status"][5] == "ok"
            assert_same_traces(results.traces(5), 5)
            assert results.config(-1) == {"run": 5}
            merge(path)
            results.refresh()
            assert_same_traces(results.traces(5), 5)
            assert "1 ok" in repr(results)

    def test_names_runs_that_are_not_there(self, path: Path) -> None:
        lay_out(path)
        with open_results(path) as results:
            with pytest.raises(InputError, match=f"no such run.*allowed: {KEYS[0]}"):
                results.ranks(f"{KEYS[0]}x")
            with pytest.raises(InputError, match="allowed: 0 to 5"):
                results.ranks(6)
            with pytest.raises(InputError, match="this run is not finished"):
                results.ranks(0)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda a: a.__setitem__("filetype", "other"), "not written by an hpcmoe sweep.*'other'"),
            (lambda a: a.__delitem__("filetype"), "not written by an hpcmoe sweep"),
            (lambda a: a.__setitem__("format_version", [3, 0]), "use a newer hpcmoe.*'3.0'.*allowed: 2.x"),
            (lambda a: a.__setitem__("format_version", [1, 0]), "use the hpcmoe that wrote it"),
        ],
    )
    def test_refuses_other_formats(
        self, change: Callable[[h5py.AttributeManager], None], message: str, path: Path
    ) -> None:
        lay_out(path)
        with h5py.File(path, "r+") as file:
            change(file.attrs)
        with pytest.raises(InputError, match=message):
            open_results(path)

    def test_newer_minor_version_is_read(self, path: Path) -> None:
        lay_out(path)
        with h5py.File(path, "r+") as file:
            file.attrs["format_version"] = [2, 7]
        with open_results(path) as results:
            assert len(results.runs) == 6

    def test_refuses_what_is_not_hdf5(self, path: Path) -> None:
        with pytest.raises(InputError, match="no such results file"):
            open_results(path)
        path.write_text("text")
        with pytest.raises(InputError, match="not an HDF5 file, or damaged"):
            open_results(path)

    def test_reads_a_file_that_another_process_has_locked(self, path: Path) -> None:
        lay_out(path)
        with open(path, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(BlockingIOError):
                h5py.File(path, "r", locking=True)
            with open_results(path) as results:
                assert len(results.runs) == 6

    def test_reads_a_file_that_is_open_in_this_process(self, path: Path) -> None:
        lay_out(path)
        with h5py.File(path, "r"), open_results(path) as results:
            assert len(results.runs) == 6
