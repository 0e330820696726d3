"""Help that can be relied on: every option says what it does, every command has examples, and they parse."""

import argparse
import shlex
from collections.abc import Iterator

import pytest

from hpcmoe import manual
from hpcmoe.cli import build_parser
from hpcmoe.sweep import arguments


def leaves(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, with its name."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for word, child in action.choices.items():
            yield from leaves(child, f"{name} {word}".strip())
    if not below:
        yield name, arguments.parser() if name == "sweep" else parser


COMMANDS = dict(leaves(build_parser()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_says_what_it_is(name: str) -> None:
    silent = [
        "/".join(action.option_strings) or action.dest
        for action in COMMANDS[name]._actions
        if not action.help or action.help == argparse.SUPPRESS
    ]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page(name: str) -> None:
    """A new command needs an entry in PAGES of hpcmoe/manual.py."""
    page = manual.PAGES[name]
    text = COMMANDS[name].format_help()
    assert "exit codes:" in text
    assert "examples:" in text
    assert page.about.split()[0] in text
    assert 1 <= len(page.examples) <= 3


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_parse(name: str) -> None:
    for example in manual.PAGES[name].examples:
        words = shlex.split(example)
        command = name.split()
        assert words[: 1 + len(command)] == ["hpcmoe", *command]
        if name == "sweep":
            arguments.parser().parse_args(words[2:])
        else:
            build_parser().parse_args(words[1:])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_shown_once(name: str) -> None:
    parser = COMMANDS[name]
    shown = [action for group in parser._action_groups for action in group._group_actions]
    assert sorted(map(id, shown)) == sorted(map(id, parser._actions))


def test_options_are_grouped() -> None:
    text = COMMANDS["simulate"].format_help()
    places = [text.index(f"\n{title}:\n") for title in ("input files", "what is simulated", "output")]
    assert places == sorted(places)
    assert places[0] < text.rindex("--workload-configuration PATH") < places[1]


def test_lines_are_short_and_long_examples_can_be_pasted() -> None:
    for name, parser in COMMANDS.items():
        for line in (parser.epilog or "").splitlines():
            assert len(line) <= 102, name
    (example,) = manual.PAGES["simulate"].examples
    shown = (COMMANDS["simulate"].epilog or "").partition("examples:\n")[2]
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(example)
