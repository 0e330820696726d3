"""Which GPU each rank runs on.

The simulator runs rank r on node r, so a placement renumbers the hosts of the graph: node r becomes the GPU
of rank r, with its name, server and links, and the hosts that are left follow in their old order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from hpcmoe.errors import InputError, closest_first
from hpcmoe.topology import Topology
from hpcmoe.topology_file import renumbered
from hpcmoe.topology_text import read_text

CONTIGUOUS, ROUND_ROBIN, LISTED = "contiguous", "round_robin", "listed"
NAMES = (CONTIGUOUS, ROUND_ROBIN)
_LONGEST_NAME = 64  # characters


@dataclass(frozen=True)
class Placement:
    """``name`` is one of NAMES, or 'listed': ``hosts`` then has the index of a host (gpu0 has 0) or its name
    per rank, and ``file`` and ``lines`` tell where that was written."""

    name: str
    hosts: tuple[int | str, ...] = ()
    file: str | None = field(default=None, compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False)

    def to_json(self) -> str | list[int | str]:
        """How a results file and a scenario tell it."""
        return list(self.hosts) if self.name == LISTED else self.name

    def field_of(self, rank: int) -> str:
        """What a message calls the host of a rank."""
        return f"line {self.lines[rank]} (rank {rank})" if self.lines else f"placement of rank {rank}"


IN_ORDER = Placement(CONTIGUOUS)
"""Rank r on host r."""
PlacementLike = Placement | str | PathLike[str] | Sequence[int | str]


def parse(given: PlacementLike) -> Placement:
    """A name, a file, or one host index or name per rank."""
    if isinstance(given, Placement):
        return given
    if isinstance(given, str) and given in NAMES:
        return Placement(given)
    if isinstance(given, PathLike | str):
        return _read(Path(given))
    return Placement(LISTED, tuple(given))


def _read(path: Path) -> Placement:
    if not path.exists() and path.parent == Path() and not path.suffix:
        raise InputError(
            "no such placement, and no such file",
            field="placement",
            value=str(path),
            allowed=[*closest_first(str(path), NAMES), "a file with a host index or GPU name per rank"],
        )
    lines = dict(_words(path))
    if not lines:
        raise InputError("no host in the file", file=path, allowed="a host index or GPU name per rank")
    hosts = [int(word) if word.isascii() and word.isdigit() else word for word in lines.values()]
    return Placement(LISTED, tuple(hosts), str(path), tuple(lines))


def _words(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and what the lines say, without comments."""
    for number, line in enumerate(read_text(path, "placement").splitlines(), 1):
        words = line.partition("#")[0].split()
        if len(words) > 1 or any(len(word) > _LONGEST_NAME for word in words):
            raise InputError(
                "not one host; rank r is placed by a line of its own",
                file=path,
                field=f"line {number}",
                value=line.strip(),
                allowed="one host index or GPU name a line",
            )
        yield from ((number, word) for word in words)


def place(topology: Topology, ranks: int, placement: Placement, key: str) -> Topology:
    """The topology with the GPU of rank r as node r. Its hosts are its first nodes.

    InputError when there are fewer hosts than ranks (``key`` names the run), or when the placement does not
    fit. With more hosts than ranks those that are left are idle.
    """
    check_fit(topology.hosts, ranks, key)
    if placement.name == CONTIGUOUS:
        return topology
    listed = placement.name == LISTED
    return _with_hosts(
        topology, _listed(topology, ranks, placement) if listed else _round_robin(topology, ranks)
    )


def check_fit(hosts: int, ranks: int, name: str) -> None:
    """InputError when there are more ranks than hosts; ``name`` is what the message is about."""
    if hosts < ranks:
        raise InputError(
            f"TP x EP x DP x PP = {ranks} ranks do not fit on the {hosts} GPUs of the topology",
            field=name,
            value=ranks,
            allowed=f"degrees whose product is at most {hosts}, or a larger topology",
        )


def _round_robin(topology: Topology, ranks: int) -> list[int]:
    """Rank 0 on the first server, rank 1 on the second, and so on in turn; full servers are left out."""
    if not topology.server_of_host:
        raise InputError(
            "round_robin goes over servers, and this topology does not say what they are",
            field="placement",
            value=ROUND_ROBIN,
            allowed="contiguous, a file; or add the topology again with --gpus-per-server",
        )
    turns: dict[int, int] = {}
    order = []
    for host, server in enumerate(topology.server_of_host):
        order.append((turns.get(server, 0), server, host))
        turns[server] = turns.get(server, 0) + 1
    return [host for _, _, host in sorted(order)][:ranks]


def _listed(topology: Topology, ranks: int, placement: Placement) -> list[int]:
    if len(placement.hosts) != ranks:
        raise InputError(
            f"the placement has {len(placement.hosts)} hosts for {ranks} ranks",
            file=placement.file,
            field="placement",
            value=len(placement.hosts),
            allowed=f"{ranks}, one for each rank",
        )
    names = {topology.node_names[host]: host for host in range(topology.hosts)}
    rank_of: dict[int, int] = {}
    for rank, given in enumerate(placement.hosts):
        host = _index(given, names, placement, rank)
        if rank_of.setdefault(host, rank) != rank:
            raise InputError(
                f"the host of rank {rank_of[host]} again; a host runs one rank",
                file=placement.file,
                field=placement.field_of(rank),
                value=given,
            )
    return list(rank_of)


def _index(host: int | str, names: dict[str, int], placement: Placement, rank: int) -> int:
    if isinstance(host, str) and host in names:
        return names[host]
    if isinstance(host, int) and not isinstance(host, bool) and 0 <= host < len(names):
        return host
    first, *_, last = [*names, *names]
    raise InputError(
        "no such host",
        file=placement.file,
        field=placement.field_of(rank),
        value=host,
        allowed=f"0 to {len(names) - 1}, or {first} to {last}",
    )


def _with_hosts(topology: Topology, chosen: list[int]) -> Topology:
    taken = set(chosen)
    order = [*chosen, *(host for host in range(topology.hosts) if host not in taken)]
    placed = renumbered(topology, [*order, *range(topology.hosts, topology.node_count)])
    if not topology.server_of_host:
        return placed
    return replace(placed, server_of_host=tuple(topology.server_of_host[host] for host in order))
