"""``hpcmoe crosscheck``: what it says when the backends agree, and when they do not."""

from types import SimpleNamespace

import numpy as np
import pytest

from hpcmoe import runner
from hpcmoe.cli import main
from hpcmoe.commands import crosscheck

SELECT = ["crosscheck", "--select", "flash/t6/tp2ep16/ring_direct/ib_cc0", "--tokens=4"]

FLOW = np.dtype([(name, "i8") for name in crosscheck._FLOW_COLUMNS])
RANK = np.dtype([(name, "i8") for name in crosscheck._RANK_COLUMNS])


def result(completion_times: list[int]) -> SimpleNamespace:
    flows = np.zeros(len(completion_times), dtype=FLOW)
    flows["fct_ns"] = completion_times
    flows["sport"] = np.arange(len(completion_times))
    return SimpleNamespace(flows=flows, ranks=np.zeros(2, dtype=RANK))


def test_equal_results_have_no_divergence() -> None:
    assert list(crosscheck.divergence(result([5, 6]), result([5, 6]))) == []


def test_the_first_divergence_is_shown_with_both_histories() -> None:
    first, second = [100 + i for i in range(20)], [100 + i for i in range(20)]
    second[7], second[9] = 999, 998
    lines = list(crosscheck.divergence(result(first), result(second)))
    assert lines[0].startswith("  first flow that differs: row 7 (src dst sport bytes start_ns fct_ns")
    assert [line for line in lines if line.startswith("  >")] == [
        "  > native        7  0 0 7 0 0 107 0 0 0",
        "  > ns3           7  0 0 7 0 0 999 0 0 0",
    ]
    assert len(lines) == 1 + 2 * 9  # four rows before and after, on both sides


def test_a_missing_row_is_a_divergence() -> None:
    lines = list(crosscheck.divergence(result([5, 6, 7]), result([5, 6])))
    assert "row 2" in lines[0]
    assert lines[-1].endswith("no more rows")


def test_ranks_are_compared_too() -> None:
    first, second = result([5]), result([5])
    second.ranks["wall_ns"][1] = 1
    assert next(iter(crosscheck.divergence(first, second))).startswith("  first rank that differs: row 1")


@pytest.mark.ns3
def test_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SELECT) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("equal     flash/t6/tp2ep16/ring_direct/ib_cc0: ")
    assert lines[-1] == "1 of 1 runs agree in every flow and rank"


@pytest.mark.ns3
def test_disagreement(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With another payload on one side every flow takes another time."""
    run = runner.run

    def skewed(scenario: object, *, backend: str, **options: object) -> object:
        if backend == "ns3":
            scenario.network["payload_bytes"] = 500  # type: ignore[attr-defined]
        return run(scenario, backend=backend, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run", skewed)
    assert main(SELECT) == 1
    out = capsys.readouterr().out
    assert out.startswith("DIFFERENT flash/t6/")
    assert "first flow that differs: row 0" in out
    assert "0 of 1 runs agree" in out
