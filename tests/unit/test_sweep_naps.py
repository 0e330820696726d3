"""How long a rank sleeps while it waits in MPI_Init."""

from pathlib import Path

import pytest

from hpcmoe.sweep import comm


@pytest.mark.skipif(not comm.TIMER_SLACK.exists(), reason="not on this system")
def test_naps_are_slow_for_as_long_as_asked() -> None:
    before = comm.TIMER_SLACK.read_text()
    with comm.slow_naps():
        assert int(comm.TIMER_SLACK.read_text()) == comm.NAP_NS != int(before)
    assert comm.TIMER_SLACK.read_text() == before


def test_other_systems_have_nothing_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm, "TIMER_SLACK", tmp_path / "none")
    with comm.slow_naps():
        assert list(tmp_path.iterdir()) == []
