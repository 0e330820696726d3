"""From a Chakra Node message to a TraceNode: which attributes each type needs and how they convert."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hpcmoe.chakra_schema import COLLECTIVE_TYPES
from hpcmoe.errors import InputError
from hpcmoe.parameters import U32, U64
from hpcmoe.trace import ALL_DIMS, CollectiveType, NodeType, TraceNode

_INTEGERS = frozenset(
    f"{kind}_val"
    for kind in ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
                 "sfixed64", "bool")
)  # fmt: skip
_MEMORY = (NodeType.MEM_LOAD, NodeType.MEM_STORE)
_COMMUNICATION = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)
_MAX_MESSAGE_BYTES = 2**31 - 1
_MAX_DIMS = 32
_MAX_GROUP = 2**31 - 1
_GROUP = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Needs:
    """What the system layer will read: attributes that it does not read may be missing."""

    roofline: bool = True
    replay_only: bool = False


class _Attributes:
    """The attributes of one node; the first of a name counts. A fault is raised, or kept where there is a
    list of ``faults`` to keep it in; a neutral value then stands for the faulty one."""

    def __init__(self, message: Any, file: str, faults: list[InputError] | None) -> None:
        self._file = file
        self._node = int(message.id)
        self._faults = faults
        self._by_name: dict[str, Any] = {}
        for attribute in message.attr:
            self._by_name.setdefault(attribute.name, attribute)

    def fail(self, text: str, name: str, value: Any = None, allowed: Any = None) -> None:
        field = f"node {self._node}: {name}"
        error = InputError(text, file=self._file, field=field, value=value, allowed=allowed)
        if self._faults is None:
            raise error
        if all(known.field != field for known in self._faults):
            self._faults.append(error)

    def integer(self, name: str, maximum: int, default: int | None = None) -> int:
        """Any integer or bool kind; required if there is no default."""
        attribute = self._by_name.get(name)
        if attribute is None:
            if default is None:
                self.fail("missing attribute", name)
            return default or 0
        kind = attribute.WhichOneof("value")
        if kind not in _INTEGERS:
            self.fail("not an integer attribute", name, kind or "no value", "an integer such as int64_val")
            return 0
        value = int(getattr(attribute, kind))
        if not 0 <= value <= maximum:
            self.fail("out of range", name, value, f"0 to {maximum}")
            return 0
        return value

    def text(self, name: str) -> str:
        attribute = self._by_name.get(name)
        if attribute is None:
            return ""
        kind = attribute.WhichOneof("value")
        if kind != "string_val":
            self.fail("not a string attribute", name, kind or "no value", "string_val")
            return ""
        return str(attribute.string_val)

    def dims(self) -> int:
        """involved_dim as bits; absent means four true flags."""
        attribute = self._by_name.get("involved_dim")
        if attribute is None:
            return ALL_DIMS
        kind = attribute.WhichOneof("value")
        if kind != "bool_list":
            self.fail("not a bool_list", "involved_dim", kind or "no value", "a flag per logical dimension")
            return ALL_DIMS
        flags = attribute.bool_list.values
        if len(flags) > _MAX_DIMS:
            self.fail("too many dimensions", "involved_dim", len(flags), f"up to {_MAX_DIMS}")
            return ALL_DIMS
        return sum(1 << k for k, flag in enumerate(flags) if flag)

    def group(self) -> int:
        """pg_name; '' and '0' are all ranks."""
        name = self.text("pg_name")
        if not name:
            return 0
        if not _GROUP.fullmatch(name) or int(name) > _MAX_GROUP:
            self.fail("not a group id", "pg_name", name, "decimal integers")
            return 0
        return int(name)


def convert_node(
    message: Any, file: str, rank: int, needs: Needs, faults: list[InputError] | None = None
) -> TraceNode:
    """A node without name and parents. InputError names file, node and attribute; with ``faults`` all of
    a node's errors go into that list instead."""
    attributes = _Attributes(message, file, faults)
    node = TraceNode(id=message.id, type=message.type, duration_us=message.duration_micros)
    if message.type not in NodeType.__members__.values():
        allowed = [f"{member.name} ({member.value})" for member in NodeType]
        attributes.fail("unknown node type", "type", message.type, allowed)
        return node
    node.type = NodeType(message.type)
    node.is_cpu_op = bool(attributes.integer("is_cpu_op", 1, default=0))
    if needs.replay_only:
        return node
    if node.type == NodeType.COMP:
        _computation(node, attributes, needs)
    elif node.type in _MEMORY:
        node.tensor_bytes = attributes.integer("tensor_size", U64)
    elif node.type in _COMMUNICATION:
        _communication(node, attributes, rank)
    return node


