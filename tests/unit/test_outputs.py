"""Output files are checked before a simulation, and Ctrl-C works while the program starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpcmoe import cli, runner
from hpcmoe.commands import outputs
from hpcmoe.errors import HpcmoeError, InputError


def refuse(message: str, written: dict[str, str | None], inputs: tuple[str, ...] = ()) -> None:
    with pytest.raises(HpcmoeError, match=message) as error:
        outputs.check(written, inputs)
    assert error.value.exit_code == 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_good_outputs_leave_no_trace(folder: Path) -> None:
    (folder / "old").write_text("kept")
    outputs.check({"a": "new", "b": "old", "c": None, "d": "-", "e": "/dev/null", "f": "/dev/null"}, ["in"])
    assert [file.name for file in folder.iterdir()] == ["old"]
    assert (folder / "old").read_text() == "kept"


def test_outputs_that_cannot_be_written(folder: Path) -> None:
    refuse("none/x: cannot write: No such file", {"a": "none/x"})
    refuse("cannot write: Is a directory", {"a": str(folder)})
    refuse("not a file name", {"a": "x\0y"})


def test_outputs_that_meet(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "in")
    refuse("^in: --fct: would overwrite an input file", {"--fct": "link"}, ("in",))
    refuse(
        "PFC_OUTPUT_FILE: the same file as FCT_OUTPUT_FILE",
        {"FCT_OUTPUT_FILE": "x", "PFC_OUTPUT_FILE": "./x"},
    )


def test_folders(folder: Path) -> None:
    outputs.check_folder(folder / "a" / "b")
    assert not (folder / "a").exists()
    (folder / "file").write_text("")
    with pytest.raises(HpcmoeError, match="cannot write"):
        outputs.check_folder(folder / "file" / "b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(folder: Path) -> None:
    folder.chmod(0o500)
    with pytest.raises(InputError, match="no permission"):
        outputs.check_folder(folder)


@pytest.fixture
def network(folder: Path) -> list[str]:
    """Two flows through a switch, of which one loses every packet, as a command."""
    (folder / "t.txt").write_text(
        "5 1 4\n4\n0 4 1Gbps 1us 0.999\n1 4 1Gbps 1us 0\n2 4 1Gbps 1us 0\n3 4 1Gbps 1us 0\n"
    )
    (folder / "c.txt").write_text(
        "CC_MODE 0 ENABLE_QCN 0 L2_ACK_INTERVAL 1 L2_CHUNK_SIZE 4000 TOPOLOGY_FILE t.txt"
    )
    (folder / "f.txt").write_text("0 2 3 5000\n0 0 1 50000\n")
    return [
        "flows",
        "--network-configuration=c.txt",
        "--flows=f.txt",
        "--fct=out.txt",
        "--set",
        "watchdog_ns=1000000",
    ]


def test_finished_flows_are_written_beside_stuck_ones(
    network: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(network) == 3
    assert "1 of 2 flows never finish: flow 1 (0 -> 1, 50000 bytes)" in capsys.readouterr().err
    (line,) = (folder / "out.txt").read_text().splitlines()
    assert line.split()[4] == "5000"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--until-ns", str(2**62 + 1)], "--until-ns: bad time"),
        (["--fct", "f.txt"], "f.txt: --fct: would overwrite an input file"),
        (["--fct", "none/out.txt"], "none/out.txt: cannot write"),
        (["--set", "peak_perf_tflops=5"], "peak_perf_tflops: a system parameter"),
        (["--set", "expert_skew=1"], "expert_skew: a workload parameter: flows has the network alone"),
        (["--set", "ecn_enabled=1"], "c.txt: KMIN_MAP, KMAX_MAP, PMAX_MAP: marking is on"),
    ],
)
def test_flows_are_refused_before_they_run(
    extra: list[str], message: str, network: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(runner, "run_flows", lambda *a, **k: pytest.fail("it ran"))
    assert cli.main([*network, *extra]) == 2
    assert message in capsys.readouterr().err


# A module search that sends Ctrl-C to its own process when the program imports numpy.
_INTERRUPTS_AT_NUMPY = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["hpcmoe", "run", "flash/t6/tp8ep4/ring_direct/ib_cc0"]
runpy.run_module("hpcmoe", run_name="__main__")
"""


def test_an_interrupt_while_importing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTS_AT_NUMPY], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parent.parent)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "hpcmoe: interrupted\n")
