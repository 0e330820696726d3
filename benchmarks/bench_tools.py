"""Shared by the benchmarks: machine facts, Markdown tables, one process per measurement."""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hpcmoe._version import __version__

_T = TypeVar("_T")


def in_fresh_process(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls the function in a process of its own, so that its peak memory is its own too."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory_mib() -> float:
    """Largest resident set of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown CPU"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def machine_facts() -> list[str]:
    """What a time depends on, as Markdown list items."""
    load = os.getloadavg()[0]
    return [
        f"- CPU: {cpu_model()}, {os.cpu_count()} logical; load average when started {load:.1f}",
        f"- {platform.system()} {platform.release()}, {platform.machine()}",
        f"- hpcmoe {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    ]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is text, the others are aligned to the right."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
