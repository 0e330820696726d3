"""A study file from the command line: init, check, plan, list, run, sweep, resume, status, reader, report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hpcmoe
from hpcmoe import catalog, cli
from hpcmoe.store import open_results
from hpcmoe.sweep import app

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake

TEXT = """\
title: Mine
models: [flash]
topologies: [t6, t1]
strategies: [tp2ep16, tp2ep4]
collectives:
  - ring_direct
  - {name: own_rings, all_reduce: [ring, ring], all_to_all: [ring, ring]}
networks: [ib_cc0]
layers: 1
set: {u_target: 0.9}
variants:
  tokens: [128, 64]
exclude: ['*/t1/*/own_rings/*']
"""
KEY = "flash/t6/tp2ep4/own_rings/ib_cc0/tokens=64"


@pytest.fixture(autouse=True)
def clean_catalog() -> Iterator[None]:
    yield
    catalog.define({}, Path())


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(TEXT)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def sweep(path: Path, *arguments: str | Path) -> int:
    return app.main([str(path), *map(str, arguments), "--quiet"], fake.fake_simulator())


class TestBefore:
    def test_init_then_check(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        code, text = shown(capsys, "study", "init")
        assert code == 0
        assert text.startswith("study.yaml: an example that runs as it stands")
        code, text = shown(capsys, "study", "check", "study.yaml")
        assert code == 0
        assert "core-hours" in text
        assert "first keys:" in text
        assert shown(capsys, "study", "init")[0] == 2

    def test_check_says_what_there_is(self, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = shown(capsys, "study", "check", study, "--json", "-")
        found = json.loads(text)
        assert code == 0
        assert (found["runs"], found["left_out"], found["title"]) == (12, 4, "Mine")
        assert found["levels"]["topology"] == ["t6", "t1"]
        assert found["levels"]["tokens"] == ["128", "64"]
        assert found["idle"] == ["tp2ep4 on t6: 8 of 32 GPUs", "tp2ep4 on t1: 8 of 32 GPUs"]
        assert found["first_keys"][0] == "flash/t6/tp2ep16/ring_direct/ib_cc0/tokens=128"
        assert found["core_hours"] > 0

    def test_what_cannot_run_is_found_before_there_is_a_file(
        self, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        study.write_text(
            TEXT.replace("tp2ep4]", "tp3ep4]").replace("all_reduce: [ring,", "all_reduce: [halvingDoubling,")
        )
        code, text = shown(capsys, "study", "check", study)
        assert code == 0  # no run of the few that are built has both levels
        study.write_text(
            TEXT.replace("[tp2ep16, tp2ep4]", "[tp3ep4]").replace(
                "[ring, ring], all", "[halvingDoubling, ring], all"
            )
        )
        code, text = shown(capsys, "sweep", tmp_path / "out.h5", "--study", study)
        assert code == 2
        assert "flash/t6/tp3ep4/own_rings/ib_cc0/tokens=128: " in text
        assert "halvingDoubling needs a power of two" in text
        assert not (tmp_path / "out.h5").exists()

    def test_list_and_plan_and_slurm(self, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = shown(capsys, "list", "--study", study, "*/t1/*")
        assert (code, len(text.splitlines())) == (0, 4)
        found = json.loads(shown(capsys, "plan", "--study", study, "--select", "*/t6/*", "--json", "-")[1])
        assert found["runs"] == 8
        assert found["longest_run"].startswith("flash/t6/")
        assert (
            f"own.h5 --study {study} --quiet"
            in shown(
                capsys, "slurm", "render", "own.h5", "--study", study, "--mpi", "pmi2", "--sweep=--quiet"
            )[1]
        )

    def test_an_array_of_jobs_is_over_the_studys_models(
        self, study: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        study.write_text(TEXT.replace("[flash]", "[pro, flash]"))
        arguments = ("render", "own.h5", "--study", study, "--mpi", "pmi2", "--kind", "array")
        code, text = shown(capsys, "slurm", *arguments)
        assert code == 0
        assert "models=(pro flash)" in text
        assert "#SBATCH --array=0-1" in text

    @pytest.mark.parametrize("option", [("--tokens", "64"), ("--layers", "2"), ("--set", "u_target=0.8")])
    def test_options_that_the_file_says_are_refused(
        self, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
    ) -> None:
        for command in (("sweep", tmp_path / "own.h5"), ("run", KEY)):
            code, text = shown(capsys, *command, "--study", study, *option)
            assert code == 2
            assert f"{option[0]}: the study file says this: change it in {study}" in text

    def test_run_takes_settings_from_the_file(self, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = shown(capsys, "run", "--study", study, KEY, "--json", "-")
        found = json.loads(text)
        assert code == 0
        assert (found["key"], found["tokens"], found["layers"], len(found["ranks"])) == (KEY, 64, 1, 8)
        code, text = shown(capsys, "run", "--study", study, KEY.replace("=64", "=65"))
        assert code == 2
        assert f"no such run in the study (got '{KEY.replace('=64', '=65')}'); allowed: {KEY}, " in text


class TestSweep:
    def test_fills_continues_and_tells(
        self, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "own.h5"
        assert sweep(path, "--study", study) == 0
        with open_results(path) as results:
            assert results.design["study"]["title"] == "Mine"
            assert [factor.name for factor in results.factors][5:] == ["tokens"]
            assert results.runs["key"][0] == "flash/t6/tp2ep16/ring_direct/ib_cc0/tokens=128"
            assert results.runs["tokens"].tolist() == 6 * [128, 64]
            assert results.attrs["tokens"] == 0
        capsys.readouterr()
        assert app.main([str(path), "--study", str(study)], fake.fake_simulator()) == 0
        assert "0 runs done, 12 kept" in capsys.readouterr().err
        assert shown(capsys, "verify", path)[0] == 0
        assert "12 runs, 12 done" in shown(capsys, "status", path)[1]
        assert json.loads(shown(capsys, "plan", path, "--json", "-")[1])["runs"] == 0

    def test_a_part_of_it(self, study: Path, tmp_path: Path) -> None:
        path = tmp_path / "own.h5"
        assert sweep(path, "--study", study, "--select", "*/own_rings/*") == 0
        with open_results(path) as results:
            assert len(results.runs) == 4

    def test_another_study_is_refused(
        self, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "own.h5"
        assert sweep(path, "--study", study) == 0
        study.write_text(TEXT.replace("Mine", "Still mine"))
        assert sweep(path, "--study", study) == 0
        study.write_text(TEXT.replace("0.9", "0.8").replace("exclude", "include"))
        assert sweep(path, "--study", study) == 2
        assert "belongs to another study. Different: settings, include, exclude." in capsys.readouterr().err
        assert sweep(path) == 2
        assert "this results file was made with --study" in capsys.readouterr().err
        assert sweep(tmp_path / "plain.h5", "--select", "flash/t1/tp2ep16/ring_direct/ib_cc0") == 0
        assert sweep(tmp_path / "plain.h5", "--study", study) == 2
        assert "this results file was made without --study" in capsys.readouterr().err

    def test_a_reader_needs_no_study_file(self, study: Path, tmp_path: Path) -> None:
        path = tmp_path / "own.h5"
        assert sweep(path, "--study", study) == 0
        study.unlink()
        catalog.define({}, Path())
        with hpcmoe.open_study(path) as found:
            data = found.xarray()
            assert data.wall_ns.dims[-1] == "tokens"
            assert data.sizes["tokens"] == 2
            assert data.topology.values.tolist() == ["t6", "t1"]
            one = data.sel(
                model="flash", topology="t6", strategy="tp2ep4", collective="own_rings", network="ib_cc0"
            )
            assert float(one.wall_ns.sel(tokens="64")) == found.runs.loc[KEY, "wall_ns"]
            assert found.runs["topology"].cat.categories.tolist() == ["t6", "t1"]


def test_the_real_thing(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Simulated, verified, inspected and compared, without the study file."""
    path = tmp_path / "own.h5"
    study.write_text(
        TEXT.replace("[tp2ep16, tp2ep4]", "[tp2ep4, tp2ep2dp2, tp2ep2pp2]").replace("layers: 1", "layers: 2")
    )
    assert (
        shown(capsys, "sweep", path, "--study", study, "--select", "*/own_rings/*/tokens=64", "--quiet")[0]
        == 0
    )
    study.unlink()
    catalog.define({}, Path())
    assert shown(capsys, "verify", path)[0] == 0
    code, text = shown(capsys, "compare", path, KEY, KEY.replace("tp2ep4", "tp2ep2dp2"))
    assert code == 0
    assert "strategy" in text
    code, text = shown(capsys, "inspect", path, KEY.replace("tp2ep4", "tp2ep2pp2"))
    assert code == 2
    assert "an inspection follows one serial chain that all ranks run" in text