def _computation(node: TraceNode, attributes: _Attributes, needs: Needs) -> None:
    default = None if needs.roofline and not node.is_cpu_op else 0
    node.num_ops = attributes.integer("num_ops", U64, default)
    node.tensor_bytes = attributes.integer("tensor_size", U64, default)
    if default is None and node.num_ops == 0 and node.tensor_bytes > 0:
        attributes.fail("a roofline node with bytes needs operations", "num_ops", 0, "integers from 1")


def _communication(node: TraceNode, attributes: _Attributes, rank: int) -> None:
    if node.is_cpu_op:
        attributes.fail("a communication node cannot run on the CPU", "is_cpu_op", True, "false")
    if node.type == NodeType.COMM_COLL:
        _collective(node, attributes)
    else:
        _point_to_point(node, attributes, rank)


def _collective(node: TraceNode, attributes: _Attributes) -> None:
    value = attributes.integer("comm_type", U32)
    if value not in CollectiveType.__members__.values():
        name = COLLECTIVE_TYPES[value] if value < len(COLLECTIVE_TYPES) else "unknown"
        allowed = [f"{member.name} ({member.value})" for member in CollectiveType]
        attributes.fail(f"unsupported collective {name}", "comm_type", value, allowed)
    node.comm_type = value
    node.comm_bytes = attributes.integer("comm_size", U64, 0 if value == CollectiveType.BARRIER else None)
    node.comm_priority = attributes.integer("comm_priority", U32, 0)
    node.involved_dims = attributes.dims()
    node.group = attributes.group()


def _point_to_point(node: TraceNode, attributes: _Attributes, rank: int) -> None:
    sending = node.type == NodeType.COMM_SEND
    own, other = ("comm_src", "comm_dst") if sending else ("comm_dst", "comm_src")
    named = attributes.integer(own, U32, rank)
    if named != rank:
        attributes.fail("names another rank than the trace's own", own, named, str(rank))
    node.peer = attributes.integer(other, U32)
    node.tag = attributes.integer("comm_tag", U32)
    node.comm_bytes = attributes.integer("comm_size", U64)
    if not 0 < node.comm_bytes <= _MAX_MESSAGE_BYTES:
        allowed = f"1 to {_MAX_MESSAGE_BYTES}"
        attributes.fail("a message of this size never completes", "comm_size", node.comm_bytes, allowed)


def process_groups(message: Any, file: str) -> dict[int, list[int]]:
    """Groups that a METADATA node defines; its text is a JSON array inside two characters on each side."""
    text = message.inputs.values
    if not text:
        return {}
    field = f"node {message.id}: inputs.values"
    try:
        return dict(_process_group(entry) for entry in json.loads(text[2:-2]))
    except (ValueError, TypeError, KeyError) as error:
        allowed = 'a JSON array of {"pg_name": "1", "ranks": [0, 1]}'
        raise InputError("bad process groups", file=file, field=field, value=text, allowed=allowed) from error


def _process_group(entry: dict[str, Any]) -> tuple[int, list[int]]:
    group, ranks = int(entry["pg_name"]), [int(rank) for rank in entry["ranks"]]
    if not 0 <= group <= _MAX_GROUP or min(ranks, default=0) < 0:
        raise ValueError(group)
    return group, ranks
