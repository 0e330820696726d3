"""What the file system refuses, as one message for the user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from hpcmoe.errors import HpcmoeError

SAFE = "finished runs are safe; make room or give access, then start the same command again"


class StorageError(HpcmoeError):
    """The file system does not let results be written: full, read-only, no permission, gone."""

    exit_code = 4


@contextlib.contextmanager
def storing(path: Path, advice: str = SAFE) -> Iterator[None]:
    """Turns an OSError of the block into a StorageError that names `path` and gives advice."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot write: {reason(error)}; {advice}") from error


def reason(error: OSError) -> str:
    """What the system says, also when HDF5 wraps it in a text of its own."""
    if error.errno:
        return os.strerror(error.errno)
    text = str(error)
    for number in ("errno = ", "error code "):
        digits = text.partition(number)[2].split(",")[0].split("'")[0].strip()
        if digits.isdigit():
            return os.strerror(int(digits))
    return text or type(error).__name__


def discard(path: Path) -> None:
    """Remove a file that was not finished, to give back its room."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
