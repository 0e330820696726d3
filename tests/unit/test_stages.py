"""Two runs of pytest, the second of which shows the results of both (tests/stages.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PASSES = "import pytest\ndef test_passes(): pass\n"
OTHERS = PASSES + "def test_fails(): assert 0\ndef test_skipped(): pytest.skip('for a reason')\n"


def run_pytest(checkout: Path, test: Path, option: str, reports: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "pytest", "-c", os.devnull, "-ra", "-p", "no:cacheprovider"]
    line += ["-p", "tests.stages", f"--reports-{option}={reports}", str(test)]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    return subprocess.run(line, env=environment, cwd=test.parent, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("first", "last_line"), [(OTHERS, "1 failed, 2 passed, 1 skipped"), ("import nothing_such", "1 error")]
)
def test_second_run_counts_both(first: str, last_line: str, checkout: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    for name, text in (("test_first.py", first), ("test_second.py", PASSES)):
        (tmp_path / name).write_text(text)
    run_pytest(checkout, tmp_path / "test_first.py", "to", reports)
    second = run_pytest(checkout, tmp_path / "test_second.py", "from", reports)
    assert second.returncode == 1, second.stdout
    assert last_line in second.stdout.splitlines()[-1]
    if first == OTHERS:
        assert "test_first.py:3: AssertionError" in second.stdout
        assert "FAILED test_first.py::test_fails" in second.stdout
        assert "SKIPPED [1] test_first.py:4: for a reason" in second.stdout
