"""Where the nodes of a topology stand in a drawing, from its links alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from hpcmoe.topology import Topology

Point = tuple[float, float]
Points = Mapping[int, Point]


def servers(topology: Topology) -> dict[int, list[int]]:
    """Nodes of each server: its hosts and every node that they reach without the fabric, ascending."""
    found: dict[int, list[int]] = {}
    fabric = set(topology.fabric_ids)
    for server in sorted(set(topology.server_of_host)):
        reached = {h for h, s in enumerate(topology.server_of_host) if s == server}
        queue = sorted(reached)
        for node in queue:
            for peer in topology.neighbors[node]:
                if peer not in reached and peer not in fabric:
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


def _hosts_below(topology: Topology, level: Mapping[int, int]) -> dict[int, list[int]]:
    """Hosts under each node, going down one level at a time, ascending."""
    found: dict[int, set[int]] = {}
    for node in sorted(level, key=lambda node: (level[node], node)):
        down = [peer for peer in topology.neighbors[node] if level.get(peer, -1) == level[node] - 1]
        found[node] = {node} if level[node] == 0 else set().union(*(found[peer] for peer in down))
    return {node: sorted(hosts) for node, hosts in found.items()}


def _rows(topology: Topology, level: Mapping[int, int]) -> dict[tuple[int, str], list[int]]:
    """Nodes by level and kind, ascending."""
    rows: dict[tuple[int, str], list[int]] = {}
    for node in sorted(level):
        rows.setdefault((level[node], topology.node_kinds[node]), []).append(node)
    return rows


def _heights(rows: Mapping[tuple[int, str], list[int]]) -> dict[int, float]:
    """Each node's level; a level that has several kinds is divided between them."""
    kinds: dict[int, list[str]] = {}
    for level, kind in rows:
        kinds.setdefault(level, []).append(kind)
    return {
        node: level + kinds[level].index(kind) / len(kinds[level])
        for (level, kind), nodes in rows.items()
        for node in nodes
    }


def _across(topology: Topology, level: Mapping[int, int]) -> dict[int, float]:
    """Where each node stands along the hosts, from 0 to 1: a host at its place, another node in the middle of
    the hosts below it. A row whose nodes have hosts between each other's is spread evenly instead."""
    below = _hosts_below(topology, level)
    hosts = [node for node in sorted(level) if level[node] == 0]
    place = {host: (i + 0.5) / len(hosts) for i, host in enumerate(hosts)}
    found = {}
    for nodes in _rows(topology, level).values():
        mixed = any(below[second][0] <= below[first][-1] for first, second in pairwise(nodes))
        for i, node in enumerate(nodes):
            middle = sum(place[host] for host in below[node]) / len(below[node])
            found[node] = (i + 0.5) / len(nodes) if mixed else middle
    return found


def radial(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Hosts on the outer circle in order, every other node inwards of the hosts below it, a fabric of one
    switch in the middle. The outer radius is 1."""
    level = levels(topology, nodes)
    across, height = _across(topology, level), _heights(_rows(topology, level))
    top = max(height.values())
    centred = len(topology.fabric_ids) == 1 and topology.fabric_ids[0] in level
    points = {}
    for node in sorted(level):
        turn = math.pi / 2 - 2 * math.pi * across[node]
        radius = 1 - height[node] / (top + (0 if centred else 1.2))
        points[node] = (radius * math.cos(turn), radius * math.sin(turn))
    return points


def layered(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Hosts in a row at the bottom, every other node a row up, above the hosts below it. x spans -1 to 1."""
    level = levels(topology, nodes)
    across, height = _across(topology, level), _heights(_rows(topology, level))
    return {node: (2 * across[node] - 1, 0.7 * height[node]) for node in sorted(level)}


def server_points(topology: Topology, nodes: Iterable[int]) -> dict[int, Point]:
    """Inside one server: in layers, or round where three or more switches are meshed."""
    kept = set(nodes)
    meshed = [
        link
        for link in topology.links
        if link.src in kept and link.dst in kept and not topology.is_host(link.src)
        and topology.node_kinds[link.src] == topology.node_kinds[link.dst]
    ]  # fmt: skip
    return radial(topology, kept) if len(meshed) >= 3 else layered(topology, kept)
