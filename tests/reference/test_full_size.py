"""Cases of the study's size against upstream. Two run always; all twelve take about 20 s of CPU time."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import full_size

ALWAYS = ("t6_tp2_ring", "t4_tp2_ring")
MARKS = (pytest.mark.slow, pytest.mark.benchmark)


def test_there_are_twelve_cases() -> None:
    assert len(full_size.CASES) == 12
    assert set(ALWAYS) < set(full_size.CASES)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in ALWAYS else MARKS) for case in full_size.CASES]
)
def test_every_rank_to_the_nanosecond(case: str) -> None:
    outcome = full_size.run_case(case)
    assert outcome.wrong == []
    assert outcome.packet_hops == outcome.expected_hops
