"""What is recorded about one start of a sweep."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import socket
import sys
from collections.abc import Mapping
from typing import Any

import h5py

import hpcmoe
from hpcmoe.store.paths import ResultPaths, sync_file
from hpcmoe.store.trouble import storing
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
    with storing(paths.spool):
        path.write_text(json.dumps(session))
        sync_file(path)
