"""The commands of README.md are run by .ci/run; here is what keeps that promise honest."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def readme(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", checkout / ".ci" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["readme"] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text(checkout: Path) -> str:
    return (checkout / "README.md").read_text(encoding="utf-8")


def test_every_block_says_what_it_is(readme: ModuleType, text: str) -> None:
    kinds = {block.kind for block in readme.blocks(text)}
    assert {"sh", "python"} <= kinds


def test_an_unknown_kind_is_refused(readme: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"line 2: a block of kind 'bash'; known kinds: sh, python"):
        readme.blocks("title\n```bash\ntrue\n```\n")


def test_commands_left_to_ci_are_in_ci(readme: ModuleType, text: str, checkout: Path) -> None:
    ci = (checkout / ".ci" / "run").read_text(encoding="utf-8")
    commands = [
        line for block in readme.blocks(text) if block.kind == "sh ci" for line in block.body.split("\n")
    ]
    for command in filter(None, commands):
        assert command in ci.splitlines()


def test_only_cluster_commands_are_left_out(readme: ModuleType, text: str) -> None:
    for block in readme.blocks(text):
        if block.kind == "sh cluster":
            assert re.search(r"\b(srun|sbatch|mpiexec -n \d{2,})\b", block.body), block.line


def test_blocks_run_in_order_and_stop_at_the_first_failure(readme: ModuleType) -> None:
    pairs = (("sh", "X=1"), ("text", "exit 9"), ("python", "print('two')"), ("sh", "echo $X; false\necho no"))
    markdown = "".join(f"```{kind}\n{body}\n```\n" for kind, body in pairs)
    result = subprocess.run(
        ["bash", "-c", readme.script(readme.blocks(markdown))], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert re.findall(r"^(two|1|no)$", result.stdout, re.MULTILINE) == ["two", "1"]
