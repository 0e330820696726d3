"""How long a sweep may run, and how long runs take on this machine compared with the prediction."""

from __future__ import annotations

import math
import re
import subprocess
import time
from collections.abc import Callable, Mapping

from hpcmoe.errors import InputError

RESERVE_S = 10.0
"""Kept free before a time limit, for ranks to drop their runs and leave; at most a tenth of the limit."""

_FORMS = "MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS or DAYS-HOURS[:MINUTES[:SECONDS]]"
_TEXT = re.compile(r"^(?:(?P<days>\d+)-)?(?P<parts>\d+(?::\d+){0,2})$")


def parse_time_limit_s(text: str) -> float:
    """Seconds of a time limit as Slurm writes it. Raises InputError."""
    match = _TEXT.match(text.strip())
    parts = [int(part) for part in match["parts"].split(":")] if match else []
    seconds = 0
    units: tuple[int, ...] = {1: (60,), 2: (60, 1), 3: (3600, 60, 1)}.get(len(parts), ())
    if match and match["days"]:
        seconds = 86400 * int(match["days"])
        units = (3600, 60, 1)
    seconds += sum(unit * part for unit, part in zip(units, parts, strict=False))
    if not seconds:
        raise InputError("bad time limit", field="--time-limit", value=text, allowed=_FORMS)
    return float(seconds)


def deadline_unix_s(
    limit_s: float | None,
    environment: Mapping[str, str],
    now_unix_s: float,
    ask_slurm: Callable[[str], str] | None = None,
) -> float:
    """When work has to be on disk: --time-limit, or the end of the Slurm job, less a reserve; else never."""
    end = environment.get("SLURM_JOB_END_TIME", "")
    if limit_s is None and end.isdigit():
        limit_s = float(end) - now_unix_s
    if limit_s is None and "SLURM_JOB_ID" in environment:
        limit_s = _slurm_time_left_s((ask_slurm or slurm_time_left)(environment["SLURM_JOB_ID"]))
    if limit_s is None:
        return math.inf
    end_s = now_unix_s + limit_s
    return end_s - min(RESERVE_S, max(0.0, 0.1 * (end_s - now_unix_s)))


def slurm_time_left(job: str) -> str:
    """What squeue says of a job's time left; '' when it says nothing. Before 23.02 no variable tells."""
    try:
        command = ["squeue", "--noheader", f"--jobs={job}", "--format=%L"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _slurm_time_left_s(text: str) -> float | None:
    """None for an unlimited job and for what is no time."""
    lines = text.split()
    try:
        return parse_time_limit_s(lines[0]) if lines else None
    except InputError:
        return None


class Pace:
    """Seconds that a run takes here, from its predicted cost and the runs done so far in this session."""

    def __init__(self) -> None:
        self._cost = self._seconds = 0.0

    @property
    def known(self) -> bool:
        return self._cost > 0

    def add(self, cost: float, seconds: float) -> None:
        self._cost += cost
        self._seconds += seconds

    def seconds(self, cost: float) -> float:
        """Wall seconds expected for a run of `cost`; the prediction itself while nothing was measured."""
        return cost * (self._seconds / self._cost if self.known else 1.0)


class Stopwatch:
    """Wall seconds since it was made."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._started_s
