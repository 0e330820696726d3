"""One rank's execution trace as plain arrays; what every field means is in astra-sim/workload/trace.hh."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

ALL_DIMS = 0xF  # the involved_dim of a node that names none: four flags


class NodeType(IntEnum):
    """Node types of the Chakra schema."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class CollectiveType(IntEnum):
    """The collectives that can be simulated, with the values of the Chakra schema."""

    ALL_REDUCE = 0
    ALL_GATHER = 2
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    BARRIER = 9


@dataclass(slots=True)
class TraceNode:
    """A node before it goes into the arrays; ``parents`` are node ids."""

    id: int
    type: int
    name: str = ""
    parents: Sequence[int] = ()
    duration_us: int = 0
    num_ops: int = 0
    tensor_bytes: int = 0
    comm_bytes: int = 0
    comm_priority: int = 0
    peer: int = 0
    tag: int = 0
    involved_dims: int = ALL_DIMS
    group: int = 0
    layer: int = -1
    comm_type: int = 0
    is_cpu_op: bool = False


_DTYPES: dict[str, type] = {
    "id": np.uint64,
    "duration_us": np.uint64,
    "num_ops": np.uint64,
    "tensor_bytes": np.uint64,
    "comm_bytes": np.uint64,
    "comm_priority": np.uint32,
    "peer": np.uint32,
    "tag": np.uint32,
    "involved_dims": np.uint32,
    "group": np.int32,
    "layer": np.int32,
    "type": np.uint8,
    "comm_type": np.uint8,
    "is_cpu_op": np.bool_,
}


@dataclass(frozen=True, eq=False)
class TraceGraph:
    """Arrays with one entry per node, ascending by id.

    The parents of node i are the *indices* ``parents[parent_begin[i]:parent_begin[i + 1]]``.
    ``names`` is for people and files; nothing in the simulation depends on it.
    """

    id: np.ndarray
    duration_us: np.ndarray
    num_ops: np.ndarray
    tensor_bytes: np.ndarray
    comm_bytes: np.ndarray
    comm_priority: np.ndarray
    peer: np.ndarray
    tag: np.ndarray
    involved_dims: np.ndarray
    group: np.ndarray
    layer: np.ndarray
    type: np.ndarray
    comm_type: np.ndarray
    is_cpu_op: np.ndarray
    parent_begin: np.ndarray
    parents: np.ndarray
    names: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_nodes(cls, nodes: Iterable[TraceNode]) -> TraceGraph:
        """Arrays of nodes with distinct ids whose parents all exist."""
        ordered = sorted(nodes, key=lambda node: node.id)
        index = {node.id: i for i, node in enumerate(ordered)}
        arrays: dict[str, np.ndarray] = {
            name: np.array([getattr(node, name) for node in ordered], dtype=dtype)
            for name, dtype in _DTYPES.items()
        }
        parents = [sorted({index[parent] for parent in node.parents}) for node in ordered]
        begin = np.zeros(len(ordered) + 1, dtype=np.uint32)
        np.cumsum([len(p) for p in parents], out=begin[1:])
        flat = np.array([i for p in parents for i in p], dtype=np.uint32)
        return cls(**arrays, parent_begin=begin, parents=flat, names=tuple(node.name for node in ordered))

    def __len__(self) -> int:
        return len(self.id)

    def parents_of(self, i: int) -> np.ndarray:
        """Indices of the parents of the node at index i."""
        return self.parents[self.parent_begin[i] : self.parent_begin[i + 1]]

    def without_empty_nodes(self) -> TraceGraph:
        """The graph without INVALID and METADATA nodes, which do nothing: who waits for one waits for what it
        waits for. The graph itself where there are none, or nothing else."""
        empty = np.isin(self.type, (NodeType.INVALID, NodeType.METADATA))
        if not empty.any() or empty.all():
            return self
        kept = np.flatnonzero(~empty)
        position = np.cumsum(~empty) - 1
        parents = [sorted(position[list(self._effective_parents(i, empty))]) for i in kept.tolist()]
        begin = np.zeros(len(kept) + 1, dtype=np.uint32)
        np.cumsum([len(p) for p in parents], out=begin[1:])
        flat = np.array([i for p in parents for i in p], dtype=np.uint32)
        columns = {name: getattr(self, name)[kept] for name in _DTYPES}
        names = tuple(self.names[i] for i in kept.tolist()) if self.names else ()
        return TraceGraph(**columns, parent_begin=begin, parents=flat, names=names)

    def _effective_parents(self, node: int, empty: np.ndarray) -> set[int]:
        """Parents of a node, and in place of empty ones theirs."""
        found: set[int] = set()
        seen: set[int] = set()
        waiting = self.parents_of(node).tolist()
        while waiting:
            parent = waiting.pop()
            if parent not in seen:
                seen.add(parent)
                if empty[parent]:
                    waiting += self.parents_of(parent).tolist()
                else:
                    found.add(parent)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array by name, in a fixed order."""
        return {name: getattr(self, name) for name in (*_DTYPES, "parent_begin", "parents")}

    def digest(self) -> str:
        """Hex sha256 over all arrays; the same on every machine."""
        state = hashlib.sha256()
        for name, array in self.arrays().items():
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            state.update(f"{name} {len(array)} {little.dtype.str}\n".encode())
            state.update(little.tobytes())
        return state.hexdigest()


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Indices of one dependency cycle, or an empty list. ``parents[i]`` lists indices."""
    children: list[list[int]] = [[] for _ in parents]
    waiting = [len(p) for p in parents]
    for node, node_parents in enumerate(parents):
        for parent in node_parents:
            children[parent].append(node)
    ready = [node for node, count in enumerate(waiting) if count == 0]
    while ready:
        for child in children[ready.pop()]:
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    blocked = {node for node, count in enumerate(waiting) if count > 0}
    return _walk_cycle(parents, blocked)


def _walk_cycle(parents: Sequence[Sequence[int]], blocked: set[int]) -> list[int]:
    """Every blocked node has a blocked parent, so walking up ends in a cycle."""
    if not blocked:
        return []
    path: list[int] = []
    node = min(blocked)
    while node not in path:
        path.append(node)
        node = min(parent for parent in parents[node] if parent in blocked)
    return path[path.index(node) :]
