"""What is recorded about one start of a sweep, and the lock that keeps a second one away."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import platform
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import h5py

import hpcmoe
from hpcmoe.errors import InputError
from hpcmoe.store.paths import ResultPaths, sync_file
from hpcmoe.store.spool import remove_spool
from hpcmoe.sweep.comm import Comm


def software() -> dict[str, str]:
    """Root attributes that name the program."""
    return {
        "hpcmoe_version": hpcmoe.__version__,
        "git_sha": getattr(hpcmoe, "__git_sha__", "unknown"),
        "build_flags": getattr(hpcmoe, "__build_flags__", "unknown"),
    }


def describe_session(comm: Comm) -> dict[str, Any]:
    """When, where and with what this sweep was started."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "started": now.isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "command": shlex.join(sys.orig_argv),
        "ranks": comm.size,
        "mpi": comm.library,
        "hdf5": h5py.version.hdf5_version,
        "python": platform.python_version(),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
        "hpcmoe_version": hpcmoe.__version__,
    }


def record_session(paths: ResultPaths, session: Mapping[str, Any]) -> None:
    """Leave the session in the spool, for the merge to take into the file."""
    number = max(paths.session_numbers(), default=-1) + 1
    path = paths.session_file(number)
    path.write_text(json.dumps(session))
    sync_file(path)


@contextlib.contextmanager
def exclusive(paths: ResultPaths) -> Iterator[None]:
    """Hold the file's lock. Raises InputError when another sweep on it is running.

    The lock dies with the process. File systems without locks are used unprotected. On leaving,
    a spool that holds no results is removed.
    """
    paths.spool.mkdir(exist_ok=True)
    descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(descriptor, paths)
        try:
            yield
        finally:
            if not paths.spooled():
                remove_spool(paths)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, paths: ResultPaths) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise InputError(
                "another sweep is writing this results file; wait for it, or stop it first", file=paths.file
            ) from None
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
            raise
