"""HDF5 files that survive a full disk.

When a write fails, HDF5 cannot close the file any more and may take the process down with it. So it writes
through a Python object that remembers the first error, takes all later writes in silence, and raises once the
file is closed. What is in the file by then is worthless and its maker removes it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import h5py


class _Guard:
    """The file as h5py's fileobj driver wants it: a position, and four ways to use it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._position = descriptor, 0
        self.error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        self._position = (os.fstat(self._descriptor).st_size if start is None else start) + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:
        data = os.pread(self._descriptor, len(buffer), self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        size = os.fstat(self._descriptor).st_size - self._position if size < 0 else size
        data = os.pread(self._descriptor, size, self._position)
        self._position += len(data)
        return data

    def write(self, data: memoryview) -> int:
        view = memoryview(data)
        size = view.nbytes
        with self._remembered():
            while view:
                written = os.pwrite(self._descriptor, view, self._position)
                view = view[written:]
                self._position += written
        return size

    def truncate(self, size: int | None = None) -> int:
        size = self._position if size is None else size
        with self._remembered():
            os.ftruncate(self._descriptor, size)
        return size

    def flush(self) -> None:
        """Nothing is held back."""

    @contextlib.contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            if self.error is None:
                yield
            else:
                with contextlib.suppress(OSError):
                    yield
        except OSError as error:
            self.error = error


@contextlib.contextmanager
def guarded_file(path: str | os.PathLike[str], mode: str) -> Iterator[h5py.File]:
    """Open `path` for writing: mode 'w' (new) or 'r+'. Raises OSError at the end if any write failed."""
    flags = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if mode == "w" else 0)
    descriptor = os.open(path, flags, 0o666)
    guard = _Guard(descriptor)
    try:
        try:
            with h5py.File(guard, mode) as file:
                yield file
        finally:
            if guard.error is not None:
                raise OSError(guard.error.errno, guard.error.strerror, str(Path(path))) from guard.error
    finally:
        os.close(descriptor)
