"""Completion times against what no network can beat, and closed forms where there is one."""

import sys
from fractions import Fraction
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hpcmoe.topology import Topology

sys.path.insert(0, str(Path(__file__).parent))
import network_cases as cases
from network_cases import CC_MODES, GBPS, Flows

PAYLOAD, HEADER, ACK = 1000, 36, 48


def nearest_ns(size: int, rate_bps: int) -> int:
    """Serialization time, by exact fractions; a half goes down (rates here have no binary halves)."""
    exact = Fraction(size * 8 * 10**9, rate_bps)
    whole = exact.numerator // exact.denominator
    return whole + (exact - whole > Fraction(1, 2))


def star_fct_ns(size: int, rate_bps: int, delay_ns: int) -> int:
    """A flow alone on a star: the last packet leaves after all others, and its ACK comes back."""
    full, rest = divmod(size - 1, PAYLOAD)
    last = nearest_ns(rest + 1 + HEADER, rate_bps)
    before = full * nearest_ns(PAYLOAD + HEADER, rate_bps)
    # A short last packet finds the switch's output still at the full one before it.
    wait = max(0, nearest_ns(PAYLOAD + HEADER, rate_bps) - last) if full else 0
    ack = nearest_ns(ACK, rate_bps)
    forward = 2 * (last + delay_ns) + wait
    back = 2 * (ack + delay_ns)
    # The ACK of the last packet waits for the one before it where that is still being sent.
    ack_wait = max(0, ack - last) if full else 0
    return before + forward + back + ack_wait


@cases.some
@given(st.integers(1, 60_000), st.sampled_from((25, 40, 100, 200, 400)), st.integers(0, 5000))
def test_a_flow_alone_on_a_star_takes_its_closed_form(size: int, gbps: int, delay_ns: int) -> None:
    network = cases.study_network(cc_mode=0, has_window=False)
    result = cases.simulate(cases.star(3, gbps * GBPS, delay_ns), network, [(0, 2, 0, size)])
    assert result.flows["fct_ns"].tolist() == [star_fct_ns(size, gbps * GBPS, delay_ns)]


def path_links(topo: Topology, src: int, dst: int) -> int:
    return topo.switches_from(src)[dst] + 1


def bound_ns(topo: Topology, src: int, dst: int, size: int) -> int:
    """Two-way delay of the shortest links over the hops of the path, and the size at the fastest rate."""
    hops = path_links(topo, src, dst)
    delay = min(link.delay_ns for link in topo.links)
    rate = max(link.rate_bps for link in topo.links)
    return 2 * hops * delay + size * 8 * 10**9 // rate


@cases.some
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES), st.booleans())
def test_no_flow_beats_light_and_bandwidth(drawn: tuple[Topology, Flows], cc_mode: int, ecn: bool) -> None:
    topo, flows = drawn
    result = cases.simulate(topo, cases.study_network(cc_mode=cc_mode, ecn_enabled=ecn), flows)
    assert len(result.flows) == len(flows)
    for row in result.flows:
        # A packet's time is rounded to the nearest nanosecond, so each may gain half of one.
        slack = (int(row["bytes"]) // PAYLOAD + 1) // 2 + 1
        assert row["fct_ns"] >= bound_ns(topo, int(row["src"]), int(row["dst"]), int(row["bytes"])) - slack


@cases.some
@given(cases.flow_lists(5), st.sampled_from(CC_MODES))
def test_company_never_makes_a_flow_of_a_star_faster(flows: Flows, cc_mode: int) -> None:
    rate, delay = 200 * GBPS, 500
    result = cases.simulate(cases.star(5, rate, delay), cases.study_network(cc_mode=cc_mode), flows)
    for row in result.flows:
        assert row["fct_ns"] >= star_fct_ns(int(row["bytes"]), rate, delay)


@cases.few
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES))
def test_completions_are_reported_in_order_of_time(drawn: tuple[Topology, Flows], cc_mode: int) -> None:
    topo, flows = drawn
    result = cases.simulate(topo, cases.study_network(cc_mode=cc_mode), flows)
    ends = (result.flows["start_ns"] + result.flows["fct_ns"]).tolist()
    assert ends == sorted(ends)
    assert sorted(result.flows["node_id"].tolist()) == list(range(len(flows)))
    assert [flows[i] for i in result.flows["node_id"]] == [
        (int(row["start_ns"]), int(row["src"]), int(row["dst"]), int(row["bytes"])) for row in result.flows
    ]


@cases.few
@given(st.integers(1000, 40_000), st.integers(2, 5))
def test_a_slower_receiver_takes_longer(size: int, factor: int) -> None:
    rates = [400 * GBPS, 400 * GBPS // factor]
    fast, slow = (cases.mixed_star([rates[0], rate]) for rate in rates)
    network = cases.study_network(cc_mode=0)
    quick, late = (
        cases.simulate(topo, network, [(0, 0, 1, size)]).flows["fct_ns"][0] for topo in (fast, slow)
    )
    assert late > quick
