"""What the file system refuses and what a damaged file does to HDF5, as one message for the user."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from hpcmoe.errors import HpcmoeError, InputError

SAFE = "finished runs are safe; make room or give access, then start the same command again"


NO_ROOM_BYTES = 1 << 16

DAMAGE = (OSError, LookupError, ValueError, RuntimeError, TypeError, AttributeError)
"""What h5py and the decoders raise about a damaged file."""


class StorageError(HpcmoeError):
    """The file system does not let results be written: full, read-only, no permission, gone."""

    exit_code = 4


@contextlib.contextmanager
def storing(path: Path, advice: str = SAFE) -> Iterator[None]:
    """Turns an OSError of the block into a StorageError that names `path` and gives advice."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot write: {reason(error, path)}; {advice}") from error


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns DAMAGE into an InputError that names `path`.

    What the system itself refuses meanwhile, such as a write on a full disk, passes.
    """
    try:
        yield
    except DAMAGE as error:
        if getattr(error, "errno", None) or "errno = " in str(error):
            raise
        text = "damaged results file; run the sweep again into another one"
        raise InputError(f"{text}: {error}", file=path) from error


def reason(error: OSError, path: Path | None = None) -> str:
    """What the system says, also when HDF5 wraps it in a text of its own.

    HDF5 on MPI keeps to itself what the system said: then it is looked for at `path`, which was written.
    """
    if error.errno:
        return os.strerror(error.errno)
    text = str(error)
    for number in ("errno = ", "error code "):
        digits = text.partition(number)[2].split(",")[0].split("'")[0].strip()
        if digits.isdigit():
            return os.strerror(int(digits))
    if path is not None and _full(path):
        return os.strerror(errno.ENOSPC)
    return text or type(error).__name__


def _full(path: Path) -> bool:
    """Whether the file system of `path` has no room left to speak of."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < NO_ROOM_BYTES


def discard(path: Path) -> None:
    """Remove a file that was not finished, to give back its room."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
