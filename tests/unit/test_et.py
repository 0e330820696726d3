"""``hpcmoe et``: what it counts, shows and finds wrong."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcmoe import chakra, cli
from hpcmoe.chakra_schema import GlobalMetadata, Node
from hpcmoe.trace import CollectiveType, NodeType

Write = Callable[..., str]


def node(id: int, kind: int, *, deps: tuple[int, ...] = (), **attributes: Any) -> Any:
    """A message; numbers become int64, texts strings, lists flags. ``size`` is comm_size."""
    message = Node(id=id, type=kind, name=f"n{id}", data_deps=deps)
    for name, value in attributes.items():
        attribute = message.attr.add(name={"size": "comm_size"}.get(name, name))
        if isinstance(value, list):
            attribute.bool_list.values.extend(value)
        elif isinstance(value, bool):
            attribute.bool_val = value
        elif isinstance(value, str):
            attribute.string_val = value
        else:
            attribute.int64_val = value
    return message


def comp(id: int, **fields: Any) -> Any:
    return node(id, NodeType.COMP, **{"num_ops": 10, "tensor_size": 2, **fields})


def coll(id: int, size: int = 64, kind: int = CollectiveType.ALL_REDUCE, **fields: Any) -> Any:
    return node(id, NodeType.COMM_COLL, comm_type=kind, size=size, **fields)


def send(id: int, to: int, size: int = 100, tag: int = 5, **fields: Any) -> Any:
    return node(id, NodeType.COMM_SEND, comm_dst=to, comm_tag=tag, size=size, **fields)


def receive(id: int, source: int, size: int = 100, tag: int = 5, **fields: Any) -> Any:
    return node(id, NodeType.COMM_RECV, comm_src=source, comm_tag=tag, size=size, **fields)


def groups(id: int, text: str) -> Any:
    message = node(id, NodeType.METADATA)
    message.inputs.values = text
    return message


def encoded(*messages: Any) -> bytes:
    records = [message.SerializeToString() for message in (GlobalMetadata(version="0.0.4"), *messages)]
    return b"".join(chakra._encode_varint(len(record)) + record for record in records)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes et.<rank>.et in the working directory, one list of messages or one text of bytes per rank."""
    monkeypatch.chdir(tmp_path)

    def write_files(*ranks: Any) -> str:
        for rank, content in enumerate(ranks):
            data = content if isinstance(content, bytes) else encoded(*content)
            Path(f"et.{rank}.et").write_bytes(data)
        return "et"

    return write_files


def exit_code(arguments: list[str]) -> int:
    """The parser's own errors end the program."""
    try:
        return cli.main(arguments)
    except SystemExit as stopped:
        return int(stopped.code or 0)


