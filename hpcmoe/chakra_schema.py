"""The Chakra trace messages as protobuf classes, built at import from the tables below.

Names and numbers are those of the MLCommons Chakra schema, so the files are wire-compatible. The
descriptors live in a pool of their own: loading another package's Chakra schema does not collide.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "ChakraProtoMsg"

_Field = descriptor_pb2.FieldDescriptorProto

# Kinds of attribute values, in the order of their field numbers: kind_val = 3, kind_list = 4, ...
ATTRIBUTE_KINDS = (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64",
    "fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
)  # fmt: skip

NODE_TYPES = (
    "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE",
)  # fmt: skip

COLLECTIVE_TYPES = (
    "ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL",
    "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER",
)  # fmt: skip

# message -> (number, name, type, repeated); a type that is no scalar is a message or enumeration.
_MESSAGES: dict[str, tuple[tuple[int, str, str, bool], ...]] = {
    "GlobalMetadata": ((1, "version", "string", False), (2, "attr", "AttributeProto", True)),
    "IOInfo": (
        (1, "values", "string", False),
        (2, "shapes", "string", False),
        (3, "types", "string", False),
    ),
    "Node": (
        (1, "id", "uint64", False),
        (2, "name", "string", False),
        (3, "type", "NodeType", False),
        (4, "ctrl_deps", "uint64", True),
        (5, "data_deps", "uint64", True),
        (6, "start_time_micros", "uint64", False),
        (7, "duration_micros", "uint64", False),
        (8, "inputs", "IOInfo", False),
        (9, "outputs", "IOInfo", False),
        (10, "attr", "AttributeProto", True),
    ),
}


def _list_name(kind: str) -> str:
    return kind.capitalize() + "List"


def _add_field(message: Any, number: int, name: str, kind: str, repeated: bool) -> Any:
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind in ATTRIBUTE_KINDS:
        field.type = getattr(_Field, f"TYPE_{kind.upper()}")
    else:
        field.type = _Field.TYPE_ENUM if kind == "NodeType" else _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"
    return field


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package=PACKAGE, syntax="proto3")
    for enum_name, values in (("NodeType", NODE_TYPES), ("CollectiveCommType", COLLECTIVE_TYPES)):
        enum = file.enum_type.add(name=enum_name)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for kind in ATTRIBUTE_KINDS:
        _add_field(file.message_type.add(name=_list_name(kind)), 1, "values", kind, True)
    _add_attribute(file.message_type.add(name="AttributeProto"))
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    return file


def _add_attribute(message: Any) -> None:
    _add_field(message, 1, "name", "string", False)
    _add_field(message, 2, "doc_string", "string", False)
    message.oneof_decl.add(name="value")
    for i, kind in enumerate(ATTRIBUTE_KINDS):
        _add_field(message, 3 + 2 * i, f"{kind}_val", kind, False).oneof_index = 0
        _add_field(message, 4 + 2 * i, f"{kind}_list", _list_name(kind), False).oneof_index = 0


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    names = ("GlobalMetadata", "Node", "AttributeProto", "IOInfo")
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in names
    }


_CLASSES = _classes()
GlobalMetadata: Any = _CLASSES["GlobalMetadata"]
Node: Any = _CLASSES["Node"]
AttributeProto: Any = _CLASSES["AttributeProto"]
IOInfo: Any = _CLASSES["IOInfo"]
