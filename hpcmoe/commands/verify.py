"""``hpcmoe verify``: checks a results file and says which runs to do again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from hpcmoe.commands import common

FAULTY_EXIT_CODE = 1


def verify(arguments: argparse.Namespace) -> int:
    """0 when every finished run is sound, 1 when something is wrong."""
    from hpcmoe.store import verify as store_verify

    path = Path(arguments.results)
    found = store_verify.verify(path)
    common.write_json(arguments.json, _content(path, found))
    if arguments.json != "-":
        _print(path, found)
    if arguments.reset and found.to_redo:
        _reset(path, found.to_redo)
        print(f"{len(found.to_redo)} run(s) marked as missing: the next sweep does them again")
    return FAULTY_EXIT_CODE if found.faults else 0


def _content(path: Path, found: Any) -> dict[str, Any]:
    faults = [{"run": fault.key or None, "fault": fault.text} for fault in found.faults]
    redo = list(dict.fromkeys(fault.key for fault in found.faults if fault.key))
    return {"file": str(path), "runs": found.runs, "checked": found.checked, "missing": found.missing,
            "waiting_for_merge": found.waiting, "faults": faults, "redo": redo}  # fmt: skip


def _print(path: Path, found: Any) -> None:
    waiting = f", traces of {found.waiting} in the spool" if found.waiting else ""
    print(f"{path}: {found.checked} of {found.runs} runs checked, {found.missing} missing{waiting}")
    for fault in found.faults:
        print(f"  {fault.key or 'file'}: {fault.text}")
    if not found.faults:
        print("  no fault found")
    elif found.to_redo:
        print(f"{len(found.to_redo)} run(s) to do again; 'hpcmoe verify --reset {path}' marks them")
    else:
        print("the file as a whole is damaged: run the sweep again into another file", file=sys.stderr)


def _reset(path: Path, numbers: list[int]) -> None:
    """Mark runs as missing, under the lock of a sweep."""
    from hpcmoe.store.layout import read_row_map
    from hpcmoe.store.paths import ResultPaths
    from hpcmoe.store.rows import RowFile
    from hpcmoe.store.trouble import storing
    from hpcmoe.sweep.lock import exclusive

    with exclusive(ResultPaths(path)), storing(path), RowFile(path, read_row_map(path)) as rows:
        for number in numbers:
            rows.write_status(number, "missing")
