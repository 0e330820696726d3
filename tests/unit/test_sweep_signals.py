"""Signals that come at the very end of a process."""

from __future__ import annotations

import os
import signal

import pytest

from hpcmoe.sweep.signals import StopRequest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
@pytest.mark.parametrize(("process_ends", "code"), [(True, 0), (False, None)])
def test_signal_when_all_is_done(number: int, process_ends: bool, code: int | None) -> None:
    if (child := os.fork()) == 0:
        signal.signal(number, signal.SIG_DFL)
        with StopRequest(process_ends=process_ends):
            pass
        os.kill(os.getpid(), number)
        os._exit(0)
    expected = -number if code is None else code
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == expected
