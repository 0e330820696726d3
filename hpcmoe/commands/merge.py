"""``hpcmoe merge``: takes what finished runs left in the spool over into the results file."""

from __future__ import annotations

import argparse
from pathlib import Path


def merge(arguments: argparse.Namespace) -> int:
    from hpcmoe.store import committed
    from hpcmoe.store import merge as store_merge
    from hpcmoe.store.paths import ResultPaths
    from hpcmoe.store.reader import open_checked
    from hpcmoe.sweep.lock import exclusive

    path = Path(arguments.results)
    open_checked(path).close()
    with exclusive(ResultPaths(path)):
        if not committed.needs_merge(path):
            print(f"{path}: nothing to merge")
            return 0
        report = store_merge.merge(path)
    rows = ", ".join(f"{count} {name}" for name, count in report.rows.items())
    print(f"{path}: traces of {report.runs} run(s) taken over; it now holds {rows} rows")
    return 0
