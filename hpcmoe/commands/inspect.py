"""``hpcmoe inspect``: one run from the inside."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpcmoe.commands import common


def inspect(arguments: argparse.Namespace) -> int:
    from hpcmoe.inspect_run import inspect_run, trace_events
    from hpcmoe.reporting import run_page
    from hpcmoe.store import open_results

    with open_results(arguments.results) as results:
        inspection = inspect_run(results, arguments.run, arguments.layer)
        if arguments.html:
            common.write_text(arguments.html, run_page.render(inspection))
        if arguments.trace:
            _write_trace(Path(arguments.trace), trace_events(inspection))
        print(run_page.describe(inspection))
    return 0


def _write_trace(path: Path, events: Iterable[dict[str, Any]]) -> None:
    """Chrome's trace format: one event a line."""
    try:
        with path.open("w", encoding="utf-8") as file:
            file.write('{"displayTimeUnit": "ns", "traceEvents": [')
            for number, event in enumerate(events):
                file.write((",\n" if number else "\n") + json.dumps(event, separators=(",", ":")))
            file.write("\n]}\n")
    except OSError as error:
        raise common.output_error(path, error) from error
