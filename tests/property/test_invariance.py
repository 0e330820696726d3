"""What must not change a result: the order of links and flows, other simulations, the run itself."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hpcmoe import parameters, topology
from hpcmoe.topology import Topology

sys.path.insert(0, str(Path(__file__).parent))
import network_cases as cases
from network_cases import CC_MODES, STUDY_TOPOLOGIES, Flows


def reordered(topo: Topology, rng: random.Random) -> Topology:
    """The same network with its link lines in another order and some of them turned round."""
    links = [
        link._replace(src=link.dst, dst=link.src) if rng.random() < 0.5 else link
        for link in rng.sample(topo.links, len(topo.links))
    ]
    switches = rng.sample(topo.switch_ids, len(topo.switch_ids))
    return Topology(topo.node_count, tuple(switches), tuple(links), topo.node_names, topo.node_kinds)


@st.composite
def study_cases(draw: st.DrawFn) -> tuple[Topology, Flows, random.Random]:
    name = draw(st.sampled_from((*STUDY_TOPOLOGIES, "star", "leaf_spine")))
    built = {"star": cases.mixed_star([cases.RATES[0], *cases.RATES]), "leaf_spine": cases.leaf_spine()}
    topo = built.get(name) or topology.build(name, 700)
    return (
        topo,
        draw(cases.flow_lists(topo.hosts, most=40, biggest=800_000)),
        random.Random(draw(st.integers(0))),
    )


def pressed_network(topo: Topology, shared_bytes: int, cc_mode: int, window: bool) -> dict[str, Any]:
    """Marks, cuts and pauses all happen."""
    return cases.lossless_network(
        topo, shared_bytes, cc_mode=cc_mode, has_window=window, ecn_enabled=True, **cases.QUICK_DCQCN
    )


@cases.some
@given(study_cases(), st.sampled_from(CC_MODES), st.integers(2000, 500_000), st.booleans())
def test_the_order_of_links_does_not_matter(
    drawn: tuple[Topology, Flows, random.Random], cc_mode: int, shared_bytes: int, window: bool
) -> None:
    topo, flows, rng = drawn
    network = pressed_network(topo, shared_bytes, cc_mode, window)
    first = cases.simulate(topo, network, flows)
    second = cases.simulate(reordered(topo, rng), network, flows)
    assert np.array_equal(first.flows, second.flows)
    assert cases.link_rows(first) == cases.link_rows(second)
    columns = ["time_ns", "node", "peer", "is_switch", "pause"]  # the port is a position in the file
    assert np.array_equal(first.pauses[columns], second.pauses[columns])


def test_the_traffic_of_that_test_is_marked_cut_and_paused() -> None:
    """Guards the property above against traffic that never meets anything."""
    topo = topology.build("t3", 700)
    flows = [(0, h, 0, 600_000) for h in range(8, 24)]
    network = pressed_network(topo, 20_000, parameters.CC_MODES["dcqcn"], window=True)
    marked = cases.simulate(topo, network, flows)
    assert marked.ecn_marks > 100
    assert marked.pfc_pauses > 10
    unmarked = cases.simulate(topo, {**network, "ecn_enabled": False}, flows)
    assert not np.array_equal(marked.flows["fct_ns"], unmarked.flows["fct_ns"])


@cases.few
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES), st.sampled_from(parameters.PROFILES))
def test_the_same_input_gives_the_same_result(
    drawn: tuple[Topology, Flows], cc_mode: int, profile: str
) -> None:
    topo, flows = drawn
    switches = {n: parameters.defaults(profile, "network")[n] for n in parameters.PROFILE_SWITCHES}
    network = cases.study_network(**switches, cc_mode=cc_mode, ecn_enabled=True)
    assert cases.same(cases.simulate(topo, network, flows), cases.simulate(topo, network, flows))


@cases.few
@given(cases.networks_with_flows(), cases.networks_with_flows(), st.sampled_from(CC_MODES))
def test_simulations_of_one_process_do_not_influence_each_other(
    one: tuple[Topology, Flows], other: tuple[Topology, Flows], cc_mode: int
) -> None:
    """Two threads run at once, since the simulator gives up the interpreter's lock."""
    networks = [cases.study_network(cc_mode=mode, ecn_enabled=True) for mode in (cc_mode, 3)]
    jobs = [(one, networks[0]), (other, networks[1])] * 3
    alone = [cases.simulate(topo, network, flows) for (topo, flows), network in jobs[:2]]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda job: cases.simulate(job[0][0], job[1], job[0][1]), jobs))
    assert all(cases.same(result, alone[i % 2]) for i, result in enumerate(together))