def test_info_counts_what_was_written(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        [comp(0), coll(1, 4096, deps=(0,)), send(2, 1, 300)],
        [
            comp(0),
            coll(1, 4096, deps=(0,), involved_dim=[False, True], pg_name="2"),
            receive(2, 0, 300),
            comp(3),
        ],
    )
    assert cli.main(["et", "info", "et", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ranks"] == 2
    assert found["schema_versions"] == {"0.0.4": 2}
    assert found["nodes_by_type"] == {"COMM_COLL": 2, "COMM_RECV": 1, "COMM_SEND": 1, "COMP": 3}
    assert found["per_rank"]["nodes"] == {"min": 3, "max": 4}
    assert found["num_ops"] == 30
    assert found["data_deps"] == 2
    assert [(row["dims"], row["group"], row["count"]) for row in found["collectives"]] == [
        ("1", "2", 1),
        ("all", "all ranks", 1),
    ]
    assert found["collective_bytes"] == {"ALL_REDUCE": 8192}
    assert found["message_bytes"] == {"COMM_RECV": 300, "COMM_SEND": 300}


def test_info_of_one_file_in_words(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write([groups(0, PAIR), coll(1, 8), comp(2, is_cpu_op=True)])
    assert cli.main(["et", "info", "et.0.et"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 rank(s), schema version 0.0.4 (1)" in text
    assert "COMP (CPU) 1" in text
    assert "process groups: 1 2 ranks: [0, 1]" in text
    assert "ALL_REDUCE 1 of 8 B, group all ranks, dims all" in text


def test_print_shows_nodes_up_to_a_limit(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write([comp(0), coll(1, 4096, deps=(0,), involved_dim=[True, False]), comp(7, deps=(1,))])
    assert cli.main(["et", "print", "et.0.et", "--limit", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "et.0.et: 3 nodes, schema version 0.0.4"
    expected = "1 COMM_COLL n1 data_deps=0 comm_type=ALL_REDUCE comm_size=4096 involved_dim=[1,0]"
    assert lines[2].split() == expected.split()
    assert lines[-1] == "... and 1 more; --limit shows more"


def test_print_of_one_node_names_who_waits_for_it(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write([comp(0), coll(1, deps=(0,)), comp(7, deps=(0, 1))])
    assert cli.main(["et", "print", "et.0.et", "--node", "0"]) == 0
    text = capsys.readouterr().out
    assert "waited for by      1, 7" in text
    assert "num_ops            10  [int64]" in text


def test_print_as_json(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write([coll(1, pg_name="3")])
    assert cli.main(["et", "print", "et.0.et", "--json", "-"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (found["id"], found["type"], found["attributes"]["pg_name"]) == (1, "COMM_COLL", "3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["print", "et.0.et", "--node", "9"], "et.0.et: --node: no node of this id (got 9); allowed: 0 to 0"),
        (["print", "no.et"], "no.et: neither a trace nor the prefix of one: no no.et.0.et"),
        (["info", "."], ".: a folder: give the traces' prefix; allowed: ./et"),
        (["info", "et.0.et", "et"], "et.0.et: a second trace of rank 0, beside et.0.et"),
        (["print", "et.0.et", "--limit", "-1"], "expected a whole number of at least 0, got '-1'"),
    ],
)
def test_bad_arguments(
    arguments: list[str], message: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write([comp(0)])
    assert exit_code(["et", *arguments]) == 2
    assert message in capsys.readouterr().err


PAIR = """['[{"pg_name": "1", "ranks": [0, 1]}]']"""  # as PyTorch's traces have it: a list of one text


def test_a_sound_set_has_no_problem(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        [groups(0, PAIR), comp(1), coll(2, pg_name="1"), send(3, 1), coll(4)],
        [groups(0, PAIR), comp(1), coll(2, pg_name="1"), receive(3, 0), coll(4)],
    )
    assert cli.main(["et", "validate", "et"]) == 0
    assert capsys.readouterr().out == "et: no problem in 2 readable traces\n"


# What each rank has, and the line about it after the file's name; rank 0's unless a 1 is in front.
BROKEN: dict[str, tuple[list[Any], str]] = {
    "duplicate": (
        [[comp(0), comp(0)]],
        "node 0: id: several nodes have this id (got '2 nodes'); allowed: each id once",
    ),
    "orphan": (
        [[comp(0, deps=(4,))]],
        "node 0: data_deps: depends on a node that does not exist (got 4)",
    ),
    "cycle": (
        [[comp(0), comp(1, deps=(2,)), comp(2, deps=(1,))]],
        "node 1: data_deps: the dependencies form a cycle, of which no node can start (got '1 -> 2 -> 1')",
    ),
    "itself": (
        [[comp(3, deps=(3,))]],
        "node 3: data_deps: the dependencies form a cycle, of which no node can start (got '3 -> 3')",
    ),
    "type": (
        [[node(5, 12)]],
        "node 5: type: unknown node type (got 12); allowed: INVALID (0), META",
    ),
    "collective": (
        [[coll(1, kind=8)]],
        "node 1: comm_type: unsupported collective REDUCE_SCATTER_BLOCK (got 8); allowed: ALL_REDUCE (0), ",
    ),
    "no size": (
        [[node(1, NodeType.COMM_COLL, comm_type=0)]],
        "node 1: comm_size: missing attribute",
    ),
    "size is text": (
        [[coll(1, size="many")]],  # type: ignore[arg-type]
        "node 1: comm_size: not an integer attribute (got 'string_val')",
    ),
    "negative": ([[coll(1, size=-4)]], "node 1: comm_size: out of range (got -4); allowed: 0 to "),
    "no operations": ([[node(0, NodeType.COMP)]], "node 0: num_ops: missing attribute"),
    "lonely send": (
        [[send(0, 1)], [comp(0)]],
        "node 0: comm_tag: no COMM_RECV of rank 1 takes this message (got 5); allowed: one with comm_src 0",
    ),
    "lonely receive": (
        [[comp(0)], [receive(8, 0, tag=2)]],
        "1 node 8: comm_tag: no COMM_SEND of rank 0 sends this message (got 2); allowed: one with comm_dst 1",
    ),
    "sizes": (
        [[send(0, 1, 100)], [receive(0, 0, 99)]],
        "node 0: comm_size: node 0 of rank 1 expects 99 bytes of this message (got 100)",
    ),
    "peer": (
        [[send(0, 7)], [comp(0)]],
        "node 0: comm_dst: the peer is no other rank (got 7); allowed: 0 to 1 but 0",
    ),
    "large message": (
        [[send(0, 1, 2**31)], [receive(0, 0, 2**31)]],
        "node 0: comm_size: a message of this size never completes",
    ),
    "other collective": (
        [[coll(1), coll(2)], [coll(1), coll(2, kind=CollectiveType.ALL_TO_ALL)]],
        "1 node 2: comm_type: collective 1 of ranks 0 to 1 differs (got 'ALL_TO_ALL'); allowed: as ",
    ),
    "other size": (
        [[coll(1, 64)], [coll(1, 65)]],
        "1 node 1: comm_size: collective 0 of ranks 0 to 1 differs (got 65); allowed: as node 1 of",
    ),
    "missing collective": (
        [[coll(1)], [comp(0)]],
        "1 COMM_COLL: collective 0 of ranks 0 to 1 is missing; allowed: as node 1 of rank 0",
    ),
    "unknown group": (
        [[coll(1, pg_name="4")]],
        "node 1: pg_name: unknown communicator group (got 4); allowed: none is defined",
    ),
    "group text": ([[groups(0, "nonsense"), comp(1)]], "node 0: inputs.values: bad process groups"),
    "group name": (
        [[coll(1, pg_name="dp")]],
        "node 1: pg_name: not a group id (got 'dp'); allowed: ",
    ),
    "empty": ([b""], "the trace is empty"),
    "no node": ([[]], "nodes: the trace has no node; allowed: at least one"),
    "cut off": ([encoded(comp(0))[:-3]], "truncated: the record at byte "),
    "compressed": (
        [gzip.compress(encoded(comp(0)))],
        "compressed traces are not read: gunzip it first",
    ),
    "JSON": (
        [b'{\n  "version": "0.0.4"\n}{\n  "id": "0"\n}'],
        "a trace in JSON: only the protobuf form is read, as chakra_converter writes it",
    ),
    "noise": ([bytes(range(200, 256)) * 3], "not a trace: no record length at byte 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_problem_is_a_line(name: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    ranks, message = BROKEN[name]
    write(*ranks)
    assert cli.main(["et", "validate", "et"]) == 2
    rank, text = (1, message[2:]) if message.startswith("1 ") else (0, message)
    out = capsys.readouterr().out
    assert any(line.startswith(f"et.{rank}.et: {text}") for line in out.splitlines()), out


def test_every_problem_is_listed(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    bad = node(4, NodeType.COMM_SEND, comm_dst="x", comm_tag=-1, size=0)
    write([comp(0, deps=(9,)), bad, node(5, 99), comp(6, deps=(7,)), comp(7, deps=(6,))])
    assert cli.main(["et", "validate", "et", "--ranks", "2", "--json", "problems.json"]) == 2
    lines = capsys.readouterr().out.splitlines()
    found = [row["field"] for row in json.loads(Path("problems.json").read_text())["problems"]]
    assert sorted(map(str, found)) == [
        "node 0: data_deps", "node 4: comm_dst", "node 4: comm_size", "node 4: comm_tag",
        "node 5: type", "node 6: data_deps", "rank",
    ]  # fmt: skip
    assert lines[-1] == "et: 7 problems in 1 readable trace"


def test_collectives_over_a_dimension_are_compared_where_it_is_known(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranks 0 and 1 are one pair, 2 and 3 another: only within a pair must they agree."""
    pair = [True, False]
    write(*[[coll(0, 64 + rank // 2, involved_dim=pair)] for rank in range(4)])
    assert cli.main(["et", "validate", "et"]) == 0
    assert "4 collective(s) over some logical dimensions were not compared" in capsys.readouterr().out
    Path("logical.json").write_text('{"logical-dims": ["2", "2"]}')
    arguments = ["et", "validate", "et", "--logical-topology-configuration", "logical.json"]
    assert cli.main(arguments) == 0
    write([coll(0, 64, involved_dim=pair)], [coll(0, 65, involved_dim=pair)])
    assert cli.main(arguments) == 2
    assert "et.1.et: node 0: comm_size" in capsys.readouterr().out


def test_what_compute_nodes_need_depends_on_the_system(write: Write) -> None:
    write([node(0, NodeType.COMP)])
    Path("system.json").write_text('{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1}')
    assert cli.main(["et", "validate", "et"]) == 2
    assert cli.main(["et", "validate", "et", "--system-configuration", "system.json"]) == 0


def test_a_trace_that_the_program_writes_is_sound(tmp_path: Path) -> None:
    arguments = [
        "export",
        "flash/t1/tp8ep4/ring_direct/ib_cc0",
        str(tmp_path),
        "--tokens",
        "64",
        "--layers",
        "1",
    ]
    assert cli.main(arguments) == 0
    logical = ["--logical-topology-configuration", str(tmp_path / "logical.json")]
    assert cli.main(["et", "validate", str(tmp_path / "et"), "--ranks", "32", *logical]) == 0
