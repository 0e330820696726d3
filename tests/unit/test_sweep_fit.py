"""The fit of the cost model, on times that follow it."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hpcmoe import design
from hpcmoe.sweep import app, cost

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake


@pytest.fixture(scope="module")
def fit_cost(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fit_cost", checkout / "benchmarks" / "fit_cost.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_recovers_times_that_follow_the_model(fit_cost: ModuleType) -> None:
    keys = design.all_runs()
    hops = [cost.packet_hops(key, 4096, None) for key in keys]
    slow = {"model=k3": 0.2, "network=roce_hpcc": 3.0, "model=glm,collective=dbt_direct": 2.0}
    seconds = [
        2.0 + count / 2e7 * float(np.prod([slow.get(name, 1.0) for name in cost.term_names(key)]))
        for key, count in zip(keys, hops, strict=True)
    ]
    fitted = fit_cost.fit(keys, hops, seconds)
    ratios = [
        fit_cost.predicted(key, count, fitted) / second
        for key, count, second in zip(keys, hops, seconds, strict=True)
    ]
    # The penalty draws factors a little towards 1, and base_s is one of fifty values.
    assert np.max(np.abs(np.log(ratios))) < 0.02


def test_levels_that_were_not_run_keep_one(fit_cost: ModuleType) -> None:
    keys = design.select(["flash/t1/*/ring_direct/*"])
    fitted = fit_cost.fit(
        keys, [1e6 * (1 + i) for i in range(len(keys))], [1.0 + i for i in range(len(keys))]
    )
    assert "model=k3" not in fitted["factors"]
    assert all(factor > 0 for factor in fitted["factors"].values())


def test_reads_results_files(
    fit_cost: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.h5"
    assert app.main([str(path), "--select", "flash/t1/*/*/*", "--quiet"], fake.fake_simulator()) == 0
    assert fit_cost.main([str(path)]) == 0
    assert capsys.readouterr().out.startswith("32 runs, ")


def test_packaged_coefficients_are_complete() -> None:
    text = (Path(cost.__file__).with_name("cost.json")).read_text()
    assert json.loads(text) == cost.coefficients()
    assert set(cost.coefficients()) == {"base_s", "hops_per_second", "factors", "fitted_to"}
