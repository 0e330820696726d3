"""topology.txt, cc_policy.txt and flow lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from hpcmoe import topology as topo
from hpcmoe.errors import InputError
from hpcmoe.topology import Link, Topology
from hpcmoe.units import format_rate, format_time, parse_rate_bps, parse_time_ns

_T = TypeVar("_T")
_MAX_FLOW_BYTES = 2**31 - 1
_MAX_NODES = 2**16  # upstream's addresses hold 16 bits of the node id
_MAX_HOSTS = 4096  # tables hold a row for every pair of hosts
_MAX_RATE_BPS = 10**14  # above, a packet would take no time
LATEST_NS = 2**62  # later times could overflow 64 bits once delays are added
_NATURAL, _INTEGER = re.compile(r"[0-9]{1,20}"), re.compile(r"-?[0-9]{1,20}")


def read_text(path: str | Path, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the {what}: {error.strerror}", file=path) from error
    except ValueError as error:  # bytes that are no UTF-8, or a NUL in the path
        raise InputError(f"cannot read the {what}: not text ({error})", file=path) from error


class _Tokens:
    """Tokens of a file, each with a name for the error message."""

    def __init__(self, text: str, file: str) -> None:
        self._tokens: Iterator[str] = iter(text.split())
        self._file = file

    def take(self, field: str, convert: Callable[[str], _T], allowed: str) -> _T:
        token = next(self._tokens, None)
        if token is None:
            raise InputError("the file ends too early", file=self._file, field=field)
        try:
            return convert(token)
        except ValueError as error:
            raise InputError(
                "bad value", file=self._file, field=field, value=token, allowed=allowed
            ) from error

    def count(self, field: str) -> int:
        return self.take(field, _natural, "integers from 0")

    def end(self, message: str) -> None:
        """InputError if anything is left."""
        token = next(self._tokens, None)
        if token is not None:
            raise InputError(message, file=self._file, value=token)


def _natural(token: str) -> int:
    """Plain digits only: Python's int takes underscores and other scripts' digits too."""
    if not _NATURAL.fullmatch(token):
        raise ValueError(token)
    return int(token)


def _real(token: str) -> float:
    if not token.isascii() or "_" in token:
        raise ValueError(token)
    return float(token)


def read_topology(path: str | Path) -> Topology:
    """``node_num switch_num link_num``, the switch ids, then ``src dst rate delay error_rate`` per link."""
    tokens = _Tokens(read_text(path, "topology"), str(path))
    nodes, switches, links = (tokens.count(f"{what} count") for what in ("node", "switch", "link"))
    if nodes > _MAX_NODES:
        raise InputError(
            "too many nodes", file=path, field="node count", value=nodes, allowed=f"up to {_MAX_NODES}"
        )
    if nodes - switches > _MAX_HOSTS:
        raise InputError(
            f"too many hosts: {nodes} nodes of which {switches} are switches",
            file=path,
            field="node count",
            value=nodes - switches,
            allowed=f"up to {_MAX_HOSTS} hosts",
        )
    switch_ids = [tokens.count(f"switch {i}") for i in range(switches)]
    rows = [_read_link(tokens, i) for i in range(links)]
    tokens.end(f"more than {switches} switches and {links} links: something follows the last link")
    topology = topo.unnamed(nodes, switch_ids, rows)
    topo.check(topology, str(path))
    return topology


def _read_link(tokens: _Tokens, index: int) -> Link:
    name = f"link {index}"
    src = tokens.count(f"{name}: source")
    dst = tokens.count(f"{name}: destination")
    rate = tokens.take(f"{name} ({src} {dst}): rate", _link_rate, "a rate such as 400Gbps, up to 100Tbps")
    delay = tokens.take(f"{name} ({src} {dst}): delay", parse_time_ns, "a time such as 0.7us")
    error_rate = tokens.take(f"{name} ({src} {dst}): error rate", _real, "0 to below 1")
    return Link(src, dst, rate, delay, error_rate)


def _link_rate(token: str) -> int:
    rate = parse_rate_bps(token)
    if not 0 < rate <= _MAX_RATE_BPS:
        raise ValueError(token)
    return rate


def write_topology(topology: Topology, path: str | Path) -> None:
    """The same file that ``read_topology`` reads; names and servers are not part of it."""
    lines = [
        f"{topology.node_count} {len(topology.switch_ids)} {len(topology.links)}",
        " ".join(map(str, topology.switch_ids)),
    ]
    lines += [
        f"{link.src} {link.dst} {format_rate(link.rate_bps)} {format_time(link.delay_ns)} {link.error_rate:g}"
        for link in topology.links
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


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
