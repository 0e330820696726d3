"""hpcmoe pack: a small copy that says the same, but for the traces."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import hpcmoe
from hpcmoe import cli
from hpcmoe.store import open_results
from hpcmoe.store.verify import verify
from hpcmoe.sweep import main


def test_a_copy_has_all_but_the_traces(small_study: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.h5"
    assert cli.main(["pack", str(small_study), "-o", str(copy)]) == 0
    assert copy.stat().st_size < small_study.stat().st_size / 2
    with open_results(small_study) as old, open_results(copy) as new:
        for table in ("runs",):
            np.testing.assert_array_equal(getattr(old, table), getattr(new, table))
        key = old.runs["key"][3]
        assert new.config(key) == old.config(key)
        np.testing.assert_array_equal(new.ranks(key), old.ranks(key))
        np.testing.assert_array_equal(new.links(key), old.links(key))
    verdict = verify(copy)
    assert (verdict.checked, verdict.faults) == (20, ())
    with h5py.File(copy) as file:
        assert file["/traces/fct"].shape == (0,)
        assert file.attrs["traces"] == 0
    assert hpcmoe.open_study(copy).runs.equals(hpcmoe.open_study(small_study).runs)
    assert cli.main(["report", str(copy), "-o", str(tmp_path / "report"), "--no-figures"]) == 0


def test_nothing_is_overwritten(
    small_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.h5"
    copy.write_text("mine")
    assert cli.main(["pack", str(small_study), "-o", str(copy)]) == 2
    assert "copy.h5: exists already" in capsys.readouterr().err
    assert copy.read_text() == "mine"
    assert cli.main(["pack", str(small_study), "-o", str(tmp_path / "no" / "copy.h5")]) == 4
    assert "No such file or directory; nothing was changed" in capsys.readouterr().err


def test_a_copy_cannot_be_continued(
    small_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.h5"
    assert cli.main(["pack", str(small_study), "-o", str(copy)]) == 0
    with open_results(copy) as results:
        keys = results.runs["key"].tolist()
    arguments = ["--no-traces", "--tokens", "64", "--layers", "3", "--quiet", "--select", *keys]
    assert main([str(copy), *arguments]) == 2
    assert "can be read but not continued" in capsys.readouterr().err
