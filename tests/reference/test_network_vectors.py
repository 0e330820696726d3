"""The network alone, through the command line, against the flow completion files of upstream."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpcmoe.cli import main

FOLDER = Path(__file__).parents[1] / "data" / "network"
VECTORS = [tuple(line.split()) for line in (FOLDER / "INDEX.txt").read_text().splitlines()]
# Lost last packets are never repaired, so these never finish; the reference stopped at 100 ms.
NEVER_FINISH = {"lossy_glob", "drop_cc12"}


def arguments(name: str, flows: str, output: Path) -> list[str]:
    limit = ["--until-ns", "100000000"] if name in NEVER_FINISH else []
    return ["flows", "--network-configuration", f"{name}.cfg", "--flows", flows, "--fct", str(output), *limit]


def test_the_index_lists_every_vector() -> None:
    assert {name for name, _ in VECTORS} == {path.stem for path in FOLDER.glob("*.ref")}
    assert len(VECTORS) == 40


@pytest.mark.parametrize(("name", "flows"), VECTORS, ids=[name for name, _ in VECTORS])
def test_completion_times(name: str, flows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)  # configurations name their topology relative to the working directory
    assert main(arguments(name, flows, tmp_path / "fct.txt")) == 0
    assert (tmp_path / "fct.txt").read_bytes() == (FOLDER / f"{name}.ref").read_bytes()


@pytest.mark.parametrize("name", ["one_cc3", "lossy_cc12", "drop_cc12"])
def test_completion_times_of_a_process(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hpcmoe", *arguments(name, dict(VECTORS)[name], tmp_path / "fct.txt")]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "fct.txt").read_bytes() == (FOLDER / f"{name}.ref").read_bytes()


@pytest.mark.parametrize("name", sorted(NEVER_FINISH))
def test_flows_that_never_finish_are_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER)
    flows = dict(VECTORS)[name]
    code = main(arguments(name, flows, tmp_path / "fct.txt")[:-2])  # no time limit
    total = len((FOLDER / flows).read_text().splitlines())
    stuck = total - len((FOLDER / f"{name}.ref").read_text().splitlines())
    error = capsys.readouterr().err
    assert code == 3
    assert f"{stuck} of {total} flows never finish" in error
