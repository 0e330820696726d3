"""Random networks, parameters and flow lists, small enough for thousands of runs a minute."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from hpcmoe import parameters, topology
from hpcmoe.runner import FlowsResult, run_flows
from hpcmoe.topology import Link, Topology

GBPS = 10**9
RATES = (100 * GBPS, 200 * GBPS, 400 * GBPS, 512 * GBPS)
CC_MODES = tuple(parameters.CC_MODES.values())
STUDY_TOPOLOGIES = ("t1", "t2", "t3", "t4", "t5", "t6")
Flows = list[tuple[int, int, int, int]]  # start_ns, src, dst, bytes

# Reproducible runs without a time limit: the machine may be busy.
few = settings(derandomize=True, deadline=None, max_examples=25, database=None)
some = settings(derandomize=True, deadline=None, max_examples=60, database=None)


def star(hosts: int, rate_bps: int = 400 * GBPS, delay_ns: int = 500) -> Topology:
    """Hosts 0.. on one switch."""
    return topology.unnamed(hosts + 1, [hosts], [Link(h, hosts, rate_bps, delay_ns) for h in range(hosts)])


def mixed_star(rates: list[int], delay_ns: int = 500) -> Topology:
    """One host per rate on one switch."""
    hosts = len(rates)
    links = [Link(h, hosts, rate, delay_ns) for h, rate in enumerate(rates)]
    return topology.unnamed(hosts + 1, [hosts], links)


def leaf_spine(leaves: int = 2, spines: int = 2, hosts_per_leaf: int = 3, delay_ns: int = 600) -> Topology:
    """Equal-cost paths over every spine."""
    hosts = leaves * hosts_per_leaf
    spine_ids = range(hosts + leaves, hosts + leaves + spines)
    links = [Link(h, hosts + h // hosts_per_leaf, 100 * GBPS, delay_ns) for h in range(hosts)]
    for leaf in range(hosts, hosts + leaves):
        links += [Link(leaf, spine, 200 * GBPS, delay_ns) for spine in spine_ids]
    return topology.unnamed(spine_ids.stop, range(hosts, spine_ids.stop), links)


@st.composite
def flow_lists(
    draw: st.DrawFn, hosts: int, most: int = 25, biggest: int = 40_000, latest_ns: int = 5000
) -> Flows:
    """Flows between distinct hosts, sorted by time; many start together."""
    count = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        src, dst = rng.sample(range(hosts), 2)
        start = rng.choice((0, 0, rng.randrange(latest_ns + 1)))
        rows.append((start, src, dst, rng.choice((1, 999, 1000, 1001, rng.randint(1, biggest)))))
    return sorted(rows)


networks = st.one_of(
    st.lists(st.sampled_from(RATES), min_size=2, max_size=6).map(mixed_star),
    st.just(leaf_spine()),
    st.sampled_from(STUDY_TOPOLOGIES).map(lambda name: topology.build(name, 700)),
)


@st.composite
def networks_with_flows(draw: st.DrawFn, **limits: int) -> tuple[Topology, Flows]:
    topo = draw(networks)
    return topo, draw(flow_lists(topo.hosts, **limits))


def study_network(**changes: Any) -> dict[str, Any]:
    """The study's network parameters with changes."""
    return parameters.complete({**parameters.defaults("study", "network"), **changes}, "network")


def lossless_network(topo: Topology, shared_bytes: int, **changes: Any) -> dict[str, Any]:
    """A buffer with ``shared_bytes`` beyond headroom and reserve of the largest switch: PFC acts early."""
    needed = max(
        sum(
            link.rate_bps * link.delay_ns // 8 // 10**9 * 3 + 4096
            for link in topo.links
            if switch in (link.src, link.dst)
        )
        for switch in topo.switch_ids
    )
    return study_network(buffer_bytes=needed + shared_bytes, **changes)


# Timers short enough for flows of some microseconds to be cut and to recover.
QUICK_DCQCN = {"rate_decrease_interval_us": 1, "rp_timer_us": 5, "ewma_gain": 0.25}


def low_thresholds() -> list[tuple[int, int, int, float]]:
    """Marking from two packets on, so that random traffic is marked."""
    return [(rate, 2000, 12_000, 0.5) for rate in RATES]


def simulate(topo: Topology, network: Mapping[str, Any], flows: Flows) -> FlowsResult:
    return run_flows(topo, dict(network), low_thresholds(), np.array(flows, dtype=np.int64))


def link_rows(result: FlowsResult) -> dict[tuple[int, int], tuple[int, ...]]:
    """Counters of each link direction, by its two ends."""
    return {(int(row["src"]), int(row["dst"])): tuple(row.tolist()) for row in result.links}


def same(a: FlowsResult, b: FlowsResult) -> bool:
    """Equal in every array and total but the CPU time."""
    arrays = ("flows", "links", "pauses", "unfinished")
    totals = ("events", "packet_hops", "ecn_marks", "pfc_pauses", "drops", "qlen_lines")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in totals
    )
