from dataclasses import replace
from pathlib import Path

import pytest

from hpcmoe import design, topology
from hpcmoe.errors import InputError
from hpcmoe.topology import Link
from hpcmoe.upstream import read_topology, write_topology

STAR = topology.unnamed(4, [3], [Link(i, 3, 10**9, 5) for i in range(3)])


@pytest.mark.parametrize("name", design.TOPOLOGIES)
def test_wiring_is_the_reference_file(name: str, data: Path, tmp_path: Path) -> None:
    write_topology(topology.build(name, 700), tmp_path / "topology.txt")
    assert (tmp_path / "topology.txt").read_text() == (data / f"upstream/{name}.topology.txt").read_text()


@pytest.mark.parametrize("name", design.TOPOLOGIES)
def test_reading_gives_what_was_built(name: str, data: Path) -> None:
    read, built = read_topology(data / f"upstream/{name}.topology.txt"), topology.build(name, 700)
    assert (read.node_count, read.switch_ids, read.links) == (built.node_count, built.switch_ids, built.links)


@pytest.mark.parametrize(
    ("name", "servers", "kinds"),
    [
        ("t1", 32, {"gpu": 32, "nic": 32, "tor": 1}),
        ("t2", 16, {"gpu": 32, "pcie": 16, "nic": 16, "tor": 1}),
        ("t3", 16, {"gpu": 32, "cpu": 32, "nic": 16, "tor": 1}),
        ("t4", 4, {"gpu": 32, "pcie": 8, "nic": 8, "tor": 1}),
        ("t5", 2, {"gpu": 32, "pcie": 8, "nic": 8, "tor": 1}),
        ("t6", 1, {"gpu": 32, "pcie": 8}),
    ],
)
def test_nodes_and_servers(name: str, servers: int, kinds: dict[str, int]) -> None:
    built = topology.build(name, 700)
    topology.check(built)
    assert {kind: built.node_kinds.count(kind) for kind in built.node_kinds} == kinds
    assert len(set(built.node_names)) == built.node_count == len(built.node_names)
    assert len(set(built.server_of_host)) == servers
    assert built.host_ids == tuple(range(32))
    assert all(len(built.reachable_from(host)) == built.node_count for host in built.host_ids)


def test_names_say_where_a_node_is() -> None:
    t3 = topology.build("t3", 700)
    assert t3.node_names[32:38] == ("cpu0.0", "cpu0.1", "nic0", "cpu1.0", "cpu1.1", "nic1")
    assert t3.node_names[-1] == "tor"


def test_the_network_mode_sets_the_external_delay() -> None:
    t1 = topology.build("t1", 1000)
    assert {link.delay_ns for link in t1.links} == {200, 1000}


def test_paths_inside_and_between_servers() -> None:
    hops = topology.build("t4", 700).switches_from(0)
    assert (hops[1], hops[4], hops[8]) == (1, 2, 5)


def test_hosts_do_not_forward() -> None:
    line = topology.unnamed(3, [], [Link(0, 1, 1, 1), Link(1, 2, 1, 1)])
    assert line.reachable_from(0) == {0, 1}


def test_hosts_may_lie_between_switches() -> None:
    mixed = topology.unnamed(4, [0, 3], [Link(1, 0, 1, 1)])
    assert (mixed.hosts, mixed.host_ids, mixed.is_host(0), mixed.is_host(2)) == (2, (1, 2), False, True)


@pytest.mark.parametrize(
    ("links", "switches", "message"),
    [
        ([Link(0, 0, 1, 1)], (3,), "itself"),
        ([Link(0, 3, 1, 1), Link(3, 0, 1, 1)], (3,), "parallel links: link 0"),
        ([Link(0, 4, 1, 1)], (3,), "out of range"),
        ([Link(0, 3, 1, 1, 1.0)], (3,), "error rate"),
        ([], (7,), "out of range"),
        ([], (3, 3), "twice"),
        ([], (0, 1, 2, 3), "no host"),
    ],
)
def test_impossible_topologies(links: list[Link], switches: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        topology.check(replace(STAR, links=tuple(links), switch_ids=switches), "t.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "node count: the file ends"),
        ("1000000000000 1 1", "node count: too many nodes"),
        ("4 1", "link count: the file ends"),
        ("x 1 1", "node count: bad value"),
        ("4 -1 1", "switch count: bad value"),
        ("2 1 1\n1\n0 1 fast 1us 0", r"link 0 \(0 1\): rate: bad value"),
        ("2 1 1\n1\n0 1 0bps 1us 0", r"link 0 \(0 1\): rate: bad value"),
        ("2 1 1\n1\n0 1 1Gbps long 0", r"link 0 \(0 1\): delay: bad value"),
        ("2 1 1\n1\n0 1 1Gbps 1us", "error rate: the file ends"),
        ("2 1 1\n1\n0 1 1Gbps 1us x", "error rate: bad value"),
        ("2 1 1\n1\n0 5 1Gbps 1us 0", "out of range"),
    ],
)
def test_bad_files_name_file_and_place(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "topology.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_topology(path)
    assert str(path) in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the topology"):
        read_topology(tmp_path / "none.txt")
