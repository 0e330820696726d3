"""Reads what upstream writes: the report of every rank on standard output, and its fct, pfc and qlen files.

A file may be compressed with gzip. Columns are those of a run's result; what a file does not say is not among
them. Every error names file, line and value.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe.errors import InputError
from hpcmoe.topology import Topology
from hpcmoe.upstream.output import CLASSES, DESTINATION_PORT, ROOFLINE, host_ip

TIMES = ("finish_ns", "wall_ns", *(column for _, column in CLASSES), "exposed_comm_ns")
RATIOS = tuple(column for _, column, _ in ROOFLINE)
RANK_COLUMNS = [
    ("rank", "<u4"),
    ("finished", "?"),
    *((n, "<u8") for n in TIMES),
    *((n, "<f8") for n in RATIOS),
]
FLOW_COLUMNS = [
    ("src", "<u4"), ("dst", "<u4"), ("sport", "<u4"),
    *((name, "<u8") for name in ("bytes", "start_ns", "fct_ns", "standalone_ns")),
]  # fmt: skip
PAUSE_COLUMNS = [
    ("time_ns", "<u8"),
    *((n, "<u4") for n in ("node", "peer", "port")),
    ("is_switch", "u1"),
    ("pause", "u1"),
]
QUEUE_COLUMNS = [("time_ns", "<u8"), ("src", "<u4"), ("dst", "<u4"), ("bytes", "<u8")]

_LARGEST = 2**64 - 1
_FINISHED = re.compile(r"sys\[(\d+)\] finished, (\S+) cycles(?:, exposed communication (\S+) cycles)?")
_VALUE = re.compile(r"sys\[(\d+)\], ([A-Z][A-Za-z -]*): (\S+)")
_LABELS = {
    "Wall time": "wall_ns",
    **dict(CLASSES),
    **{label: column for label, column, _ in ROOFLINE},
}


def lines_of(path: str | Path, what: str) -> Iterator[tuple[int, str]]:
    """(number, text) of every line that is not blank."""
    try:
        data = Path(path).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the {what}: not text", file=path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"cannot read the {what}: damaged gzip file", file=path) from error
    except OSError as error:
        raise InputError(f"cannot read the {what}: {error.strerror}", file=path) from error
    yield from ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def read_rank_report(path: str | Path, ranks: int) -> np.ndarray:
    """One row per rank, [ranks] of ``RANK_COLUMNS``, from the program's standard output or its log.

    A class of time that a rank does not list is 0, as upstream leaves out empty ones; ratios that are not
    there (without the roofline) are NaN.
    """
    rows = np.zeros(ranks, RANK_COLUMNS)
    rows["rank"] = np.arange(ranks)
    for name in RATIOS:
        rows[name] = np.nan
    seen: set[tuple[int, str]] = set()
    for number, line in lines_of(path, "output"):
        for rank, column, value in _values(line, str(path), number):
            if rank >= ranks:
                raise InputError(
                    f"a report of a rank that the input files do not have; they have {ranks}",
                    file=path, field=f"line {number}", value=f"sys[{rank}]",
                )  # fmt: skip
            if (rank, column) in seen:
                raise InputError(
                    "reported twice: is this the output of two runs?",
                    file=path, field=f"line {number}", value=line.strip(),
                )  # fmt: skip
            seen.add((rank, column))
            rows[column][rank] = value
    _check_reported(rows, seen, str(path))
    rows["finished"] = True
    return rows


def _values(line: str, file: str, number: int) -> Iterator[tuple[int, str, float]]:
    """(rank, column, value) for each number that a line gives."""
    if match := _FINISHED.search(line):
        rank, *texts = match.groups()
        for column, text in zip(("finish_ns", "exposed_comm_ns"), texts, strict=True):
            if text is not None:
                yield int(rank), column, _integer(text, file, number)
    elif (match := _VALUE.search(line)) and match.group(2) in _LABELS:
        rank, label, text = match.groups()
        column = _LABELS[label]
        value = _ratio(text, file, number) if column in RATIOS else _integer(text, file, number)
        yield int(rank), column, value


def _check_reported(rows: np.ndarray, seen: set[tuple[int, str]], file: str) -> None:
    needed = {
        "finish_ns": "finished, ... cycles",
        "wall_ns": "Wall time",
        "exposed_comm_ns": "exposed communication",
    }
    for rank in range(len(rows)):
        for column, line in needed.items():
            if (rank, column) not in seen:
                reported = len({known for known, name in seen if name == "finish_ns"})
                raise InputError(
                    f"no line '{line}' of sys[{rank}]; {reported} of {len(rows)} ranks are reported as "
                    "finished (ASTRA-sim reports all of this since August 2025)",
                    file=file,
                )


def _integer(text: str, file: str, number: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST:
        allowed = f"integers from 0 to {_LARGEST}"
        raise InputError("bad number", file=file, field=f"line {number}", value=text, allowed=allowed)
    return int(text)


def _ratio(text: str, file: str, number: int) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        raise InputError("bad number", file=file, field=f"line {number}", value=text) from error


def read_fct(path: str | Path, topology: Topology) -> np.ndarray:
    """Flows in the order of the file, [n] of ``FLOW_COLUMNS``."""
    hosts = {f"{host_ip(host):08x}": host for host in topology.host_ids}

    def row(parts: list[str], number: int) -> tuple[int, ...]:
        ends = [_host(part, hosts, str(path), number) for part in parts[:2]]
        numbers = [_integer(part, str(path), number) for part in parts[2:]]
        if numbers[1] != DESTINATION_PORT:
            raise InputError(
                "not a flow of ASTRA-sim", file=path, field=f"line {number}: dport", value=numbers[1],
                allowed=str(DESTINATION_PORT),
            )  # fmt: skip
        return (*ends, numbers[0], *numbers[2:])

    return _table(
        path, "flow completion file", "sip dip sport dport size start fct standalone", FLOW_COLUMNS, row
    )


def _host(text: str, hosts: dict[str, int], file: str, number: int) -> int:
    host = hosts.get(text.lower())
    if host is None:
        first, *_, last = hosts
        raise InputError(
            "not the address of a host",
            file=file,
            field=f"line {number}",
            value=text,
            allowed=f"{first} to {last}",
        )
    return host


def read_pfc(path: str | Path, topology: Topology) -> np.ndarray:
    """PFC frames in the order of the file, [n] of ``PAUSE_COLUMNS``; the peer follows from the topology."""

    def row(parts: list[str], number: int) -> tuple[int, ...]:
        time, node, kind, port, pause = (_integer(part, str(path), number) for part in parts)
        peer = _peer(topology, node, port, str(path), number)
        if kind != int(not topology.is_host(node)) or pause > 1:
            raise InputError(
                "not what the topology has at this node, or neither pause nor resume",
                file=path, field=f"line {number}", value=" ".join(parts),
                allowed="node type 0 host, 1 switch; type 1 pause, 0 resume",
            )  # fmt: skip
        return time, node, peer, port, kind, pause

    return _table(path, "pfc file", "time node nodeType ifIndex type", PAUSE_COLUMNS, row)


def _peer(topology: Topology, node: int, port: int, file: str, number: int) -> int:
    """Interface k of a node belongs to its k-th link; 0 is the loopback."""
    peers = topology.neighbors[node] if node < topology.node_count else ()
    if not 1 <= port <= len(peers):
        raise InputError(
            "the topology has no such interface",
            file=file, field=f"line {number}", value=f"node {node} interface {port}",
        )  # fmt: skip
    return peers[port - 1]


def _table(
    path: str | Path,
    what: str,
    form: str,
    columns: list[tuple[str, str]],
    row: Callable[[list[str], int], tuple[int, ...]],
) -> np.ndarray:
    width, rows = len(form.split()), []
    for number, line in lines_of(path, what):
        parts = line.split()
        if len(parts) != width:
            raise InputError("bad line", file=path, field=f"line {number}", value=line.strip(), allowed=form)
        rows.append(row(parts, number))
    return _structured(rows, columns, path)


def _structured(rows: list[Any], columns: list[tuple[str, str]], path: str | Path) -> np.ndarray:
    try:
        return np.array(rows, columns)
    except OverflowError as error:
        raise InputError("a number is too large", file=path) from error


def read_qlen(path: str | Path, topology: Topology) -> np.ndarray:
    """Queue samples in the order of the file, [n] of ``QUEUE_COLUMNS``; a line has all ports of a switch."""
    rows = []
    for number, line in lines_of(path, "queue length file"):
        parts = line.split()
        groups = [parts[i : i + 3] for i in range(3, len(parts), 3)]
        if parts[0] != "time" or len(parts) % 3 or not groups or any(group[0] != "j" for group in groups):
            raise InputError(
                "bad line", file=path, field=f"line {number}", value=line.strip(),
                allowed="time <ns> <switch> j <port> <bytes> ...",
            )  # fmt: skip
        time, node = (_integer(part, str(path), number) for part in parts[1:3])
        for _, port, size in groups:
            index = _integer(port, str(path), number)
            peer = _peer(topology, node, index, str(path), number)
            rows.append((time, node, peer, _integer(size, str(path), number)))
    return _structured(rows, QUEUE_COLUMNS, path)
