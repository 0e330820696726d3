"""YAML that people write: the line of every value, and hostile files as one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcmoe import yaml_input
from hpcmoe.errors import InputError

LEVELS = "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{inner}'])}]\n"
    for inner, name in zip("abcde", "bcdef", strict=True)
)


def test_values_have_lines() -> None:
    file = yaml_input.parse("\ufeffa: 1\nb:\n  - {c: x}\n", "f.yaml")
    assert file.data == {"a": 1, "b": [{"c": "x"}]}
    assert str(file.error("wrong", ("b", 0, "c"))) == "f.yaml: line 3: b.c: wrong"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + LEVELS, "more than 100000 values, aliases counted"),
        ("a: &a {b: *a}\n", "line 1: nested too deeply"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(2000)), "nested too deeply"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("? [a, b]\n: c\n", "line 1: a name has to be text"),
        ("a: {b: 1}\n<<: {c: 1}\n", "line 2: a name has to be text"),
        ("a: 1\na: 2\n", "line 2: given twice: a"),
        ("a: !!bool x\n", "line 1: not a value ('x')"),
        ("a: !!timestamp x\n", "line 1: not a value ('x')"),
        ("a: 2020-99-99\n", "line 1: not a value ('2020-99-99')"),
        ("a: !!int x\n", "line 1: not a value ('x')"),
        ("a: " + "9" * 5000, "line 1: not a value ('999999"),
        ("a: 1\n---\nb: 1\n", "line 2: not YAML"),
        ("a: \x00\n", "not YAML"),
    ],
)
def test_what_is_hostile_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        yaml_input.parse(text, "f.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("f.yaml: ")
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        yaml_input.read(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_text("#" * (1 << 20) + "\n")
    with pytest.raises(InputError, match="too large"):
        yaml_input.read(large)
