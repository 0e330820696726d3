"""Turns signals into a request to stop that long-running code looks at."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

INTERRUPTED_EXIT_CODE = 130
REQUEUE_EXIT_CODE = 85
"""Exit code of a sweep that was asked to stop and can be continued by the same command."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Stopped(KeyboardInterrupt):
    """The current run is dropped because the sweep was asked to stop."""


class StopRequest:
    """Remembers the first stop signal. The same signal again gets its default action."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in _STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.request(number)
        signal.signal(number, signal.SIG_DFL)

    def request(self, number: int) -> None:
        """Ask to stop, as if signal `number` had come."""
        if self.signal is None:
            self.signal = number

    def check(self) -> None:
        """Raise Stopped once a signal has come."""
        if self.signal is not None:
            raise Stopped

    @property
    def exit_code(self) -> int:
        return INTERRUPTED_EXIT_CODE if self.signal == signal.SIGINT else REQUEUE_EXIT_CODE