@cases.few
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES), st.integers(0))
def test_the_order_of_the_flow_list_does_not_matter(
    drawn: tuple[Topology, Flows], cc_mode: int, seed: int
) -> None:
    """As long as no two flows start together: equal times run in the order of the list."""
    topo, flows = drawn
    apart = [(7 * i + 1, src, dst, size) for i, (_, src, dst, size) in enumerate(flows)]
    mixed = random.Random(seed).sample(apart, len(apart))
    network = cases.study_network(cc_mode=cc_mode, ecn_enabled=True)
    first, second = cases.simulate(topo, network, apart), cases.simulate(topo, network, mixed)
    columns = ["src", "dst", "sport", "bytes", "start_ns", "fct_ns", "standalone_ns"]
    assert np.array_equal(first.flows[columns], second.flows[columns])
    assert [apart[i] for i in first.flows["node_id"]] == [mixed[i] for i in second.flows["node_id"]]


@cases.few
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES), st.integers(1, 10**12))
def test_work_on_an_empty_network_does_not_depend_on_when_it_starts(
    drawn: tuple[Topology, Flows], cc_mode: int, shift_ns: int
) -> None:
    """The study's switches restart every counter when the network is empty."""
    if cc_mode == parameters.CC_MODES["timely"]:
        return  # its round-trip time is the absolute time
    topo, flows = drawn
    network = cases.study_network(cc_mode=cc_mode, ecn_enabled=True)
    first = cases.simulate(topo, network, [(t + 1, *rest) for t, *rest in flows])
    later = cases.simulate(topo, network, [(t + 1 + shift_ns, *rest) for t, *rest in flows])
    assert np.array_equal(first.flows["fct_ns"], later.flows["fct_ns"])
    assert np.array_equal(first.flows["start_ns"] + np.uint64(shift_ns), later.flows["start_ns"])
    assert cases.link_rows(first) == cases.link_rows(later)


def incast(size: int) -> tuple[Topology, Flows]:
    return topology.build("t3", 700), [(0, h, 0, size) for h in range(8, 24)]


@cases.few
@example(incast(600_000), parameters.CC_MODES["dcqcn"])
@given(cases.networks_with_flows(biggest=100_000), st.sampled_from(CC_MODES))
def test_finished_flows_leave_nothing_to_later_ones(drawn: tuple[Topology, Flows], cc_mode: int) -> None:
    """The same flows twice, the second time on a network that is empty again but where timers of the
    first flows would still be due."""
    if cc_mode == parameters.CC_MODES["timely"]:
        return  # its round-trip time is the absolute time
    topo, flows = drawn
    network = cases.study_network(cc_mode=cc_mode, ecn_enabled=True, rate_decrease_interval_us=1)
    first = cases.simulate(topo, network, flows)
    gap_ns = int((first.flows["start_ns"] + first.flows["fct_ns"]).max()) + 1000
    both = cases.simulate(topo, network, flows + [(t + gap_ns, *rest) for t, *rest in flows])
    again = both.flows[len(flows) :]
    assert np.array_equal(first.flows["fct_ns"], both.flows["fct_ns"][: len(flows)])
    assert np.array_equal(first.flows["fct_ns"], again["fct_ns"])
