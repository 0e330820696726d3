"""Turns signals and the end of the time allowed into a request to stop that long-running code looks at."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

INTERRUPTED_EXIT_CODE = 130
REQUEUE_EXIT_CODE = 85
"""Exit code of a sweep that was asked to stop and can be continued by the same command."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_WARNINGS = (signal.SIGUSR1,)
"""Signals that leave the time until the deadline; after any other a kill may follow within seconds."""

SAFETY = 1.25
"""A run is finished after a warning when this many times its predicted rest fits into the time left."""


class Stopped(KeyboardInterrupt):
    """The current run is dropped because the sweep was asked to stop."""


class StopRequest:
    """Remembers the first stop signal, and when time is up. The same signal again gets its default action.

    `deadline_unix_s` is when the last byte has to be on disk: the time limit less a reserve. At the end
    handlers are as before, or with `process_ends` the signals are ignored: nothing is left to stop.
    """

    def __init__(self, clock: Callable[[], float] = time.time, *, process_ends: bool = False) -> None:
        self._process_ends = process_ends
        self.signal: int | None = None
        self.deadline_unix_s = math.inf
        self._clock = clock
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in _STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_IGN if self._process_ends else handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.request(number)
        signal.signal(number, signal.SIG_DFL)

    def request(self, number: int) -> None:
        """Ask to stop, as if signal `number` had come."""
        if self.signal is None:
            self.signal = number

    @property
    def asked(self) -> bool:
        """Whether no new run may start."""
        return self.signal is not None or self.time_left_s() <= 0

    def time_left_s(self) -> float:
        return self.deadline_unix_s - self._clock()

    def fits(self, seconds: float) -> bool:
        """Whether work of `seconds`, as predicted, ends in time."""
        return SAFETY * seconds <= self.time_left_s()

    def check(self, rest_s: float = math.inf) -> None:
        """Raise Stopped once a stop was asked for, unless the run may end: its predicted rest is `rest_s`."""
        if not self.asked:
            return
        if self.signal in _WARNINGS and math.isfinite(self.deadline_unix_s) and self.fits(rest_s):
            return
        raise Stopped

    @property
    def reason(self) -> str:
        """Why, for the user."""
        return "at its time limit" if self.signal is None else f"by signal {int(self.signal)}"

    @property
    def exit_code(self) -> int:
        return INTERRUPTED_EXIT_CODE if self.signal == signal.SIGINT else REQUEUE_EXIT_CODE
