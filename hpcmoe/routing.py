"""The path of a flow: shortest by hop count, equal-cost hops chosen by a hash of its addresses and ports.

The same rule as the simulator's, so that records of flows can be laid over links afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hpcmoe.topology import Topology

DATA_PORT = 100  # destination port of every data packet
_HOST_SEED = 0x8BADF00D
_MASK = 0xFFFFFFFF


def host_address(node: int) -> int:
    """IPv4 address of a node as an integer."""
    return 0x0B000001 + (node // 256) * 65536 + (node % 256) * 256


def murmur3(words: Sequence[int], seed: int) -> int:
    """MurmurHash3 (x86, 32 bit) over whole little-endian 32-bit words."""
    state = seed
    for word in words:
        mixed = _rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
        state = (_rotate(state ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4 * len(words)
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _MASK
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _MASK
    return state ^ state >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


class Routes:
    """Paths over a topology.

    A directed link is an index as in a run's link rows: link i from src to dst is 2 i, the other way
    2 i + 1. ``descending``: order of switches among equal-cost hops, by node id.
    """

    def __init__(self, topology: Topology, *, descending: bool = False) -> None:
        self._topology = topology
        self._descending = descending
        self._hops: dict[int, dict[int, list[int]]] = {}
        self._paths: dict[tuple[int, int, int, int], tuple[int, ...]] = {}

    @cached_property
    def _ports(self) -> list[dict[int, int]]:
        """Per node: neighbour to the directed link that leads there; of parallel links the last."""
        ports: list[dict[int, int]] = [{} for _ in range(self._topology.node_count)]
        for index, link in enumerate(self._topology.links):
            ports[link.src][link.dst] = 2 * index
            ports[link.dst][link.src] = 2 * index + 1
        return ports

    @cached_property
    def ends(self) -> list[tuple[int, int]]:
        """(sending node, receiving node) of every directed link."""
        return [
            pair for link in self._topology.links for pair in ((link.src, link.dst), (link.dst, link.src))
        ]

    def next_hops(self, node: int, host: int) -> list[int]:
        """Neighbours of ``node`` on shortest paths to ``host``, in the order that hashes index."""
        return self._towards(host).get(node, [])

    def _towards(self, host: int) -> dict[int, list[int]]:
        if host not in self._hops:
            self._hops[host] = self._search(host)
        return self._hops[host]

    def _search(self, host: int) -> dict[int, list[int]]:
        """Breadth first from ``host``; hosts are reached and not crossed."""
        distance, queue = {host: 0}, [host]
        hops: dict[int, list[int]] = {}
        for node in queue:
            for peer in self._ordered(node):
                if peer not in distance:
                    distance[peer] = distance[node] + 1
                    hops[peer] = []
                    if not self._topology.is_host(peer):
                        queue.append(peer)
                if distance[peer] == distance[node] + 1:
                    hops[peer].append(node)
        return hops

    def _ordered(self, node: int) -> list[int]:
        sign = -1 if self._descending else 1
        return sorted(self._ports[node], key=lambda peer: (not self._topology.is_host(peer), sign * peer))

    def data_path(self, src: int, dst: int, sport: int) -> tuple[int, ...]:
        """Directed links that the data packets of a flow cross, in order."""
        return self._path(src, dst, sport, DATA_PORT)

    def ack_path(self, src: int, dst: int, sport: int) -> tuple[int, ...]:
        """Directed links that the acknowledgements of the flow ``src`` to ``dst`` cross."""
        return self._path(dst, src, DATA_PORT, sport)

    def _path(self, src: int, dst: int, sport: int, dport: int) -> tuple[int, ...]:
        key = (src, dst, sport, dport)
        if key not in self._paths:
            self._paths[key] = tuple(self._walk(*key))
        return self._paths[key]

    def _walk(self, src: int, dst: int, sport: int, dport: int) -> list[int]:
        words = (host_address(src), host_address(dst), sport | dport << 16)
        node, links = src, []
        while node != dst:
            choices = self.next_hops(node, dst)
            if not choices:
                raise ValueError(f"no path from node {src} to node {dst}")
            seed = _HOST_SEED if self._topology.is_host(node) else node
            peer = choices[0] if len(choices) == 1 else choices[murmur3(words, seed) % len(choices)]
            links.append(self._ports[node][peer])
            node = peer
        return links
