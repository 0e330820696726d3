"""open_study: frames with units, selection, lazily written-out traces, the view over the factors."""

import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

pytest.importorskip("pandas", reason="the extra 'analysis' is not installed")
pytest.importorskip("xarray", reason="the extra 'analysis' is not installed")

import hpcmoe
from hpcmoe.design import FACTORS, all_runs
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.store import layout, open_results
from hpcmoe.study import Study

RING = "flash/t6/tp16ep2/ring_direct/roce_dcqcn"


@pytest.fixture
def study(small_study: Path) -> Iterator[Study]:
    with hpcmoe.open_study(small_study) as opened:
        yield opened


def test_runs_are_a_frame_with_units(study: Study) -> None:
    runs = study.runs
    assert list(runs.index) == study.keys
    assert runs.attrs["units"]["wall_ns"] == "ns"
    assert runs.attrs["help"]["wall_ns"] == "wall time of the bottleneck rank"
    assert list(runs["topology"].cat.categories) == ["t1", "t2", "t3", "t4", "t5", "t6"]
    assert (runs["wall_ns"] == runs["gpu_ns"] + runs["comm_ns"]).all()
    assert runs.groupby("topology", observed=True)["wall_ns"].mean().notna().all()


def test_ranks_and_links_hold_every_row_of_the_file(study: Study, small_study: Path) -> None:
    with open_results(small_study) as results:
        links, ranks = results.links(RING), results.ranks(RING)
        simulated = int(results.runs["simulated_ns"][study.keys.index(RING)])
    assert study.ranks.loc[RING]["wall_ns"].tolist() == ranks["wall_ns"].tolist()
    mine = study.links.loc[RING]
    assert mine["bytes"].tolist() == links["bytes"].tolist()
    assert mine["utilization"].tolist() == pytest.approx((links["busy_ns"] / simulated).tolist())
    assert mine["src_name"].iloc[0] == "gpu0"
    assert len(study.ranks) == 32 * len(study)
    assert study.links.attrs["units"]["busy_ns"] == "ns"


def test_selection_narrows_every_frame(study: Study) -> None:
    chosen = study.select("*/t6/tp16ep2/*", "*/t3/*/ring_direct/roce_dcqcn")
    assert len(chosen) == 3
    assert all("/t6/" in key or "/t3/" in key for key in chosen.keys)
    assert set(chosen.ranks.index.get_level_values("key")) == set(chosen.keys)
    assert len(chosen.select("*/t6/*")) == 2
    with pytest.raises(InputError, match="no run of this file matches"):
        study.select("glm/*")


def test_traces_are_written_out_when_asked_for(study: Study, small_study: Path) -> None:
    with open_results(small_study) as results:
        repeated = [str(row["key"]) for row in results.runs if row["layers_added"] > 0]
        assert repeated
        for key in (repeated[0], RING):
            stored, whole = results.traces(key), results.traces(key, expanded=True)
            traces = study.traces(key)
            assert "fct" not in vars(traces)
            assert traces.count("fct") == len(whole.fct)
            assert traces.fct["start_ns"].tolist() == whole.fct["start_ns"].tolist()
            assert len(traces.repeats) == len(stored.repeats)
            assert sum(len(piece) for piece in traces.pieces("fct")) == traces.count("fct")
    assert traces.fct.attrs["units"]["fct_ns"] == "ns"
    assert list(traces.qlen.columns) == ["time_ns", "src", "dst", "bytes"]
    assert "pause" in traces.pfc.columns


def test_config_is_the_scenario(study: Study) -> None:
    assert study.config(RING)["network"]["cc_mode"] == 1


def test_the_view_over_the_factors_has_nan_where_nothing_ran(study: Study) -> None:
    view = study.xarray()
    assert tuple(view.sizes) == tuple(FACTORS)
    wall = view.wall_ns.sel(dict(zip(FACTORS, RING.split("/"), strict=True)))
    assert float(wall) == study.runs.loc[RING, "wall_ns"]
    assert view.wall_ns.attrs["units"] == "ns"
    assert int(np.isfinite(view.wall_ns).sum()) == len(study)
    assert view.wall_ns.sizes["topology"] == 6


@pytest.fixture
def filling(tmp_path: Path) -> Path:
    """Planned and laid out: one run is done, one failed, a model is not the study's, the rest is missing."""
    path = tmp_path / "study.h5"
    keys = [str(key) for key in all_runs()[:6]]
    factors = {**FACTORS, "model": (*FACTORS["model"], "mine")}
    runs = [layout.RunSpec(key, 1, 2) for key in (*keys, "mine/t1/tp2ep16/ring_direct/ib_cc0")]
    layout.create(path, layout.FileSpec(runs, factors, tokens=4096, layers=1))
    with h5py.File(path, "r+") as file:
        rows = file["/runs"][...]
        rows["status"][:2], rows["wall_ns"][:2], rows["error"][1] = (1, 2), (5, 7), b"stalled"
        file["/runs"][...] = rows
    return path


def test_a_file_that_is_still_filling(filling: Path) -> None:
    with h5py.File(filling, "r+", locking=False) as writer, hpcmoe.open_study(filling) as study:
        assert study.runs["status"].tolist() == ["ok", "failed", *["missing"] * 5]
        assert study.runs["wall_ns"].isna().tolist() == [False, *[True] * 6]
        assert study.runs["error"].iloc[1] == "stalled"
        assert list(study.runs["model"].cat.categories)[-1] == "mine"
        assert len(study.ranks) == 1
        rows = writer["/runs"][...]
        rows["status"][2], rows["wall_ns"][2] = 1, 11
        writer["/runs"][...] = rows
        writer.flush()
        assert study.runs["wall_ns"].count() == 1
        study.refresh()
        assert study.runs["wall_ns"].count() == 2
        view = study.xarray()
        assert view.coords["model"].values.tolist() == ["flash", "mine"]
        assert int((view.status == "missing").sum()) == 4


def test_what_is_missing_is_said(tmp_path: Path, filling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such results file"):
        hpcmoe.open_study(tmp_path / "none.h5")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HpcmoeError, match=r"pip install 'hpcmoe\[analysis\]'"):
        hpcmoe.open_study(filling)


def test_the_package_has_no_other_lazy_names() -> None:
    with pytest.raises(AttributeError, match="open_everything"):
        hpcmoe.open_everything  # noqa: B018
