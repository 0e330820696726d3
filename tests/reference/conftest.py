"""Reference cases: one folder of input files with the numbers that upstream gave for it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INPUTS = ("system.json", "memory.json", "logical.json", "config.txt", "topology.txt")


@pytest.fixture
def unpack(data: Path, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Lays a case out in ``tmp_path`` as upstream wants it and returns what is expected of it."""

    def lay_out(case: str) -> dict[str, Any]:
        folder = data / case
        for name in INPUTS:
            shutil.copy(folder / name, tmp_path / name)
        expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
        for rank in range(len(expected["ranks"])):  # every rank runs the same trace
            shutil.copy(folder / "trace.et", tmp_path / f"et.{rank}.et")
        return expected

    return lay_out
