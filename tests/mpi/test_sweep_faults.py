"""Faults at seeded instants: after continuing, every run is there once and the file is the undisturbed one.

benchmarks/faults.py does the same more often; docs/sweep.md has its counts.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import faults
import sweep_tools as tools

WITHOUT_MPI = importlib.util.find_spec("mpi4py") is None or tools.mpiexec() is None
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.skipif(WITHOUT_MPI, reason="mpi4py or mpiexec is missing"),
]
SEEDS = range(5)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> faults.Undisturbed:
    return faults.undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", faults.FAULTS)
def test_nothing_is_lost(kind: str, seed: int, expected: faults.Undisturbed) -> None:
    if kind == "disk full" and not faults.can_mount():
        pytest.skip("this process may not mount a tmpfs")
    trial = faults.trial(kind, seed, expected)
    assert trial.good, trial
    assert trial.seconds_to_end < 30
    # A sweep that had just ended before the fault gives 0.
    if kind in ("SIGTERM", "SIGUSR1"):
        assert trial.exit_code in (0, 85, -signal.SIGTERM, 128 + signal.SIGTERM), trial
    if kind == "disk full":
        assert trial.exit_code in (0, 4), trial
        assert trial.exit_code == 0 or "No space left on device" in trial.output
