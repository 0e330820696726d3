"""Reading YAML that people write, with the line of every value for messages; every fault is an InputError.

Mappings have text keys, each once. Depth and number of values are bounded: an alias costs a few bytes in the
file and repeats all that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpcmoe.errors import InputError

Place = tuple[str | int, ...]
_DEEPEST = 12
_LARGEST_BYTES = 1 << 20
_MOST_VALUES = 100_000
_LONGEST_VALUE = 60  # characters of it in a message
# What PyYAML raises for a scalar that is not what its tag says (!!bool x).
_NO_SCALAR = (yaml.YAMLError, ValueError, KeyError, AttributeError, TypeError)


@dataclass(frozen=True)
class YamlFile:
    """``lines`` has the line of the value at each place: ("models", 0) is the first entry of 'models'."""

    path: Path
    data: dict[str, Any]
    lines: Mapping[Place, int]

    def error(self, message: str, place: Place = (), *, value: Any = None, allowed: Any = None) -> InputError:
        """An error about the value at ``place``, or at the nearest place above that the file has."""
        known = next((place[:end] for end in range(len(place), -1, -1) if place[:end] in self.lines), ())
        line = f"line {self.lines[known]}" if known in self.lines else ""
        names = ".".join(str(part) for part in place if isinstance(part, str))
        field = ": ".join(part for part in (line, names) if part)
        return InputError(message, file=self.path, field=field or None, value=value, allowed=allowed)


def read(path: Path) -> YamlFile:
    """Reads the file; InputError when it cannot be read, is too large, no YAML or no mapping."""
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise InputError("too large for a study file", file=path, allowed=f"up to {_LARGEST_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror}", file=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason} at byte {error.start}", file=path) from None
    return parse(text, path)


def parse(text: str, path: str | Path) -> YamlFile:
    """The same for a text; ``path`` is where it comes from, for messages."""
    path = Path(path)
    try:
        node = yaml.compose(text.removeprefix("\ufeff"), Loader=yaml.SafeLoader)
    except RecursionError:
        raise InputError("nested too deeply", file=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        field = None if mark is None else f"line {mark.line + 1}"
        raise InputError(f"not YAML: {problem}", file=path, field=field) from None
    if not isinstance(node, yaml.MappingNode):
        raise InputError("not a mapping of names to values", file=path)
    lines: dict[Place, int] = {}
    return YamlFile(path, _Converter(path, lines).value(node, ()), lines)


class _Converter:
    """From PyYAML's nodes to Python values, noting lines on the way."""

    def __init__(self, path: Path, lines: dict[Place, int]) -> None:
        self._path, self._lines = path, lines
        self._scalars = yaml.constructor.SafeConstructor()
        self._left = _MOST_VALUES

    def value(self, node: yaml.Node, place: Place) -> Any:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if len(place) > _DEEPEST:
            raise self._error("nested too deeply", node)
        self._left -= 1
        if self._left < 0:
            raise self._error(f"more than {_MOST_VALUES} values, aliases counted", node)
        if isinstance(node, yaml.MappingNode):
            return dict(self._entries(node, place))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, position)) for position, item in enumerate(node.value)]
        try:
            return self._scalars.construct_object(node)
        except _NO_SCALAR:
            raise self._error(f"not a value ({str(node.value)[:_LONGEST_VALUE]!r})", node) from None

    def _entries(self, node: yaml.MappingNode, place: Place) -> Iterator[tuple[str, Any]]:
        seen = set()
        for key_node, value_node in node.value:
            name = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag.rpartition(":")[2] not in (
                "str",
                "bool",
            ):
                raise self._error("a name has to be text", key_node)
            if name in seen:
                raise self._error(f"given twice: {name}", key_node)
            seen.add(name)
            self._lines[*place, name] = key_node.start_mark.line + 1
            yield name, self.value(value_node, (*place, name))

    def _error(self, message: str, node: yaml.Node) -> InputError:
        return InputError(message, file=self._path, field=f"line {node.start_mark.line + 1}")
