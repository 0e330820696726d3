from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcmoe import scenario_checks, topology
from hpcmoe.errors import InputError
from hpcmoe.scenario import Scenario, scenario_from_key
from hpcmoe.topology import Link
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph, TraceNode

RING, DIRECT, HALVING_DOUBLING, TREE = ((kind, -1, False) for kind in range(4))
ONE_RING = (0, -1, True)


def star(hosts: int, rate_bps: int = 400 * 10**9) -> topology.Topology:
    return topology.unnamed(hosts + 1, [hosts], [Link(i, hosts, rate_bps, 100) for i in range(hosts)])


def graph(*nodes: TraceNode) -> TraceGraph:
    for i, node in enumerate(nodes):
        node.id = i
    return TraceGraph.from_nodes(nodes)


def coll(kind: int = CollectiveType.ALL_REDUCE, **fields: Any) -> TraceNode:
    return TraceNode(0, NodeType.COMM_COLL, comm_type=kind, **{"comm_bytes": 1024, **fields})


@pytest.fixture(scope="module")
def base() -> Scenario:
    """Four ranks [4] on a star with a ring all-reduce; tests change what they are about."""
    made = scenario_from_key("flash/t6/tp2ep16/ring_direct/ib_cc0", tokens=8, layers=1)
    return replace(
        made,
        topology=star(4),
        logical_dims=(4,),
        traces=[graph(coll())] * 4,
        cc_disabled_pairs=None,
        implementations={"all_reduce": [RING], "all_to_all": [DIRECT]},
    )


