"""Batch scripts against the committed ones; the commands around them with Slurm faked at the process edge."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpcmoe import cli
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.sweep import slurm
from hpcmoe.sweep.slurm import KINDS, Job, job_states, known_jobs, mpi_plugin, render, submit


@pytest.mark.parametrize("kind", KINDS)
def test_rendered_script_is_the_committed_one(kind: str, checkout: Path) -> None:
    golden = checkout / "slurm" / f"{kind}.sbatch"
    accept = f"to accept it: hpcmoe slurm render study.h5 --kind {kind} --mpi pmi2 > {golden}"
    assert render(Job(kind=kind)) == golden.read_text(), accept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mpi", slurm.MPI_CHOICES)
def test_scripts_are_sound_shell(kind: str, mpi: str, tmp_path: Path) -> None:
    arguments = ("--layers", "1", "--set", "u_target=0.9") if kind == "array" else ("--select", "*/t6/*")
    job = Job(kind, "a b/it's.h5", mpi=mpi, arguments=arguments, setup=("module load x",))
    script = tmp_path / "job.sh"
    script.write_text(render(job))
    subprocess.run(["bash", "-n", script], check=True)
    shell = shutil.which("shellcheck")
    if shell:
        subprocess.run([shell, "--severity=warning", script], check=True)


def test_options_of_the_user_win() -> None:
    text = render(Job(options={"time": "1:00:00", "partition": "fast", "exclusive": ""}))
    assert "#SBATCH --time=1:00:00\n" in text
    assert "#SBATCH --partition=fast\n#SBATCH --exclusive\n" in text
    assert text.count("--time=") == 1


def test_array_has_a_file_per_model() -> None:
    text = render(Job("array", "out/study.h5"))
    assert 'hpcmoe.sweep out/study-"$model".h5 --select "$model/*" &' in text
    assert "#SBATCH --array=0-3\n" in text
    assert "models=(flash k3 glm pro)" in text
    parts = " ".join(f"out/study-{model}.h5" for model in ("flash", "k3", "glm", "pro"))
    assert f"echo 'when all tasks are done: hpcmoe join out/study.h5 {parts}'; fi\nexit" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "kind: unknown kind of job .*'other'.*allowed: plain, requeue, array"),
        ({"mpi": "pmi1"}, "--mpi: unknown MPI plug-in .*allowed: pmi2, pmix, none"),
        ({"ranks": 0}, "--ranks: bad number of ranks"),
        ({"time_limit": "soon"}, "bad time limit"),
        ({"time_limit": "1"}, "--time: shorter than the warning before its end .*more than 120 s"),
        ({"kind": "array", "arguments": ("--select", "x")}, "an array selects by model itself"),
    ],
)
def test_impossible_jobs_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        render(replace(Job(), **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("library", "plugin"),
    [
        ("MPICH Version:      5.0.2", "pmi2"),
        ("Intel(R) MPI Library 2021.11 for Linux* OS", "pmi2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI", "pmix"),
    ],
)
def test_plugin_fits_the_mpi(library: str, plugin: str) -> None:
    assert mpi_plugin(library) == plugin


def test_unknown_mpi_is_said() -> None:
    with pytest.raises(HpcmoeError, match="cannot tell which srun --mpi fits this MPI .Other 1.; name one"):
        mpi_plugin("Other 1")


class FakeSlurm:
    """Answers sbatch and squeue, and remembers what was asked."""

    def __init__(self, **answers: str) -> None:
        self.answers, self.asked = answers, []  # type: ignore[var-annotated]

    def __call__(self, arguments: Sequence[str]) -> str:
        self.asked.append(list(arguments))
        return self.answers[arguments[0]]


def test_submitted_jobs_are_remembered(tmp_path: Path) -> None:
    file, script = tmp_path / "study.h5", tmp_path / "job.sbatch"
    fake = FakeSlurm(sbatch="77;cluster\n")
    assert submit(Job(file=str(file)), script, fake) == "77"
    fake.answers["sbatch"] = "78\n"
    assert submit(Job(file=str(file)), script, fake) == "78"
    assert known_jobs(file) == ["77", "78"]
    assert fake.asked == [["sbatch", "--parsable", str(script)]] * 2
    assert script.read_text() == render(Job(file=str(file)))


def test_answer_without_a_job_id_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(HpcmoeError, match="cannot read a job id from what sbatch says: 'hello"):
        submit(Job(file=str(tmp_path / "a.h5")), tmp_path / "s", FakeSlurm(sbatch="hello\n"))
    assert known_jobs(tmp_path / "a.h5") == []


def test_states_of_jobs_and_array_tasks() -> None:
    lines = (
        "77|RUNNING|1:02|4:00:00|2|n[1-2]\n78_1|PENDING|0:00|4:00:00|1|(Resources)\n9|RUNNING|1|2|3|other\n"
    )
    fake = FakeSlurm(squeue=lines)
    states = job_states(["77", "78"], fake)
    assert [(row["job"], row["state"], row["reason"]) for row in states] == [
        ("77", "RUNNING", "n[1-2]"),
        ("78_1", "PENDING", "(Resources)"),
    ]
    assert job_states([], fake) == []
    assert len(fake.asked) == 1


def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm, "mpi_library", lambda: "Open MPI v5")
    assert cli.main(["slurm", "render", "x.h5", "--sweep", "--layers 1", "--option", "qos=low"]) == 0
    text = capsys.readouterr().out
    assert "--mpi=pmix" in text
    assert "x.h5 --layers 1 &" in text
    assert "#SBATCH --qos=low" in text

    fake = FakeSlurm(sbatch="5\n", squeue="5|RUNNING|1:00|2:00|1|n1\n")
    monkeypatch.setattr(slurm.submit, "__defaults__", (fake,))
    monkeypatch.setattr(slurm.job_states, "__defaults__", (fake,))
    file = tmp_path / "x.h5"
    assert cli.main(["slurm", "submit", str(file), "--kind", "plain"]) == 0
    assert "job 5 submitted" in capsys.readouterr().out
    assert cli.main(["slurm", "status", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "submitted: 5" in shown
    assert "RUNNING" in shown


def test_without_slurm_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["slurm", "submit", str(tmp_path / "x.h5"), "--mpi", "pmi2"]) == 1
    assert "sbatch is not here: this has to run on a Slurm cluster" in capsys.readouterr().err


def test_failure_of_slurm_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "sbatch"
    script.write_text("#!/bin/sh\necho no such partition >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(HpcmoeError, match="failed: no such partition"):
        slurm.call([str(script)])
