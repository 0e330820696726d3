"""Paths of flows: the hash, equal-cost hops, and agreement with the bytes that the simulator put on links."""

from pathlib import Path

import numpy as np
import pytest

from hpcmoe import parameters, runner
from hpcmoe.routing import Routes, host_address, murmur3
from hpcmoe.topology import Link, build, unnamed
from hpcmoe.upstream import read_topology

HOST_SEED = 0x8BADF00D


@pytest.mark.parametrize(
    ("src", "dst", "sport", "dport", "seed", "value"),
    [
        (0, 1, 10000, 100, HOST_SEED, 3887419479),
        (1, 0, 100, 10000, HOST_SEED, 2689491449),
        (0, 4, 10000, 100, 16, 4162883797),
        (0, 4, 10001, 100, 16, 1767552784),
        (0, 15, 10000, 100, 16, 1922962854),
        (4, 0, 100, 10000, 17, 2622064476),
        (300, 5, 10007, 100, 1000, 2393538366),
    ],
)
def test_the_hash_of_a_flow(src: int, dst: int, sport: int, dport: int, seed: int, value: int) -> None:
    """Values of upstream's own hash for these nodes and ports."""
    assert murmur3((host_address(src), host_address(dst), sport | dport << 16), seed) == value


def test_equal_hops_are_listed_by_descending_switch(data: Path) -> None:
    """Two tiers, hosts 0 to 15, leaves 16 to 19, spines 20 to 23."""
    topology = read_topology(data / "network" / "ls.txt")
    assert Routes(topology, descending=True).next_hops(16, 4) == [23, 22, 21, 20]
    assert Routes(topology).next_hops(16, 4) == [20, 21, 22, 23]


def test_the_only_path_through_a_server_with_two_cpus() -> None:
    topology = build("t3", 1000)
    routes = Routes(topology)
    names = topology.node_names
    hops = [names[routes.ends[link][1]] for link in routes.data_path(1, 2, 10000)]
    assert hops == ["cpu0.1", "cpu0.0", "nic0", "tor", "nic1", "cpu1.0", "gpu2"]
    back = [routes.ends[link] for link in routes.ack_path(1, 2, 10000)]
    assert back == [
        (b, a) for a, b in reversed([routes.ends[link] for link in routes.data_path(1, 2, 10000)])
    ]


def test_hosts_do_not_forward() -> None:
    chain = unnamed(3, [], [Link(0, 1, 10**9, 10), Link(1, 2, 10**9, 10)])
    with pytest.raises(ValueError, match="no path from node 0 to node 2"):
        Routes(chain).data_path(0, 2, 10000)


@pytest.mark.parametrize("descending", [True, False])
def test_paths_carry_the_bytes_that_the_simulator_counted(data: Path, descending: bool) -> None:
    """Every flow of a two-tier network with four spines: wire bytes per link, data and acknowledgements."""
    topology = read_topology(data / "network" / "ls.txt")
    network = parameters.defaults("study", "network") | {"neighbor_order": 0 if descending else 1}
    flows = np.array([(0, s, d, 2500) for s in range(16) for d in range(16) if s != d], dtype=np.int64)
    rates = {link.rate_bps for link in topology.links}
    result = runner.run_flows(topology, network, [(rate, 10**6, 10**7, 0.1) for rate in rates], flows)
    expected = np.zeros(2 * len(topology.links), dtype=np.int64)
    routes = Routes(topology, descending=descending)
    for row in result.flows:
        flow = int(row["src"]), int(row["dst"]), int(row["sport"])
        expected[list(routes.data_path(*flow))] += 2500 + 3 * 36
        expected[list(routes.ack_path(*flow))] += 3 * 48
    assert result.links["bytes"].astype(np.int64).tolist() == expected.tolist()