def refuse(scenario: Scenario, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario_checks.check(scenario)


def test_the_base_is_good(base: Scenario) -> None:
    assert scenario_checks.check(base) == []


def test_ranks_and_traces(base: Scenario) -> None:
    refuse(replace(base, logical_dims=(8,)), "4 traces for 8 ranks")


def test_ranks_and_hosts(base: Scenario) -> None:
    refuse(replace(base, topology=star(3)), "3 hosts for 4 ranks")


def test_ranks_run_on_the_first_nodes(base: Scenario) -> None:
    shifted = topology.unnamed(5, [0], [Link(i, 0, 10**9, 1) for i in range(1, 5)])
    refuse(replace(base, topology=shifted), "node 0 is a switch")


def test_marking_needs_thresholds_of_every_switch_port_rate(base: Scenario) -> None:
    marking = replace(base, network={**base.network, "ecn_enabled": True}, topology=star(4, 33 * 10**9))
    refuse(
        marking,
        r"link host0 to switch4 has a rate without KMIN, KMAX and PMAX .got '33Gbps'.; allowed: rates given",
    )
    assert scenario_checks.check(replace(marking, ecn=[(33 * 10**9, 1, 2, 0.5)])) == []


def test_thresholds_are_not_needed_between_hosts(base: Scenario) -> None:
    direct = topology.unnamed(2, [], [Link(0, 1, 33, 1)])
    scenario_checks.check_network(direct, {**base.network, "ecn_enabled": True}, set())


def test_group_of_one(base: Scenario) -> None:
    refuse(replace(base, traces=[graph(coll(involved_dims=0))] * 4), "a group of one rank never completes")
    one = replace(base, logical_dims=(4, 1), traces=[graph(coll(involved_dims=2))] * 4)
    refuse(replace(one, implementations={"all_reduce": [RING, RING]}), "group of one rank")
    named = replace(base, groups={5: [0]}, traces=[graph(coll(group=5))] + base.traces[1:])
    refuse(named, "rank 0: group 5: .*group of one rank")


def test_an_array_shorter_than_the_dims_covers_only_the_first(base: Scenario) -> None:
    wide = replace(base, logical_dims=(2, 2), implementations={"all_reduce": [RING]})
    assert scenario_checks.check(wide) == []
    refuse(replace(wide, traces=[graph(coll(involved_dims=2))] * 4), "group of one rank")


def test_too_many_algorithms(base: Scenario) -> None:
    refuse(
        replace(base, implementations={"all_reduce": [RING, RING]}), "2 algorithms for 1 logical dimensions"
    )


def test_missing_algorithm(base: Scenario) -> None:
    gather = replace(base, traces=[graph(coll(CollectiveType.ALL_GATHER))] * 4)
    refuse(gather, "all-gather-implementation: the trace uses ALL_GATHER and no algorithm is given")


@pytest.mark.parametrize("algorithm", [HALVING_DOUBLING, TREE])
def test_powers_of_two(base: Scenario, algorithm: tuple[int, int, bool]) -> None:
    def ranks(count: int) -> Scenario:
        return replace(
            base,
            topology=star(count),
            logical_dims=(count,),
            traces=[graph(coll())] * count,
            implementations={"all_reduce": [algorithm]},
        )

    assert scenario_checks.check(ranks(8)) == []
    refuse(ranks(6), "needs a power of two, and a ring of 6 ranks uses it")


def test_only_the_dims_that_are_used_need_a_power_of_two(base: Scenario) -> None:
    wide = replace(
        base,
        topology=star(6),
        logical_dims=(2, 3),
        traces=[graph(coll(involved_dims=1))] * 6,
        implementations={"all_reduce": [TREE, TREE]},
    )
    assert scenario_checks.check(wide) == []


def test_no_halving_doubling_all_to_all(base: Scenario) -> None:
    swap = replace(base, traces=[graph(coll(CollectiveType.ALL_TO_ALL))] * 4)
    refuse(replace(swap, implementations={"all_to_all": [HALVING_DOUBLING]}), "no such all-to-all")


def test_groups(base: Scenario) -> None:
    grouped = replace(base, groups={1: [0, 1], 2: [2, 3]})
    low, high, other = (graph(coll(group=group)) for group in (1, 2, 3))
    assert scenario_checks.check(replace(grouped, traces=[low, low, high, high])) == []
    refuse(replace(grouped, traces=[low] * 4), "rank 2: group 1: the rank is not in the group")
    refuse(replace(grouped, traces=[other] * 4), "pg_name: unknown communicator group .got 3.; allowed: 1, 2")
    refuse(replace(grouped, groups={1: [0, 9]}), "group 1: ranks are out of range")
    refuse(replace(grouped, groups={1: [0, 0]}), "group 1: ranks are out of range or repeated")
    tree = replace(grouped, traces=[low, low, high, high], implementations={"all_reduce": [TREE]})
    refuse(tree, "a communicator group cannot use the tree")


def test_a_group_of_all_ranks_is_the_world(base: Scenario) -> None:
    world = replace(base, groups={1: [3, 2, 1, 0]}, traces=[graph(coll(group=1, involved_dims=0))] * 4)
    assert scenario_checks.check(replace(world, implementations={"all_reduce": [TREE]})) == []


def test_small_all_gathers(base: Scenario) -> None:
    gather = graph(coll(CollectiveType.ALL_GATHER, comm_bytes=3))
    wide = replace(base, traces=[gather] * 4, implementations={"all_gather": [RING]})
    refuse(wide, "rank 0: node 0: an all-gather of fewer bytes than preferred-dataset-splits")
    fewer = replace(wide, system={**base.system, "preferred_dataset_splits": 3})
    assert scenario_checks.check(fewer) == []


def test_remote_memory(base: Scenario) -> None:
    load = graph(coll(), TraceNode(0, NodeType.MEM_LOAD, tensor_bytes=8))
    refuse(replace(base, traces=[load] * 4), "rank 0: node 1: the trace uses remote memory and there is none")


def test_peers(base: Scenario) -> None:
    def sending(peer: int) -> Scenario:
        send = graph(TraceNode(0, NodeType.COMM_SEND, peer=peer, comm_bytes=1))
        return replace(base, traces=[send, *base.traces[1:]])

    assert scenario_checks.check(sending(1)) == []
    refuse(sending(0), "rank 0: node 0: the peer is no other rank")
    refuse(sending(4), "rank 0: node 0: the peer is no other rank")


def test_every_communicating_pair_needs_a_path(base: Scenario) -> None:
    cut = topology.unnamed(5, [4], [Link(i, 4, 10**9, 1) for i in range(3)])
    refuse(replace(base, topology=cut), "host 0 sends to host 3 and no path leads there")
    apart = replace(
        base, topology=cut, traces=[graph(coll(group=1))] * 3 + [graph(TraceNode(0, NodeType.INVALID))]
    )
    assert scenario_checks.check(replace(apart, groups={1: [0, 1, 2]})) == []


def test_a_ring_needs_paths_only_between_neighbours(base: Scenario) -> None:
    links = [Link(i, (i + 1) % 4, 10**9, 1) for i in range(4)]
    ring = replace(base, topology=topology.unnamed(4, [], links))
    assert scenario_checks.check(ring) == []
    refuse(replace(ring, implementations={"all_reduce": [DIRECT]}), "host 0 sends to host 2")


def test_one_dimension_over_all_ranks(base: Scenario) -> None:
    links = [Link(i, (i + 1) % 4, 10**9, 1) for i in range(4)]
    ring = replace(base, topology=topology.unnamed(4, [], links), logical_dims=(2, 2))
    assert scenario_checks.check(replace(ring, implementations={"all_reduce": [ONE_RING]})) == []


def test_replay_needs_no_network(base: Scenario) -> None:
    replay = replace(base, system={**base.system, "replay_only": True}, implementations={})
    isolated = topology.unnamed(5, [4], [Link(0, 4, 10**9, 1)])
    assert scenario_checks.check(replace(replay, topology=isolated)) == []


def test_broadcasts_use_no_algorithm(base: Scenario) -> None:
    broadcast = replace(base, traces=[graph(coll(CollectiveType.BROADCAST))] * 4, implementations={})
    assert scenario_checks.check(broadcast) == []


def test_hop_warning_counts_controlled_pairs_only(base: Scenario) -> None:
    links = [Link(0, 4, 1, 1), *(Link(i, i + 1, 1, 1) for i in range(4, 9)), Link(9, 1, 1, 1)]
    links += [Link(2, 4, 1, 1), Link(3, 4, 1, 1)]
    chain = replace(
        base, topology=topology.unnamed(10, range(4, 10), links), network={**base.network, "cc_mode": 3}
    )
    (text,) = scenario_checks.check(chain)
    assert "4 of 8 controlled pairs" in text
    assert scenario_checks.check(replace(chain, cc_disabled_pairs=np.ones((4, 4), dtype=bool))) == []
