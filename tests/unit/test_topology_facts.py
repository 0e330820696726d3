"""What a topology offers, against small graphs that can be worked out by hand, and a plain search."""

import itertools

import pytest

from hpcmoe import topology, topology_facts
from hpcmoe.topology import Link, Topology
from hpcmoe.topology_facts import LinkKind, Tier

G = 10**9
# Two switches with two hosts each, joined by a thin link.
DUMBBELL = topology.unnamed(
    6, [4, 5], [*(Link(host, 4 + host // 2, 8 * G, 1) for host in range(4)), Link(4, 5, 3 * G, 1)]
)


def test_bisection_of_a_dumbbell_is_its_bar() -> None:
    assert topology_facts.bisection_bps(DUMBBELL) == 3 * G


def test_bisection_adds_up_ways_around() -> None:
    more = topology.unnamed(7, [4, 5, 6], [*DUMBBELL.links, Link(4, 6, 2 * G, 1), Link(6, 5, 9 * G, 1)])
    assert topology_facts.bisection_bps(more) == 5 * G


@pytest.mark.parametrize(
    ("name", "gbps"),
    [
        ("t1", 16 * 400), ("t4", 4 * 400), ("t5", 4 * 400), ("t6", 16 * 400),
        ("dgx_rail_64", 32 * 400), ("leaf_spine_1024", 512 * 400), ("validation32", 8 * 400),
    ],
)  # fmt: skip
def test_bisection_of_the_catalog(name: str, gbps: int) -> None:
    """As many NICs as half of the cluster has; on t6 the links between four and four PCIe switches."""
    assert topology_facts.bisection_bps(topology.build(name, 700)) == gbps * G


def test_tiers_of_a_dumbbell_and_a_cluster() -> None:
    assert topology_facts.tiers(DUMBBELL) == [
        Tier("switch", 1, 2, 32 * G, 0)
    ]  # the bar goes neither up nor down
    found = {tier.kind: tier.oversubscription for tier in topology_facts.tiers(topology.build("t4", 700))}
    assert found == {"pcie": 4.0, "nic": 512 / 400, "tor": None}


def test_kinds_of_links() -> None:
    found = topology_facts.link_counts(topology.build("t2", 1000))
    assert found == {
        LinkKind("gpu", "pcie", 512 * G, 200): 32,
        LinkKind("pcie", "nic", 512 * G, 200): 16,
        LinkKind("nic", "tor", 400 * G, 1000): 16,
    }


@pytest.mark.parametrize("name", ["t3", "t5", "dgx_rail_64", "leaf_spine_64"])
def test_links_apart_are_those_of_a_plain_search(name: str) -> None:
    graph = topology.build(name, 700)
    for src, dst in itertools.product(graph.host_ids, repeat=2):
        expected = 0 if src == dst else graph.switches_from(src)[dst] + 1
        assert graph.links_apart[src, dst] == expected


def test_hosts_in_the_way_are_no_path() -> None:
    line = topology.unnamed(3, [], [Link(0, 1, 1, 1), Link(1, 2, 1, 1)])
    assert line.links_apart.tolist() == [[0, 1, -1], [1, 0, 1], [-1, 1, 0]]
    assert topology_facts.switches_between_hosts(line) == {-1: 2, 0: 4}


def test_no_links_at_all() -> None:
    alone = Topology(2, (), (), ("a0", "a1"), ("a", "a"))
    assert alone.links_apart.tolist() == [[0, -1], [-1, 0]]
    assert topology_facts.bisection_bps(alone) == 0


def test_buffers_smaller_than_what_ports_set_aside() -> None:
    """A port sets three bandwidth-delay products aside, 150 kB at 400 Gbps and 1 us, and 4096 bytes."""
    hub = topology.unnamed(4, [3], [Link(i, 3, 400 * G, 1000) for i in range(3)])
    enough = 3 * (150_000 + 4096)
    assert topology_facts.buffer_remarks(hub, enough, 3.0) == []
    (text,) = topology_facts.buffer_remarks(hub, enough - 1, 3.0)
    assert text.startswith("PFC never acts on 1 switches: the ports of switch3 set 0.462288 MB aside")


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (DUMBBELL, ["no ECN thresholds for 3 Gbps", "no ECN thresholds for 8 Gbps"]),
        (topology.unnamed(3, [], [Link(0, 1, 1, 1)]), ["4 ordered pairs of hosts have no path"]),
        (
            topology.build("t3", 700),
            [f"{3 / 4 * 32 * 30 / (32 * 31):.1%} of host pairs are more than 5 switches apart: under HPCC"],
        ),
        (topology.build("dgx_rail_64", 700), []),
    ],
)
def test_remarks(graph: Topology, words: list[str]) -> None:
    found = topology_facts.remarks(graph)
    assert len(found) == len(words)
    assert all(text.startswith(start) for text, start in zip(found, words, strict=True)), found
