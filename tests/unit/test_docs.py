"""What README.md and docs/ tell the reader to type is run by .ci/docs.py; here is what keeps that honest."""

import argparse
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hpcmoe.cli import build_parser
from hpcmoe.parameters import PARAMETERS
from hpcmoe.sweep import arguments as sweep_arguments

# All reasons why a block may be left out. A new one is a decision, and so is a longer list.
REASONS = {
    ".ci/run does it",
    ".ci/run does it with the commands of README.md",
    "./run-tests cpp builds the same in other folders",
    "builds a C++ program against ns-3; tests/ns3 does",
    "builds an extension; ./run-tests builds the same",
    "compiles once more what the commands above have compiled",
    "installs system packages, as root",
    "needs a Slurm cluster",
    "needs a cluster's modules",
    "needs a parallel HDF5; .ci/build-h5py-mpi does it on Debian, and ./run-tests hdf5 tests it",
    "needs an extension built with ns-3; tests/ns3 runs both backends",
    "needs conda",
    "needs your files; docs/your-*.md have some and are run",
}
UNRUN_AT_MOST = 16


@pytest.fixture(scope="module")
def docs(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_runner", checkout / ".ci" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_runner"] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(checkout: Path) -> dict[str, str]:
    paths = [checkout / "README.md", *sorted((checkout / "docs").glob("*.md"))]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_every_block_says_what_it_is(docs: ModuleType, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert len(docs.blocks(text)) == len(re.findall(r"^```", text, re.MULTILINE)) / 2, name


def test_no_command_hides_in_an_indented_block(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^(?: {4,}|\t)\S", outside, re.MULTILINE), name


def test_blocks_that_are_not_run_are_few_and_have_a_known_reason(
    docs: ModuleType, pages: dict[str, str]
) -> None:
    unrun = [block for text in pages.values() for block in docs.blocks(text) if block.reason is not None]
    assert {block.reason for block in unrun} == REASONS
    assert len(unrun) <= UNRUN_AT_MOST


def test_commands_left_to_ci_are_in_ci(docs: ModuleType, pages: dict[str, str], checkout: Path) -> None:
    ci = (checkout / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    left = [block for block in docs.blocks(pages["README.md"]) if block.reason == ".ci/run does it"]
    assert left
    assert all(line in ci for block in left for line in block.body.splitlines())


def test_every_page_is_in_the_navigation(pages: dict[str, str], checkout: Path) -> None:
    navigation = (checkout / "mkdocs.yml").read_text(encoding="utf-8")
    assert [name for name in pages if name != "README.md" and f": {name}\n" not in navigation] == []


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("title\n```bash\ntrue\n```\n", r"line 2: a block of kind 'bash'; known kinds: sh, console"),
        ("```sh ci\ntrue\n```\n", r"line 1: a block of kind 'sh ci'"),
        ("```\ntrue\n```\n", r"line 1: a block of kind ''"),
    ],
)
def test_an_unknown_kind_is_refused(docs: ModuleType, page: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        docs.blocks(page)


def test_a_console_block_begins_with_a_command(docs: ModuleType) -> None:
    (block,) = docs.blocks("```console\nhello\n```\n")
    with pytest.raises(ValueError, match=r"line 2: a console block begins with"):
        docs.commands(block)


def test_a_reason_belongs_to_the_block_right_under_it(docs: ModuleType) -> None:
    first, second = docs.blocks("<!-- not run: no -->\n```sh\nfalse\n```\n\n```sh\ntrue\n```\n")
    assert (first.is_run, second.is_run) == (False, True)
    assert (first.line, second.line) == (3, 7)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a 1"], ["a 1"], True),
        (["a 1"], ["a 2"], False),
        (["a ... c"], ["a b c"], True),
        (["a ... c"], ["a b", " c"], False),
        (["...", "z"], ["x", "y", "z"], True),
        (["..."], [], True),
        ([], ["x"], False),
        (["x", "y"], ["x"], False),
    ],
)
def test_what_agrees(docs: ModuleType, shown: list[str], printed: list[str], same: bool) -> None:
    assert docs.agrees(shown, printed) is same


def run_script(docs: ModuleType, page: str, outputs: Path) -> subprocess.CompletedProcess[str]:
    text = docs.script(docs.blocks(page), outputs)
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)


def test_blocks_run_in_order_and_stop_at_the_first_failure(docs: ModuleType, tmp_path: Path) -> None:
    pairs = (("sh", "X=1"), ("text", "exit 9"), ("python", "print('two')"), ("sh", "echo $X; false\necho no"))
    page = "".join(f"```{kind}\n{body}\n```\n" for kind, body in pairs)
    result = run_script(docs, page, tmp_path)
    assert result.returncode == 1
    assert re.findall(r"^(two|1|no)$", result.stdout, re.MULTILINE) == ["two", "1"]


CONSOLE = "```console\n$ X=4 && echo \\\n  $X\n4\n$ echo $X; echo 6\n5\n```\n"


def test_output_is_compared_with_what_is_shown(docs: ModuleType, tmp_path: Path) -> None:
    assert run_script(docs, CONSOLE, tmp_path).returncode == 0
    ((command, printed),) = docs.differences(docs.blocks(CONSOLE), tmp_path)
    assert (command.line, command.shown, printed) == (5, ["5"], ["4", "6"])
    assert docs.replaced(CONSOLE, [(command, printed)]) == CONSOLE.replace("\n5\n", "\n4\n6\n")


def test_a_command_that_fails_in_a_console_block_shows_what_it_printed(
    docs: ModuleType, tmp_path: Path
) -> None:
    result = run_script(docs, "```console\n$ echo why; false\n$ echo never\n```\n", tmp_path)
    assert result.returncode == 1
    assert result.stdout.endswith("why\n")


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: child for action in actions for name, child in action.choices.items()}


def unknown_words(words: list[str], parser: argparse.ArgumentParser) -> list[str]:
    """The options among words that the command named by words does not have; the command if there is none."""
    if below := subparsers(parser):
        name = words[0] if words else ""
        if name in below:
            return unknown_words(words[1:], below[name])
        return [] if not name or name.startswith("-") or name.isupper() else [name]
    if parser.prog == "hpcmoe sweep":
        parser = sweep_arguments.parser()
    known = {option for action in parser._actions for option in action.option_strings}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in known]


def test_commands_that_the_text_names_exist(docs: ModuleType, pages: dict[str, str]) -> None:
    """Those in running text and tables, and in blocks that are not run; the others are run anyway."""
    wrong = []
    for name, text in pages.items():
        unrun = "\n".join(block.body for block in docs.blocks(text) if block.reason is not None)
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        named = re.findall(r"`hpcmoe ([^`]*)`", prose) + re.findall(r"^hpcmoe (.*)$", unrun, re.MULTILINE)
        for command in named:
            words = re.sub(r"[\[\]]|[|#].*", " ", command).split()
            wrong += [f"{name}: {word} in {command}" for word in unknown_words(words, build_parser())]
    assert wrong == []


def test_parameters_that_the_text_sets_exist(pages: dict[str, str]) -> None:
    known = set(PARAMETERS) | {"ecn", "external_delay", "routing"}
    named = {match for text in pages.values() for match in re.findall(r"--set ([a-z0-9_]+)=", text)}
    assert named - known == set()
