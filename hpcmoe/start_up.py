"""Ctrl-C while the program is still importing.

Some extension modules turn a KeyboardInterrupt during their import into an ImportError or print it, so
until everything is imported the program ends at once. Nothing has been written by then.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130  # as a shell reports SIGINT
MESSAGE = "hpcmoe: interrupted\n"


def end_on_interrupt() -> None:
    """From here Ctrl-C ends the process. A process that ignores it, as in the background, still does."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(signum: int, frame: FrameType | None) -> None:
    os.write(2, MESSAGE.encode())
    os._exit(INTERRUPTED)
