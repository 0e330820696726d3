"""Output files, checked before a simulation: that they can be written and are nobody's input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from hpcmoe.commands.common import output_error
from hpcmoe.errors import InputError


def check(outputs: Mapping[str, str | None], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """``outputs``: paths by the option or key that names them; None and '-' are no files."""
    named = {field: path for field, path in outputs.items() if path not in (None, "-")}
    read = {os.path.realpath(path): str(path) for path in inputs}
    written: dict[str, str] = {}
    for field, path in named.items():
        assert path is not None
        place = _place(path, field)
        if place in read:
            raise InputError("would overwrite an input file", file=read[place], field=field, value=path)
        if place in written:
            raise InputError(f"the same file as {written[place]}", field=field, value=path)
        _check_writable(path)
        if not _is_special(path):
            written[place] = field


def _place(path: str, field: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError as error:  # a NUL
        raise InputError("not a file name", field=field, value=path) from error


def _is_special(path: str) -> bool:
    """A device or pipe, such as /dev/null: opening it can wait, and several outputs may go there."""
    return os.path.exists(path) and not os.path.isfile(path)


def _check_writable(path: str) -> None:
    """Opens the file as writing will; one that is new is removed again."""
    if _is_special(path) and not os.path.isdir(path):
        return
    new = not os.path.exists(path)
    try:
        with open(path, "ab"):
            pass
        if new:
            os.unlink(path)
    except OSError as error:
        raise output_error(path, error) from error


def check_folder(path: str | os.PathLike[str]) -> None:
    """That files can be made in a folder, which is made for the purpose if it does not exist."""
    folder = Path(path)
    made = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in made:
            part.rmdir()
    except OSError as error:
        raise output_error(folder, error) from error
    if not made and not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("cannot write: no permission", file=folder)
