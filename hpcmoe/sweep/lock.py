"""The lock that keeps a second sweep away from a results file.

A POSIX record lock on a file in the spool: it works across nodes on NFS and on Lustre with -o flock, and it
dies with its process, so no dead sweep can keep a file locked. What is written in the lock file is only
for the message. Where the file system has no locks, the same text decides: its process when it is on this
host, else how fresh the sweep's sign of life is (live.py).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from hpcmoe.errors import InputError
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.spool import remove_spool
from hpcmoe.store.trouble import storing
from hpcmoe.sweep.live import FRESH_S, read_live

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
_BUSY = (errno.EACCES, errno.EAGAIN)
_FLOCK = "hhqqi4x"
"""struct flock of 64-bit Linux: type, whence, start, length, process."""


@contextlib.contextmanager
def exclusive(paths: ResultPaths) -> Iterator[str]:
    """Hold the file's lock; gives a remark about a predecessor that died, or ''.

    Raises InputError when another process holds it. On leaving, a spool that holds no results is removed.
    """
    with storing(paths.file.parent, "nothing was changed"):
        paths.spool.mkdir(exist_ok=True)
        descriptor = _open_locked(paths)
    try:
        remark = _predecessor(os.pread(descriptor, 4096, 0), paths)
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # a full disk is noticed where it matters
            os.pwrite(descriptor, json.dumps(_self()).encode(), 0)
        try:
            yield remark
        finally:
            os.ftruncate(descriptor, 0)
            if not paths.spooled():
                remove_spool(paths)
    finally:
        os.close(descriptor)


def holder(paths: ResultPaths) -> dict[str, Any] | None:
    """Who holds the lock now (keys host, process, started; may be empty), or None when nobody does."""
    try:
        with open(paths.lock, "rb") as stream:
            query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack(_FLOCK, fcntl.fcntl(stream, fcntl.F_GETLK, query))
            text = stream.read()
    except OSError:
        return None
    if answer[0] == fcntl.F_UNLCK:
        return None
    return _parsed(text)


def _open_locked(paths: ResultPaths) -> int:
    while True:
        descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor, paths)
        except BaseException:
            os.close(descriptor)
            raise
        # The holder before may have removed the file between our open and our lock: a lock on a file
        # without a name keeps nobody away.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(paths.lock)):
                return descriptor
        os.close(descriptor)
        paths.spool.mkdir(exist_ok=True)


def _lock(descriptor: int, paths: ResultPaths) -> None:
    text = os.pread(descriptor, 4096, 0)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY or (error.errno in _NO_LOCKS and _alive(_parsed(text), paths)):
            raise _busy(_parsed(text), paths) from None
        if error.errno not in _NO_LOCKS:
            raise


def _busy(who: dict[str, Any], paths: ResultPaths) -> InputError:
    name = f" (process {who['process']} on {who['host']}, since {who['started']})" if who else ""
    return InputError(
        f"another sweep is writing this results file{name}; wait for it, or stop it first", file=paths.file
    )


def _alive(who: dict[str, Any], paths: ResultPaths) -> bool:
    """Whether the process that wrote the lock file may still run; only asked where there are no locks."""
    if not who:
        return False
    if who["host"] == socket.gethostname():
        return os.path.exists(f"/proc/{who['process']}") if os.path.isdir("/proc/self") else True
    live = read_live(paths)
    return live is not None and time.time() - live["written_unix_s"] < FRESH_S


def _predecessor(text: bytes, paths: ResultPaths) -> str:
    who = _parsed(text)
    if not who:
        return ""
    return (
        f"the sweep before (process {who['process']} on {who['host']}, since {who['started']}) died "
        "without a word; continuing from what it stored"
    )


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        who = json.loads(text)
    except ValueError:
        return {}
    return who if isinstance(who, dict) and {"host", "process", "started"} <= set(who) else {}


def _self() -> dict[str, Any]:
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return {"host": socket.gethostname(), "process": os.getpid(), "started": started}
