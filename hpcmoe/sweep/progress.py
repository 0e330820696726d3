"""Tells the user how far a sweep is: a live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from hpcmoe.sweep.worker import Outcome

LIVE_INTERVAL_S = 0.2


class Progress:
    """Counts outcomes and writes lines. `costs` is the predicted cost of each run.

    With `machine` the progress lines go there as JSON objects; `stream` keeps what people have to read.
    """

    def __init__(
        self,
        costs: Mapping[int, float],
        stream: TextIO,
        *,
        quiet: bool = False,
        interval_s: float = 30.0,
        machine: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._costs, self._stream, self._quiet, self._clock = costs, stream, quiet, clock
        self._machine = machine
        self._live = stream.isatty() and machine is None
        self._interval_s = LIVE_INTERVAL_S if self._live else interval_s
        self._started_s = self._shown_s = clock()
        self._done_cost = 0.0
        self._left_cost = sum(costs.values())
        self._width = 0
        self.counts = {"ok": 0, "kept": 0, "failed": 0}
        self.renewed = 0
        self.worked = 0
        self.seconds = 0.0

    @property
    def left(self) -> int:
        return len(self._costs) - sum(self.counts.values())

    def add(self, outcome: Outcome) -> None:
        """Note how a run ended."""
        self.counts[outcome.state] += 1
        self.worked += not outcome.kept
        self.renewed += outcome.renewed
        self.seconds += outcome.seconds
        cost = self._costs[outcome.run]
        self._left_cost -= cost
        if not outcome.kept:
            self._done_cost += cost

    def look(self) -> None:
        """Write a line if it is time for one."""
        if self._quiet or self._clock() - self._shown_s < self._interval_s:
            return
        self._shown_s = self._clock()
        if self._machine is not None:
            self.emit("progress", self.numbers())
        else:
            self._write(self.line(), "\r" if self._live else "\n")

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._write(text, "\n")

    def note(self, text: str) -> None:
        """Write a line that stays, unless asked to be quiet."""
        if not self._quiet:
            self.say(text)

    def emit(self, event: str, content: Mapping[str, Any]) -> None:
        """Write one JSON object for machines, if they listen."""
        if self._machine is not None:
            self._machine.write(json.dumps({"event": event, **content}) + "\n")
            self._machine.flush()

    def numbers(self) -> dict[str, Any]:
        """Counts, rate and predicted time left (None while nothing is done)."""
        elapsed_s = max(self._clock() - self._started_s, 1e-9)
        left_s = elapsed_s * self._left_cost / self._done_cost if self._done_cost > 0 else None
        return {
            "done": self.counts["ok"] + self.counts["kept"],
            "failed": self.counts["failed"],
            "left": self.left,
            "runs_per_hour": 3600 * self.worked / elapsed_s,
            "elapsed_s": elapsed_s,
            "left_s": left_s,
        }

    def line(self) -> str:
        """The numbers as text."""
        found = self.numbers()
        parts = [f"{found[name]} {name}" for name in ("done", "failed", "left")]
        parts.append(f"{found['runs_per_hour']:.0f} runs/h")
        if found["left_s"] is not None:
            parts.append(f"about {duration(found['left_s'])} to go")
        return ", ".join(parts)

    def _write(self, text: str, end: str) -> None:
        # On a terminal the live line stands at the cursor: what follows has to cover it.
        shown = text.ljust(self._width) if self._live else text
        self._width = len(text) if end == "\r" else 0
        self._stream.write(("\r" if self._live else "") + shown + end)
        self._stream.flush()


def duration(seconds: float) -> str:
    """Seconds as 45 s, 12 min, 3 h 05 min or 4 d 2 h."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return f"{int(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"
