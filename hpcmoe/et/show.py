"""Nodes of a trace as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.json_format import MessageToDict

from hpcmoe.errors import InputError
from hpcmoe.et import files
from hpcmoe.et.files import RawTrace
from hpcmoe.trace import NodeType


def choose(trace: RawTrace, node: int | None, limit: int | None) -> list[Any]:
    """The messages to show, in file order: those of id ``node`` (a faulty file may have several), or the
    first ``limit``. InputError when there is no node of that id."""
    if node is None:
        return trace.nodes[:limit]
    found = [message for message in trace.nodes if message.id == node]
    if not found:
        ids = sorted(message.id for message in trace.nodes)
        allowed = f"{ids[0]} to {ids[-1]}" if ids else "none: the trace is empty"
        raise InputError("no node of this id", file=trace.path, field="--node", value=node, allowed=allowed)
    return found


def line(message: Any) -> str:
    """One node in one line: id, type, name, what it waits for, and its attributes."""
    parts = [f"{message.id:>6} {files.type_name(message.type):<10} {message.name}"]
    for name in ("data_deps", "ctrl_deps"):
        ids = getattr(message, name)
        if ids:
            parts.append(f"{name}={','.join(map(str, ids))}")
    if message.duration_micros:
        parts.append(f"duration_us={message.duration_micros}")
    values = files.attributes(message)
    parts += [f"{name}={value_text(message.type, name, value)}" for name, value in values.items()]
    return "  ".join(parts)


def value_text(node_type: int, name: str, value: Any) -> str:
    """An attribute's value, a collective's type by its name."""
    if name == "comm_type" and node_type == NodeType.COMM_COLL:
        return files.collective_name(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(str(int(v)) if isinstance(v, bool) else str(v) for v in value) + "]"
    return repr(value) if isinstance(value, (str, bytes)) else str(value)


def details(trace: RawTrace, message: Any) -> Iterator[str]:
    """One node in full: every field that is set, the kinds of its attributes, and who waits for it."""
    yield f"node {message.id}: {files.type_name(message.type)} {message.name!r}"
    for name in ("start_time_micros", "duration_micros"):
        yield f"  {name:<18} {getattr(message, name)}"
    children = [other.id for other in trace.nodes if message.id in (*other.data_deps, *other.ctrl_deps)]
    for name, ids in (
        ("data_deps", message.data_deps),
        ("ctrl_deps", message.ctrl_deps),
        ("waited for by", children),
    ):
        yield f"  {name:<18} {', '.join(map(str, ids)) or 'none'}"
    for name in ("inputs", "outputs"):
        for part in ("values", "shapes", "types"):
            text = getattr(getattr(message, name), part)
            if text:
                yield f"  {name + '.' + part:<18} {text}"
    for attribute in message.attr:
        value = value_text(message.type, attribute.name, files.attributes(message)[attribute.name])
        about = f"  ({attribute.doc_string})" if attribute.doc_string else ""
        yield f"  {attribute.name:<18} {value}  [{files.kind_of(attribute)}]{about}"


def to_json(message: Any) -> dict[str, Any]:
    """A node as in the schema's own JSON form, its attributes as one mapping."""
    fields: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    fields.pop("attr", None)
    values = files.attributes(message)
    plain = {name: files.plain(value) for name, value in values.items()}
    ids = {name: [int(id) for id in getattr(message, name)] for name in ("data_deps", "ctrl_deps")}
    return {
        **fields,
        "id": int(message.id),
        "type": files.type_name(message.type),
        **ids,
        "attributes": plain,
    }
