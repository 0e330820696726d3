"""Errors meant for the user. The command line prints their message and exits with ``exit_code``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike
from typing import Any

_LONGEST = 80  # characters of a value in a message


class HpcmoeError(Exception):
    """Base of every error that is the user's to read: one line, no traceback."""

    exit_code = 1


class InputError(HpcmoeError):
    """Something given to hpcmoe is wrong: names the file, the field, the value and what is allowed."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | PathLike[str] | None = None,
        field: str | None = None,
        value: Any = None,
        allowed: str | Iterable[Any] | None = None,
    ) -> None:
        self.message = message
        self.file = None if file is None else str(file)
        self.field = field
        self.value = value
        self.allowed = (
            allowed if allowed is None or isinstance(allowed, str) else ", ".join(map(str, allowed))
        )
        super().__init__(self._compose())

    def __reduce__(self) -> tuple[Any, ...]:
        # Sweep workers send errors to rank 0; the default pickling would lose the keyword arguments.
        return (_rebuild_input_error, (self.message, self.file, self.field, self.value, self.allowed))

    def _compose(self) -> str:
        where = ": ".join(part for part in (self.file, self.field and _short(self.field)) if part)
        text = f"{where}: {self.message}" if where else self.message
        if self.value is not None:
            text += f" (got {_short(repr(self.value))})"
        if self.allowed is not None:
            text += f"; allowed: {self.allowed}"
        return _one_line(text)


class SimulationError(HpcmoeError):
    """The run cannot go on: a stall (names the stuck ranks and nodes) or a broken invariant."""

    exit_code = 3


def _one_line(text: str) -> str:
    """Without line breaks and terminal controls, which names in a file may have: '\\n' stands for them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _rebuild_input_error(
    message: str, file: str | None, field: str | None, value: Any, allowed: str | None
) -> InputError:
    return InputError(message, file=file, field=field, value=value, allowed=allowed)


def closest_first(name: str, names: Iterable[str]) -> list[str]:
    """``names`` ordered by likeness to ``name``, for "unknown name" messages."""

    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, name.lower(), candidate.lower()).ratio()

    return sorted(names, key=lambda candidate: (-likeness(candidate), candidate))
