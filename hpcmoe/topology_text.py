"""Physical topologies as upstream's text: ``node_num switch_num link_num``, switch ids, a line per link."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from hpcmoe import topology as topo
from hpcmoe.errors import InputError
from hpcmoe.topology import Link, Topology
from hpcmoe.units import format_rate, format_time, parse_rate_bps, parse_time_ns

_T = TypeVar("_T")
MAX_NODES = 2**16  # upstream's addresses hold 16 bits of the node id
MAX_HOSTS = 4096  # tables hold a row for every pair of hosts
MAX_LINKS = 2**20
MAX_RATE_BPS = 10**14  # above, a packet would take no time
_NATURAL = re.compile(r"[0-9]{1,20}")


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
    """The topology of a file; InputError names file and place."""
    return parse_topology(read_text(path, "topology"), str(path))


def parse_topology(text: str, file: str) -> Topology:
    """``node_num switch_num link_num``, the switch ids, then ``src dst rate delay error_rate`` per link.

    ``file`` is where the text comes from, for messages.
    """
    tokens = _Tokens(text, file)
    nodes, switches, links = (tokens.count(f"{what} count") for what in ("node", "switch", "link"))
    if nodes > MAX_NODES:
        raise InputError(
            "too many nodes", file=file, field="node count", value=nodes, allowed=f"up to {MAX_NODES}"
        )
    if nodes - switches > MAX_HOSTS:
        raise InputError(
            f"too many hosts: {nodes} nodes of which {switches} are switches",
            file=file,
            field="node count",
            value=nodes - switches,
            allowed=f"up to {MAX_HOSTS} hosts",
        )
    switch_ids = [tokens.count(f"switch {i}") for i in range(switches)]
    rows = [_read_link(tokens, i) for i in range(links)]
    tokens.end(f"more than {switches} switches and {links} links: something follows the last link")
    topology = topo.unnamed(nodes, switch_ids, rows)
    topo.check(topology, file)
    return topology


def _read_link(tokens: _Tokens, index: int) -> Link:
    name = f"link {index}"
    src = tokens.count(f"{name}: source")
    dst = tokens.count(f"{name}: destination")
    rate = tokens.take(f"{name} ({src} {dst}): rate", link_rate, "a rate such as 400Gbps, up to 100Tbps")
    delay = tokens.take(f"{name} ({src} {dst}): delay", parse_time_ns, "a time such as 0.7us")
    error_rate = tokens.take(f"{name} ({src} {dst}): error rate", _real, "0 to below 1")
    return Link(src, dst, rate, delay, error_rate)


def link_rate(token: str) -> int:
    rate = parse_rate_bps(token)
    if not 0 < rate <= MAX_RATE_BPS:
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
