"""Nothing is lost and nothing comes from nowhere: packets and bytes of links against those of flows.

The simulator itself refuses to end a run whose buffers are not empty or whose sent and received bytes
differ; these tests look at what it reports.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hpcmoe.runner import FlowsResult
from hpcmoe.topology import Topology

sys.path.insert(0, str(Path(__file__).parent))
import network_cases as cases
from network_cases import CC_MODES, Flows

PAYLOAD, HEADER, ACK, PFC_FRAME = 1000, 36, 48, 31
HPCC, TIMELY = 3, 7
INT_BYTES = {HPCC: 42, TIMELY: 8}
HPCC_ACK = 76


def packets(size: int) -> int:
    return -(-size // PAYLOAD)


def totals_at(result: FlowsResult, end: str, column: str) -> Counter[int]:
    """Sum of a link counter over the directions that start (src) or end (dst) at each node."""
    sums: Counter[int] = Counter()
    for row in result.links:
        sums[int(row[end])] += int(row[column])
    return sums


def check_packets(topo: Topology, flows: Flows, result: FlowsResult) -> None:
    sent, received = Counter[int](), Counter[int]()
    for _, src, dst, size in flows:
        sent[src] += packets(size)
        received[dst] += packets(size)
    for host in topo.host_ids:  # every packet is acknowledged once, so ACKs mirror data
        assert totals_at(result, "src", "data_packets")[host] == sent[host]
        assert totals_at(result, "dst", "data_packets")[host] == received[host]
        assert totals_at(result, "src", "ack_packets")[host] == received[host]
        assert totals_at(result, "dst", "ack_packets")[host] == sent[host]


def check_switches(topo: Topology, result: FlowsResult) -> None:
    for column in ("data_packets", "ack_packets"):
        into, out = totals_at(result, "dst", column), totals_at(result, "src", column)
        assert all(into[switch] == out[switch] for switch in topo.switch_ids)
    bytes_in = totals_at(result, "dst", "bytes")
    bytes_out = totals_at(result, "src", "bytes")
    for end, sums in (("dst", bytes_in), ("src", bytes_out)):
        for switch, frames in totals_at(result, end, "pfc_frames").items():
            sums[switch] -= PFC_FRAME * frames
    assert all(bytes_in[switch] == bytes_out[switch] for switch in topo.switch_ids)


def check_bytes(flows: Flows, result: FlowsResult, cc_mode: int) -> None:
    """What hosts put on their links: payload, headers and ACKs."""
    count = sum(packets(size) for *_, size in flows)
    data = sum(size for *_, size in flows) + count * (HEADER + INT_BYTES.get(cc_mode, 0))
    acks = count * (HPCC_ACK if cc_mode == HPCC else ACK)
    hosts = {row[1] for row in flows} | {row[2] for row in flows}
    sent = sum(totals_at(result, "src", "bytes")[host] for host in hosts)
    assert sent == data + acks


@cases.some
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES), st.booleans(), st.booleans())
def test_links_carry_what_flows_send(
    drawn: tuple[Topology, Flows], cc_mode: int, ecn: bool, window: bool
) -> None:
    topo, flows = drawn
    result = cases.simulate(
        topo, cases.study_network(cc_mode=cc_mode, ecn_enabled=ecn, has_window=window), flows
    )
    assert len(result.unfinished) == 0
    assert result.drops == 0
    assert sorted(result.flows["bytes"].tolist()) == sorted(row[3] for row in flows)
    check_packets(topo, flows, result)
    check_switches(topo, result)
    check_bytes(flows, result, cc_mode)
    hops = result.links["data_packets"] + result.links["ack_packets"]
    assert result.packet_hops == int(hops.sum())
    assert result.ecn_marks == int(result.links["ecn_marks"].sum())
    assert (result.links["ecn_marks"] <= hops).all()
    assert ecn or result.ecn_marks == 0


@cases.some
@given(cases.networks_with_flows(), st.sampled_from(CC_MODES))
def test_a_link_is_never_busier_than_time_allows(drawn: tuple[Topology, Flows], cc_mode: int) -> None:
    topo, flows = drawn
    result = cases.simulate(topo, cases.study_network(cc_mode=cc_mode), flows)
    end = int((result.flows["start_ns"] + result.flows["fct_ns"]).max())
    assert (result.links["busy_ns"] <= end).all()
    assert (result.links["pause_ns"] <= end).all()
    rate = result.links["rate_bps"].astype(float)
    exact = result.links["bytes"] * 8e9 / rate  # each packet is rounded to the nearest nanosecond
    count = result.links["data_packets"] + result.links["ack_packets"] + result.links["pfc_frames"]
    assert (np.abs(result.links["busy_ns"] - exact) <= 0.5 * count + 1e-3).all()


@cases.some
@example((cases.star(6), [(0, h, 0, 200_000) for h in range(1, 6)]), 8000, 0)
@given(
    cases.networks_with_flows(biggest=100_000, latest_ns=0),
    st.integers(2000, 60_000),
    st.sampled_from(CC_MODES),
)
def test_pauses_prevent_every_drop(drawn: tuple[Topology, Flows], shared_bytes: int, cc_mode: int) -> None:
    """Headroom of three bandwidth-delay products covers a pause's way back and the packets in between, as
    long as a link holds a few packets."""
    topo, flows = drawn
    network = cases.lossless_network(topo, shared_bytes, cc_mode=cc_mode, has_window=False)
    result = cases.simulate(topo, network, flows)
    assert result.drops == 0
    assert len(result.unfinished) == 0
    check_packets(topo, flows, result)
    check_switches(topo, result)
    frames = result.links["pfc_frames"]
    assert int(frames.sum()) == len(result.pauses)
    # Every pause has been followed by its resume.
    for _, group in grouped(result.pauses):
        kinds = group["pause"].tolist()
        assert kinds == [1, 0] * (len(kinds) // 2)


def grouped(pauses: np.ndarray) -> list[tuple[tuple[int, int], np.ndarray]]:
    ends = sorted({(int(row["node"]), int(row["peer"])) for row in pauses})
    return [(end, pauses[(pauses["node"] == end[0]) & (pauses["peer"] == end[1])]) for end in ends]


def test_the_example_of_an_incast_does_pause() -> None:
    """Guards the property above against never seeing a pause."""
    topo = cases.star(6)
    flows = [(0, h, 0, 200_000) for h in range(1, 6)]
    result = cases.simulate(topo, cases.lossless_network(topo, 8000, cc_mode=0, has_window=False), flows)
    assert result.pfc_pauses > 5
    assert result.drops == 0
