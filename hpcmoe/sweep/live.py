"""What a running sweep tells others: who works on what, in a small file in the spool.

Rank 0 writes it every few seconds; `hpcmoe status` reads it. It is also the sweep's sign of life where
file locks do not work.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from hpcmoe.store.paths import ResultPaths

INTERVAL_S = 2.0
FRESH_S = 120.0
"""A sweep whose file is older than this is taken for dead."""


class LiveFile:
    """Writes the file at most every INTERVAL_S. A full disk does not stop a sweep here."""

    def __init__(self, paths: ResultPaths) -> None:
        self._paths = paths
        self._next_s = 0.0

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next_s

    def write(self, content: Mapping[str, Any]) -> None:
        self._next_s = time.monotonic() + INTERVAL_S
        temporary = self._paths.live_temporary
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps({"written_unix_s": time.time(), **content}))
            os.replace(temporary, self._paths.live)


def read_live(paths: ResultPaths) -> dict[str, Any] | None:
    """What the last sweep wrote, or None."""
    try:
        content: dict[str, Any] = json.loads(paths.live.read_text())
    except (OSError, ValueError):
        return None
    return content
