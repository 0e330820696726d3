"""Everything that is wrong with one trace, not only the first fault that a run would stop at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hpcmoe.chakra_nodes import Needs, convert_node, process_groups
from hpcmoe.errors import InputError
from hpcmoe.et.files import RawTrace
from hpcmoe.trace import NodeType, TraceNode, find_cycle

_MOST_CYCLES = 100


@dataclass
class Checked:
    """One trace: its faults, remarks on what is read all the same, its nodes by ascending id as the simulator
    would take them, and the communicator groups that it defines (empty list: all ranks)."""

    trace: RawTrace
    faults: list[InputError] = field(default_factory=list)
    remarks: list[InputError] = field(default_factory=list)
    nodes: list[TraceNode] = field(default_factory=list)
    groups: dict[int, list[int]] = field(default_factory=dict)

    def remark(self, text: str, node: int, name: str, value: Any) -> None:
        self.remarks.append(InputError(text, file=self.trace.path, field=f"node {node}: {name}", value=value))

    def fault(self, text: str, node: int | None, name: str, value: Any = None, allowed: Any = None) -> None:
        where = name if node is None else f"node {node}: {name}"
        self.faults.append(InputError(text, file=self.trace.path, field=where, value=value, allowed=allowed))


ABSENT = "depends on a node that does not exist: ignored here, and refused by ASTRA-sim"


def check(trace: RawTrace, needs: Needs) -> Checked:
    """Faults of the trace alone; those between ranks are found by ``hpcmoe.et.between``."""
    found = Checked(trace)
    if not trace.nodes:
        found.fault("the trace has no node", None, "nodes", allowed="at least one")
    for message in trace.nodes:
        found.nodes.append(convert_node(message, str(trace.path), trace.rank, needs, found.faults))
        if message.type == NodeType.METADATA:
            _take_groups(found, message)
    found.nodes.sort(key=lambda node: node.id)
    _check_ids(found)
    _check_parents(found)
    return found


def _take_groups(found: Checked, message: Any) -> None:
    try:
        found.groups.update(process_groups(message, str(found.trace.path)))
    except InputError as error:
        found.faults.append(error)


def _check_ids(found: Checked) -> None:
    for node, count in Counter(message.id for message in found.trace.nodes).items():
        if count > 1:
            found.fault("several nodes have this id", node, "id", f"{count} nodes", "each id once")


def _check_parents(found: Checked) -> None:
    known = {message.id for message in found.trace.nodes}
    parents: dict[int, set[int]] = {node: set() for node in sorted(known)}
    for message in found.trace.nodes:
        for name in ("data_deps", "ctrl_deps"):
            for parent in sorted(set(getattr(message, name))):
                if parent in known:
                    parents[message.id].add(parent)
                elif name == "ctrl_deps" and parent not in message.data_deps:
                    found.remark(ABSENT, message.id, name, parent)
                else:
                    found.fault(
                        "depends on a node that does not exist", message.id, name, parent, "ids of this file"
                    )
    for cycle in _cycles(parents):
        text = " -> ".join(map(str, [*cycle, cycle[0]]))
        found.fault("the dependencies form a cycle, of which no node can start", cycle[0], "data_deps", text)


def _cycles(parents: dict[int, set[int]]) -> Iterator[list[int]]:
    """Cycles of ids, each broken at its first edge before the next is looked for."""
    ids = list(parents)
    index = {node: i for i, node in enumerate(ids)}
    for _ in range(_MOST_CYCLES):
        cycle = find_cycle([[index[parent] for parent in parents[node]] for node in ids])
        if not cycle:
            return
        named = [ids[i] for i in cycle]
        yield named
        parents[named[0]].discard(named[1 % len(named)])
