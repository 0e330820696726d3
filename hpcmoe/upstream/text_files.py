"""cc_policy.txt and flow lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hpcmoe.errors import InputError
from hpcmoe.topology import Topology
from hpcmoe.topology_text import read_text

_MAX_FLOW_BYTES = 2**31 - 1
LATEST_NS = 2**62  # later times could overflow 64 bits once delays are added
_INTEGER = re.compile(r"-?[0-9]{1,20}")


def read_cc_policy(path: str | Path, hosts: int) -> np.ndarray:
    """Lines ``src dst enable_cc``; a pair without a line has congestion control.

    Returns bool [hosts, hosts], true where it is off.
    """
    disabled = np.zeros((hosts, hosts), dtype=np.bool_)
    for number, parts in _lines(path, "policy", 3, "src dst enable_cc"):
        src, dst, enable = parts
        if not (0 <= src < hosts and 0 <= dst < hosts):
            raise InputError(
                "host out of range",
                file=path,
                field=f"line {number}",
                value=f"{src} {dst}",
                allowed=f"0 to {hosts - 1}",
            )
        if enable not in (0, 1):
            raise InputError("bad enable_cc", file=path, field=f"line {number}", value=enable, allowed="0, 1")
        disabled[src, dst] = enable == 0
    return disabled


def write_cc_policy(disabled: np.ndarray, path: str | Path) -> None:
    """One line for every ordered pair of distinct hosts."""
    count = len(disabled)
    pairs = ((src, dst) for src in range(count) for dst in range(count) if src != dst)
    text = "".join(f"{src} {dst} {int(not disabled[src, dst])}\n" for src, dst in pairs)
    Path(path).write_text(text, encoding="utf-8")


def read_flows(path: str | Path, topology: Topology) -> np.ndarray:
    """Lines ``t_ns src dst bytes`` sorted by time, as int64 [n, 4]."""
    rows: list[list[int]] = []
    for number, parts in _lines(path, "flow list", 4, "t_ns src dst bytes"):
        _check_flow(parts, rows[-1][0] if rows else 0, topology, str(path), f"line {number}")
        rows.append(parts)
    if not rows:
        raise InputError("no flow", file=path)
    return np.array(rows, dtype=np.int64)


def _check_flow(parts: list[int], previous_ns: int, topology: Topology, file: str, field: str) -> None:
    time, src, dst, size = parts
    if time < previous_ns:
        raise InputError(
            "flows are not sorted by time",
            file=file,
            field=field,
            value=time,
            allowed=f"integers from {previous_ns}",
        )
    if time > LATEST_NS:
        raise InputError(
            "too late", file=file, field=field, value=time, allowed=f"times in ns up to {LATEST_NS}"
        )
    for node in (src, dst):
        if not topology.is_host(node):
            raise InputError("not a host", file=file, field=field, value=node)
    if src == dst:
        raise InputError("a flow from a host to itself", file=file, field=field, value=src)
    if not 1 <= size <= _MAX_FLOW_BYTES:
        raise InputError("bad size", file=file, field=field, value=size, allowed=f"1 to {_MAX_FLOW_BYTES}")


def _lines(path: str | Path, what: str, count: int, form: str) -> Iterator[tuple[int, list[int]]]:
    for number, line in enumerate(read_text(path, what).splitlines(), 1):
        parts = line.split()
        if not parts:
            continue
        values = [int(part) for part in parts if _INTEGER.fullmatch(part)]
        if len(parts) != count or len(values) != count:
            raise InputError("bad line", file=path, field=f"line {number}", value=line.strip(), allowed=form)
        yield number, values
