"""Where the nodes of a topology stand in a drawing, from its links alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from hpcmoe.topology import Topology

Point = tuple[float, float]
Points = Mapping[int, Point]


def servers(topology: Topology) -> dict[int, list[int]]:
    """Nodes of each server: its hosts and every node that they reach without the ToR, ascending."""
    found: dict[int, list[int]] = {}
    for server in sorted(set(topology.server_of_host)):
        reached = {h for h, s in enumerate(topology.server_of_host) if s == server}
        queue = sorted(reached)
        for node in queue:
            for peer in topology.neighbors[node]:
                if peer not in reached and topology.node_kinds[peer] != "tor":
                    reached.add(peer)
                    queue.append(peer)
        found[server] = sorted(reached)
    return found


def levels(topology: Topology, nodes: Iterable[int]) -> dict[int, int]:
    """Distance from the nearest host: hosts 0, what they attach to 1, and so on."""
    kept = set(nodes)
    found = {node: 0 for node in kept if topology.is_host(node)}
    queue = sorted(found)
    for node in queue:
        for peer in topology.neighbors[node]:
            if peer in kept and peer not in found:
                found[peer] = found[node] + 1
                queue.append(peer)
    return found


def _below(topology: Topology, level: Mapping[int, int], node: int) -> list[int]:
    """Hosts under a node, going down one level at a time."""
    if level[node] == 0:
        return [node]
    down = [peer for peer in topology.neighbors[node] if level.get(peer, -1) == level[node] - 1]
    return sorted({host for peer in down for host in _below(topology, level, peer)})


def radial(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Hosts on the outer circle in order, every other node inwards of the hosts below it, the ToR in
    the middle.  The outer radius is 1."""
    kept = sorted(nodes)
    level = levels(topology, kept)
    hosts = [node for node in kept if level[node] == 0]
    angle = {host: math.pi / 2 - 2 * math.pi * (i + 0.5) / len(hosts) for i, host in enumerate(hosts)}
    depth = max(level.values())
    points = {}
    for node in kept:
        below = _below(topology, level, node)
        turn = sum(angle[host] for host in below) / len(below)
        centre = topology.node_kinds[node] == "tor"
        radius = (
            0.0
            if centre
            else 1 - level[node] / (depth + (0 if topology.node_kinds[kept[-1]] == "tor" else 1.2))
        )
        points[node] = (radius * math.cos(turn), radius * math.sin(turn))
    return points


def layered(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Hosts in a row at the bottom, every other node a row up, above the hosts below it.  x spans -1 to 1."""
    kept = sorted(nodes)
    level = levels(topology, kept)
    hosts = [node for node in kept if level[node] == 0]
    across = {host: 2 * (i + 0.5) / len(hosts) - 1 for i, host in enumerate(hosts)}
    points = {}
    for node in kept:
        below = _below(topology, level, node)
        points[node] = (sum(across[host] for host in below) / len(below), 0.7 * level[node])
    return points


def server_points(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Inside one server: in layers, or round where three or more switches are meshed."""
    kept = list(nodes)
    if sum(topology.node_kinds[node] == "pcie" for node in kept) >= 3:
        return radial(topology, kept)
    return layered(topology, kept)
