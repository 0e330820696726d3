"""Candidates for command lines, and the scripts in the shells that are there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpcmoe import catalog, cli, completion, design, parameters
from hpcmoe.completion import complete


def typed(line: str) -> list[str]:
    """Candidates after a line; a blank at its end begins a new word."""
    return complete([*line.split(), *([""] if not line or line.endswith(" ") else [])])


def test_commands_and_their_actions() -> None:
    assert {"run", "simulate", "et", "import", "sweep", "completion"} <= set(typed(""))
    assert typed("comp") == ["compare", "completion"]
    assert typed("et ") == ["info", "print", "validate"]
    assert typed("slurm st") == ["status"]


def test_options_choices_and_their_values() -> None:
    assert "--layers" in typed("run -")
    assert typed("run --back") == ["--backend"]
    assert typed("run --backend ") == ["native", "ns3"]
    assert typed("simulate --workload-configuration=et --profile s") == ["study"]
    assert typed("sweep out.h5 --retry") == ["--retry-failed"]
    assert typed("slurm render x.h5 --kind p") == ["plain"]


def test_a_word_with_equals_is_whole_or_split_as_in_bash() -> None:
    assert typed("simulate --profile=st") == ["--profile=study"]
    assert complete(["simulate", "--profile", "=", "st"]) == ["study"]
    assert complete(["simulate", "--profile", "="]) == ["upstream", "study"]
    assert typed("run --set ecn_e") == ["ecn_enabled="]
    assert typed("run --set ecn_enabled=") == ["ecn_enabled=true", "ecn_enabled=false"]
    assert complete(["run", "--set", "ecn_enabled", "=", "t"]) == ["true"]
    assert complete(["run", "--set", "a", "=", "b", "flash/t"])[0] == "flash/t1/"


def test_run_keys_part_by_part() -> None:
    assert set(typed("run ")) == {f"{model}/" for model in design.allowed_levels("model")}
    assert typed("run flash/t1/tp2") == ["flash/t1/tp2ep16/"]
    last = typed("run flash/t1/tp2ep16/ring_direct/")
    assert set(last) == {f"flash/t1/tp2ep16/ring_direct/{name}" for name in catalog.names("networks")}
    assert typed("run flash/t1/tp2ep16/ring_direct/ib_cc0/") == []
    assert typed("sweep out.h5 --select k3/t2/") == [f"k3/t2/{name}/" for name in design.STRATEGIES]
    assert typed("inspect x.h5 glm/t6/tp4") == ["glm/t6/tp4ep8/"]


def test_entries_of_the_users_catalog_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    catalog.add("networks", "lab_network", {"title": "ours"})
    assert typed("validate nccl-alltoall --network lab") == ["lab_network"]


def test_names_of_parameters() -> None:
    assert typed("parameters u_") == ["u_target"]
    assert set(typed("parameters u_target ")) == set(parameters.PARAMETERS)


def test_files_are_left_to_the_shell() -> None:
    for line in (
        "report ",
        "et info ",
        "simulate --json ",
        "import somewhere -o ",
        "flows --flows=",
        "run x --tokens 1",
    ):
        assert typed(line) == []


def test_nonsense_has_no_candidates() -> None:
    for line in ("nonsense ", "nonsense --x", "et nonsense ", "run --nonsense=", "completion bash more "):
        assert typed(line) == []


def test_every_command_line_prefix_is_safe() -> None:
    words = [
        "validate",
        "nccl-alltoall",
        "--bytes",
        "1MB",
        "--network",
        "roce_hpcc",
        "--set",
        "a=b",
        "--json",
        "-",
    ]
    for count in range(len(words) + 1):
        complete(words[:count])


@pytest.fixture
def environment(tmp_path: Path, checkout: Path) -> dict[str, str]:
    """Where the shells find a program ``hpcmoe``."""
    program = tmp_path / "hpcmoe"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hpcmoe "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(checkout)}


def shell(name: str, script: str, environment: dict[str, str]) -> list[str]:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    done = subprocess.run([name, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_in_bash(environment: dict[str, str]) -> None:
    lines = shell(
        "bash",
        "source <(hpcmoe completion bash); complete -p hpcmoe; compopt() { :; };"
        'COMP_WORDS=(hpcmoe run flash/t6/tp2); COMP_CWORD=2; _hpcmoe_complete; echo "${COMPREPLY[@]}";'
        'COMP_WORDS=(hpcmoe simulate --profile = st); COMP_CWORD=4; _hpcmoe_complete; echo "${COMPREPLY[@]}";'
        'COMP_WORDS=(hpcmoe report ""); COMP_CWORD=2; _hpcmoe_complete; echo "${#COMPREPLY[@]}"',
        environment,
    )
    assert lines == ["complete -o default -F _hpcmoe_complete hpcmoe", "flash/t6/tp2ep16/", "study", "0"]


def test_in_fish(environment: dict[str, str]) -> None:
    lines = shell(
        "fish",
        "hpcmoe completion fish | source; complete -C 'hpcmoe run flash/t6/tp2'; complete -C 'hpcmoe et v'",
        environment,
    )
    assert lines == ["flash/t6/tp2ep16/", "validate"]


def test_in_zsh(environment: dict[str, str]) -> None:
    """The function with stand-ins for what only a line editor has."""
    lines = shell(
        "zsh",
        'compdef() { echo compdef $@ }; compadd() { echo "$@" }; _files() { echo files };'
        "source <(hpcmoe completion zsh);"
        "words=(hpcmoe run flash/t6/tp2); CURRENT=3; _hpcmoe; words=(hpcmoe et v); _hpcmoe;"
        "words=(hpcmoe report ''); _hpcmoe",
        environment,
    )
    assert lines == ["compdef _hpcmoe hpcmoe", "-Q -S  -- flash/t6/tp2ep16/", "-Q -- validate", "files"]


def test_the_scripts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, script in completion.SCRIPTS.items():
        assert cli.main(["completion", name]) == 0
        assert capsys.readouterr().out == script


def test_candidates_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["__complete", "et", ""]) == 0
    assert capsys.readouterr().out == "info\nprint\nvalidate\n"
