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
    """The attributes of one node; the first of a name counts."""

    def __init__(self, message: Any, file: str) -> None:
        self._file = file
        self._node = int(message.id)
        self._by_name: dict[str, Any] = {}
        for attribute in message.attr:
            self._by_name.setdefault(attribute.name, attribute)

    def error(self, text: str, name: str, value: Any = None, allowed: Any = None) -> InputError:
        field = f"node {self._node}: {name}"
        return InputError(text, file=self._file, field=field, value=value, allowed=allowed)

    def integer(self, name: str, maximum: int, default: int | None = None) -> int:
        """Any integer or bool kind; required if there is no default."""
        attribute = self._by_name.get(name)
        if attribute is None:
            if default is None:
                raise self.error("missing attribute", name)
            return default
        kind = attribute.WhichOneof("value")
        if kind not in _INTEGERS:
            raise self.error("not an integer attribute", name, kind or "no value")
        value = int(getattr(attribute, kind))
        if not 0 <= value <= maximum:
            raise self.error("out of range", name, value, f"0 to {maximum}")
        return value

    def text(self, name: str) -> str:
        attribute = self._by_name.get(name)
        if attribute is None:
            return ""
        if attribute.WhichOneof("value") != "string_val":
            raise self.error("not a string attribute", name, attribute.WhichOneof("value") or "no value")
        return str(attribute.string_val)

    def dims(self) -> int:
        """involved_dim as bits; absent means four true flags."""
        attribute = self._by_name.get("involved_dim")
        if attribute is None:
            return ALL_DIMS
        if attribute.WhichOneof("value") != "bool_list":
            raise self.error("not a bool_list", "involved_dim", attribute.WhichOneof("value") or "no value")
        flags = attribute.bool_list.values
        if len(flags) > _MAX_DIMS:
            raise self.error("too many dimensions", "involved_dim", len(flags), f"up to {_MAX_DIMS}")
        return sum(1 << k for k, flag in enumerate(flags) if flag)

    def group(self) -> int:
        """pg_name; '' and '0' are all ranks."""
        name = self.text("pg_name")
        if not name:
            return 0
        if not _GROUP.fullmatch(name) or int(name) > _MAX_GROUP:
            raise self.error("not a group id", "pg_name", name, "decimal integers")
        return int(name)


def convert_node(message: Any, file: str, rank: int, needs: Needs) -> TraceNode:
    """A node without name and parents. InputError names file, node and attribute."""
    attributes = _Attributes(message, file)
    try:
        kind = NodeType(message.type)
    except ValueError as error:
        allowed = [f"{member.name} ({member.value})" for member in NodeType]
        raise attributes.error("unknown node type", "type", message.type, allowed) from error
    node = TraceNode(id=message.id, type=kind, duration_us=message.duration_micros)
    node.is_cpu_op = bool(attributes.integer("is_cpu_op", 1, default=0))
    if needs.replay_only:
        return node
    if kind == NodeType.COMP:
        _computation(node, attributes, needs)
    elif kind in _MEMORY:
        node.tensor_bytes = attributes.integer("tensor_size", U64)
    elif kind in _COMMUNICATION:
        _communication(node, attributes, rank)
    return node


def _computation(node: TraceNode, attributes: _Attributes, needs: Needs) -> None:
    default = None if needs.roofline and not node.is_cpu_op else 0
    node.num_ops = attributes.integer("num_ops", U64, default)
    node.tensor_bytes = attributes.integer("tensor_size", U64, default)
    if default is None and node.num_ops == 0 and node.tensor_bytes > 0:
        raise attributes.error("a roofline node with bytes needs operations", "num_ops", 0, "integers from 1")


def _communication(node: TraceNode, attributes: _Attributes, rank: int) -> None:
    if node.is_cpu_op:
        raise attributes.error("a communication node cannot run on the CPU", "is_cpu_op", True, "false")
    if node.type == NodeType.COMM_COLL:
        _collective(node, attributes)
    else:
        _point_to_point(node, attributes, rank)


def _collective(node: TraceNode, attributes: _Attributes) -> None:
    value = attributes.integer("comm_type", U32)
    if value not in CollectiveType.__members__.values():
        name = COLLECTIVE_TYPES[value] if value < len(COLLECTIVE_TYPES) else "unknown"
        allowed = [f"{member.name} ({member.value})" for member in CollectiveType]
        raise attributes.error(f"unsupported collective {name}", "comm_type", value, allowed)
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
        raise attributes.error("names another rank than the trace's own", own, named, str(rank))
    node.peer = attributes.integer(other, U32)
    node.tag = attributes.integer("comm_tag", U32)
    node.comm_bytes = attributes.integer("comm_size", U64)
    if not 0 < node.comm_bytes <= _MAX_MESSAGE_BYTES:
        allowed = f"1 to {_MAX_MESSAGE_BYTES}"
        raise attributes.error(
            "a message of this size never completes", "comm_size", node.comm_bytes, allowed
        )


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
