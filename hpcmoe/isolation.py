"""Calls a function in a process of its own, for code that ends its process when something is wrong."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from hpcmoe.errors import SimulationError

OnProgress = Callable[..., None]

# What a fatal error of ns-3 says before the process ends: msg="...", then time, file and line.
_FATAL_MESSAGE = re.compile(r'msg="(.*?)", (?:\+|file=)', re.DOTALL)
_END_S = 10.0


def call(
    function: Callable[..., Any], arguments: dict[str, Any], on_progress: OnProgress | None
) -> tuple[Any, float]:
    """``function(**arguments, on_progress=...)``'s value and the CPU seconds it took.

    Progress reaches ``on_progress`` here, with the CPU seconds so far behind its own arguments. The
    function's exceptions are raised here. A process that ends without an answer is a SimulationError
    with the last words it had. Whatever ends this call ends the process as well.
    """
    context = multiprocessing.get_context("fork")  # nothing has to be copied or imported again
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile("w+", errors="replace") as words:
        process = context.Process(
            target=_serve, args=(function, arguments, receiver, sender, words.fileno()), daemon=True
        )
        with warnings.catch_warnings():
            # Python warns of forking beside threads; the new process touches none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        sender.close()
        try:
            return _listen(receiver, on_progress)
        except EOFError:
            process.join(_END_S)
            words.seek(0)
            raise SimulationError(_last_words(words.read(), process.exitcode)) from None
        finally:
            receiver.close()
            process.kill()
            process.join(_END_S)


def _listen(receiver: Connection, on_progress: OnProgress | None) -> tuple[Any, float]:
    while True:
        kind, content = receiver.recv()
        if kind == "progress":
            if on_progress is not None:
                on_progress(*content)
        elif kind == "error":
            raise content
        else:
            value: tuple[Any, float] = content
            return value


def _serve(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    receiver: Connection,
    sender: Connection,
    words: int,
) -> None:
    receiver.close()  # so that writing fails once the caller has gone
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.disable()  # the caller reports how this process ends
    os.dup2(words, 2)  # where C++ writes its errors
    started = time.process_time()

    def report(*content: int) -> None:
        sender.send(("progress", (*content, time.process_time() - started)))

    try:
        value = function(**arguments, on_progress=report)
        sender.send(("value", (value, time.process_time() - started)))
    except BrokenPipeError:
        os._exit(1)
    except Exception as error:
        sender.send(("error", error))


def _last_words(text: str, exit_code: int | None) -> str:
    found = _FATAL_MESSAGE.search(text)
    if found:
        return f"ns-3 stopped the run: {found.group(1)}"
    lines = [line for line in text.splitlines() if line.strip()]
    said = f": {lines[-1].strip()}" if lines else ""
    return f"the process of the run ended with code {exit_code}{said}"
