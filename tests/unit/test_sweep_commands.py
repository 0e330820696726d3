"""hpcmoe status, merge, verify and plan, as typed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import pytest

from hpcmoe import cli, design
from hpcmoe.store import open_results
from hpcmoe.store.paths import ResultPaths
from hpcmoe.sweep import app, cost, forecast

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake
import sweep_tools as tools

SELECT = ("--select", "flash/t1/*/ring_direct/ib_cc0", "--quiet")  # 4 runs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.h5"


def fill(path: Path, *more: str) -> int:
    return app.main([str(path), *SELECT, *more], fake.fake_simulator())


@pytest.fixture
def unmerged(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 4 runs whose traces are in the spool."""
    with monkeypatch.context() as patch:
        patch.setattr(app, "merge", lambda *_a, **_k: None)
        assert fill(path) == 0
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


class TestStatus:
    def test_complete(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(path)
        code, text = shown(capsys, "status", path)
        assert code == 0
        assert text.startswith(f"{path}: 4 runs, 4 done, 0 failed, 0 left\n")
        assert "sweep" not in text

    def test_failed_runs(
        self, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FAKE_FAIL", "*/tp4ep8/*")
        fill(path)
        code, text = shown(capsys, "status", path)
        assert code == 1
        assert "failed: flash/t1/tp4ep8/ring_direct/ib_cc0: " in text
        code, text = shown(capsys, "status", path, "--json", "-")
        found = json.loads(text)
        assert (code, found["ok"], found["failed"], found["missing"], found["sweep"]) == (1, 3, 1, 0, None)
        assert "stuck" in found["failures"]["flash/t1/tp4ep8/ring_direct/ib_cc0"]

    def test_waiting_for_merge(self, unmerged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "4 runs wait in the spool: 'hpcmoe merge' completes" in shown(capsys, "status", unmerged)[1]

    def test_copied_without_its_spool(
        self, unmerged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = tmp_path / "copy.h5"
        copy.write_bytes(unmerged.read_bytes())
        code, text = shown(capsys, "status", copy)
        assert code == 0
        assert "4 finished run(s) lack their traces (file copied without its .spool folder?)" in text
        assert fill(copy) == 0
        assert "4 finished run(s) are done again: their traces are neither" in capsys.readouterr().err
        assert shown(capsys, "verify", copy)[0] == 0

    def test_while_it_is_written(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with tools.start(0, path, "--select", "glm/t1/*/*/*", FAKE_SECONDS="0.7") as process:
            live = ResultPaths(path).live
            try:
                tools.wait_until(lambda: live.exists() and bool(tools.finished(path)), "a finished run")
                time.sleep(2.2)
                text = shown(capsys, "status", path)[1]
                found = json.loads(shown(capsys, "status", path, "--json", "-")[1])
            finally:
                process.kill()
                process.communicate()
        assert "running since 2" in text
        assert f"process {process.pid} on" in text
        assert "1 of 1 ranks at work" in text
        [work] = found["sweep"]["working"]
        assert work["rank"] == 0
        assert "    rank 0 " in text
        assert work["run"].startswith("glm/t1/")
        assert found["sweep"]["runs_per_hour"] > 0
        assert found["missing"] > 0
        assert found["predicted_cpu_seconds_left"] > 0
        assert "no sweep is running; the same command continues" in shown(capsys, "status", path)[1]

    def test_no_file(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for command in ("status", "merge", "verify"):
            assert shown(capsys, command, path) == (2, f"hpcmoe: error: {path}: no such results file\n")
        assert list(path.parent.iterdir()) == []

    def test_torn_copy(self, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(path)
        copy = tmp_path / "copy.h5"
        copy.write_bytes(path.read_bytes()[:-1000])
        for command in ("status", "merge", "verify"):
            code, text = shown(capsys, command, copy)
            assert code == 2
            assert "not an HDF5 file, or damaged" in text
            assert text.count("\n") == 1


class TestMerge:
    def test_takes_the_spool_over(self, unmerged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = shown(capsys, "merge", unmerged)
        assert code == 0
        assert "traces of 4 run(s) taken over" in text
        assert shown(capsys, "merge", unmerged) == (0, f"{unmerged}: nothing to merge\n")
        assert not ResultPaths(unmerged).spool.exists()
        with open_results(unmerged) as results:
            assert len(results.traces(0).fct) > 0

    def test_damaged_spool_is_named(self, unmerged: Path, capsys: pytest.CaptureFixture[str]) -> None:
        damaged = min(ResultPaths(unmerged).spooled())
        damaged.write_bytes(b"PK nothing")
        before = unmerged.read_bytes()
        code, text = shown(capsys, "merge", unmerged)
        assert code == 1
        assert f"{damaged}: damaged" in text
        assert unmerged.read_bytes() == before
        assert len(ResultPaths(unmerged).spooled()) == 4
        damaged.unlink()
        assert fill(unmerged) == 0
        assert shown(capsys, "verify", unmerged)[0] == 0


class TestVerify:
    def test_sound(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(path)
        expected = f"{path}: 4 of 4 runs checked, 0 missing\n  no fault found\n"
        assert shown(capsys, "verify", path) == (0, expected)

    def test_fault_is_named_reset_and_done_again(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fill(path)
        before = tools.datasets(path)
        with h5py.File(path, "r+") as file:
            rows = file["/ranks"][...]
            rows["wall_ns"][5] += 1
            file["/ranks"][...] = rows
        key = str(design.select(SELECT[1:2])[1])
        code, text = shown(capsys, "verify", path)
        assert code == 1
        assert f"  {key}: the checksum of its rows is wrong\n1 run(s) to do again" in text
        found = json.loads(shown(capsys, "verify", path, "--json", "-")[1])
        assert found["redo"] == [key]
        assert shown(capsys, "verify", "--reset", path)[0] == 1
        assert fill(path) == 0
        assert tools.datasets(path) == before
        assert shown(capsys, "verify", path)[0] == 0


class TestForecast:
    def test_longest_first_on_few_ranks(self) -> None:
        assert forecast.makespan_s([3.0, 3.0, 2.0, 2.0, 2.0], 2) == 7.0
        assert forecast.makespan_s([3.0, 3.0, 2.0, 2.0, 2.0], 1) == 12.0
        assert forecast.makespan_s([5.0, 1.0], 9) == 5.0
        assert forecast.makespan_s([], 4) == 0.0

    def test_efficiency(self) -> None:
        assert forecast.forecast([4.0, 4.0, 4.0, 4.0], 4) == forecast.Forecast(4, 4.0, 1.0)
        assert forecast.forecast([4.0, 4.0, 4.0, 4.0], 8) == forecast.Forecast(8, 4.0, 0.5)

    def test_useful_ranks(self) -> None:
        assert forecast.useful_ranks([1.0] * 10) == 10
        assert forecast.useful_ranks([100.0, *[1.0] * 100]) == 2
        assert forecast.useful_ranks([1.0] * 5000) == 2500  # two rounds, as with 4096


class TestPlan:
    def plan(self, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
        code, text = shown(capsys, "plan", *arguments, "--json", "-")
        assert code == 0
        found: dict[str, Any] = json.loads(text)
        return found

    def test_study(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = self.plan(capsys)
        assert found["runs"] == 768
        rows = {row["ranks"]: row for row in found["ranks"]}
        assert sorted(rows) == [2**power for power in range(13)]
        assert rows[1]["makespan_s"] == pytest.approx(3600 * found["core_hours"])
        assert rows[4096]["makespan_s"] == pytest.approx(found["longest_run_s"])
        spans = [rows[ranks]["makespan_s"] for ranks in sorted(rows)]
        assert spans == sorted(spans, reverse=True)
        costs = [cost.predicted_cost(key, 4096, None) for key in design.all_runs()]
        useful = found["useful_ranks"]
        assert forecast.makespan_s(costs, useful) <= 1.05 * spans[-1] < forecast.makespan_s(costs, useful - 1)

    def test_text(self, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ("--select", "flash/t6/*", "--ranks", "100", "--layers", "2")
        useful = self.plan(capsys, *asked)["useful_ranks"]
        assert 1 < useful <= 32
        text = shown(capsys, "plan", *asked)[1]
        assert text.startswith("32 runs, ")
        assert "<- asked for" in text
        assert f"More than {useful} ranks shorten it by less than 5 %" in text

    def test_what_a_file_lacks(
        self, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FAKE_FAIL", "*/tp4ep8/*")
        fill(path)
        assert self.plan(capsys, path)["runs"] == 1
        monkeypatch.delenv("FAKE_FAIL")
        fill(path, "--retry-failed")
        assert shown(capsys, "plan", path)[1].startswith("0 runs, 0.0 core-hours")

    def test_wrong_selection(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = shown(capsys, "plan", "--select", "x/*")
        assert code == 2
        assert "no run matches" in text


class TestCost:
    @pytest.fixture
    def factors(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
        factors: dict[str, float] = {}
        fitted = {"base_s": 1.0, "hops_per_second": 1e6, "factors": factors, "fitted_to": "a test"}
        monkeypatch.setattr(cost, "coefficients", lambda: fitted)
        return factors

    def test_factors_multiply(self, factors: dict[str, float]) -> None:
        key = design.RunKey.parse("k3/t1/tp16ep2/ring_direct/ib_cc0")
        plain = cost.predicted_cost(key, 64, 6) - 1.0
        assert plain == pytest.approx(cost.packet_hops(key, 64, 6) / 1e6)
        factors |= {"model=k3": 2.0, "model=k3,collective=ring_direct": 0.25, "model=glm": 100.0}
        assert cost.predicted_cost(key, 64, 6) == pytest.approx(1.0 + plain / 2)

    @pytest.mark.parametrize(
        ("key", "tokens", "layers", "simulated_hops"),
        [
            ("flash/t3/tp2ep16/dbt_direct/roce_dcqcn", 64, 4, 1671168),
            ("k3/t1/tp16ep2/ring_direct/roce_dcqcn", 64, 6, 7360512),
            ("flash/t6/tp4ep8/ring_direct/ib_cc0", 256, 8, 10788864),
        ],
    )
    def test_counted_hops_are_near_the_simulated(
        self, key: str, tokens: int, layers: int, simulated_hops: int
    ) -> None:
        """Simulated counts are RunResult.packet_hops of the same runs; a part of a packet is not counted."""
        counted = cost.packet_hops(design.RunKey.parse(key), tokens, layers)
        assert counted == pytest.approx(simulated_hops, rel=0.15)

    def test_every_run_of_the_study_has_a_cost(self) -> None:
        keys = [*design.all_runs(), design.RunKey.parse("glm/t3/tp2ep16/halving_doubling_ring/ib_cc0")]
        assert all(0 < cost.predicted_cost(key, 4096, None) < 1e6 for key in keys)
        assert {factor for term in cost.TERMS for factor in term} == set(design.FACTORS)
