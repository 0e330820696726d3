"""The critical path: it rebuilds what the simulator did, adds up exactly, and names the right links."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hpcmoe import parameters, runner
from hpcmoe.errors import InputError
from hpcmoe.inspect_run import Inspection, inspect_run
from hpcmoe.inspect_run.critical import FLOW_PARTS, PARTS, check_exact, scaled, walk
from hpcmoe.inspect_run.record import Flow, load_record
from hpcmoe.inspect_run.replay import Moment, Replay, reduction_ns
from hpcmoe.inspect_run.traffic import Traffic, link_kind, tx_ns
from hpcmoe.store import open_results
from hpcmoe.store.reader import Results
from hpcmoe.sweep import main
from hpcmoe.topology import build


@pytest.fixture(scope="module")
def results(small_study: Path) -> Iterator[Results]:
    with open_results(small_study) as opened:
        yield opened


def keys(results: Results) -> list[str]:
    return [str(key) for key in results.runs["key"]]


def test_the_study_holds_all_topologies_and_algorithms(results: Results) -> None:
    assert {key.split("/")[1] for key in keys(results)} == {"t1", "t2", "t3", "t4", "t5", "t6"}
    algorithms = {n.algorithm for key in keys(results) for n in load_record(results, key).chain}
    assert algorithms >= {"ring", "direct", "halving-doubling", "double binary tree"}
    assert results.counts()["ok"] == len(results.runs)


def test_the_rules_give_every_rank_the_time_that_was_simulated(results: Results) -> None:
    """From flow records alone: the end of the chain on every rank of every run, to the nanosecond."""
    for key in keys(results):
        record = load_record(results, key)
        replay, last = Replay(record), len(record.chain) - 1
        ends = [replay.node_end(rank, last) for rank in range(32)]
        assert ends == record.ranks["wall_ns"].tolist(), key


def test_the_parts_add_up_to_the_layer_exactly(results: Results) -> None:
    """Every layer of every run; the layers follow each other on the bottleneck rank without gap."""
    for key in keys(results):
        record = load_record(results, key)
        reached = 0
        for layer in record.layers:
            path = Inspection(record, layer).path
            check_exact(path)
            assert path.begin_ns == reached, (key, layer)
            assert sum(path.parts.values()) == path.total_ns > 0
            assert sum(path.link_ns.values()) == sum(path.parts[part] for part in FLOW_PARTS)
            reached = path.end_ns
        assert reached == int(record.run["wall_ns"]), key


def test_every_segment_of_a_message_joins_its_two_ranks(results: Results) -> None:
    for key in keys(results):
        rank = None
        for item in inspect_run(results, key).path.segments:
            flow = item.segment.flow
            assert rank in (None, flow.src if flow else item.segment.rank), key
            rank = flow.dst if flow else item.segment.rank


def test_no_message_is_faster_than_its_least_time(results: Results) -> None:
    for key in keys(results):
        record = load_record(results, key)
        traffic = Traffic(record)
        for layer in record.layers:
            assert all(flow.fct_ns >= traffic.ideal(flow).total_ns for flow in record.flows_of(layer)), key


@pytest.mark.parametrize(("src", "dst", "mode"), [(0, 1, 0), (1, 2, 0), (0, 3, 3), (5, 31, 1)])
@pytest.mark.parametrize("size", [1, 1000, 1001, 8000])
def test_the_least_time_is_that_of_a_message_alone(
    results: Results, src: int, dst: int, mode: int, size: int
) -> None:
    """Within its window a message on an empty network takes exactly that."""
    topology = build("t3", 1000)
    network = parameters.defaults("study", "network") | {"cc_mode": mode}
    local = np.array(topology.server_of_host)[:, None] == np.array(topology.server_of_host)[None, :]
    rates = {link.rate_bps for link in topology.links}
    ecn = [(rate, 10**6, 10**7, 0.1) for rate in rates]
    ran = runner.run_flows(topology, network, ecn, np.array([(0, src, dst, size)]), local_pairs=local)
    record = load_record(results, "flash/t3/tp16ep2/ring_direct/roce_dcqcn")
    record.config["network"]["cc_mode"] = mode  # type: ignore[index]
    flow = Flow(src, dst, int(ran.flows["sport"][0]), size, 0, int(ran.flows["fct_ns"][0]), 0, 0, 0, 0, 0)
    traffic = Traffic(record)
    ideal = traffic.ideal(flow)
    assert ideal.total_ns == flow.fct_ns
    assert ideal.propagation_ns == 2 * sum(
        topology.links[link // 2].delay_ns for link in Traffic(record).path(flow)
    )


# --- what the pages must name --------------------------------------------------------------------


@pytest.fixture(scope="module")
def full_size(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """One full layer, 4096 tokens, of the runs whose bottleneck is known from their wiring."""
    path = tmp_path_factory.mktemp("full") / "full.h5"
    globs = ("flash/t6/tp16ep2/ring_direct/ib_cc0", "flash/t3/tp16ep2/*/roce_dcqcn")
    assert main([str(path), "--quiet", "--layers", "1", "--select", *globs]) == 0
    with open_results(path) as opened:
        yield opened


def main_kinds(results: Results, key: str) -> set[str]:
    """Kinds of the links that carry at least half of the critical path."""
    inspection = inspect_run(results, key)
    links = inspection.path.main_links()
    assert 2 * sum(inspection.path.link_ns[link] for link in links) >= inspection.path.total_ns
    fewer = links[:-1]
    assert 2 * sum(inspection.path.link_ns[link] for link in fewer) < inspection.path.total_ns
    return {inspection.traffic.kind(link) for link in links}


def test_between_switches_is_where_topology_6_waits(full_size: Results) -> None:
    key = "flash/t6/tp16ep2/ring_direct/ib_cc0"
    assert "inter-switch link" in main_kinds(full_size, key)
    assert inspect_run(full_size, key).path.largest_part == "queueing"


@pytest.mark.parametrize("collective", ["ring_direct", "dbt_direct"])
def test_upi_or_nic_is_where_topology_3_waits(full_size: Results, collective: str) -> None:
    key = f"flash/t3/tp16ep2/{collective}/roce_dcqcn"
    assert main_kinds(full_size, key) & {"UPI link", "NIC link"}
    parts = inspect_run(full_size, key).path.parts
    assert parts["throttling"] + parts["queueing"] > 0.5 * sum(parts.values())


def test_without_rate_control_nothing_is_throttled(full_size: Results) -> None:
    parts = inspect_run(full_size, "flash/t6/tp16ep2/ring_direct/ib_cc0").path.parts
    assert parts["throttling"] < 0.1 * sum(parts.values())


# --- pauses --------------------------------------------------------------------------------------


def test_pauses_are_a_part_of_their_own(tmp_path: Path) -> None:
    """A buffer so small that switches pause their senders, and windows off so that they can."""
    path = tmp_path / "pfc.h5"
    key = "flash/t6/tp16ep2/ring_direct/ib_cc0"
    changes = ["--set", "buffer_bytes=400000", "--set", "has_window=0"]
    assert main([str(path), "--quiet", "--tokens", "512", "--layers", "1", "--select", key, *changes]) == 0
    with open_results(path) as opened:
        inspection = inspect_run(opened, key)
        assert int(inspection.record.run["pfc_pauses"]) > 0
        assert inspection.path.parts["pause"] > 0
        check_exact(inspection.path)
        assert any(s.paused_ns for s in inspection.stragglers)
        by_link = {
            pair: int(np.sum(rows[:, 1] - rows[:, 0])) for pair, rows in inspection.traffic.pauses.items()
        }
        counted = {
            (int(row["src"]), int(row["dst"])): int(row["pause_ns"])
            for row in inspection.record.links
            if row["pause_ns"]
        }
        assert by_link == counted


# --- small rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "total", "shown"),
    [
        ({"a": 3, "b": 1}, 2, {"a": 2, "b": 0}),  # equal remainders: the first by name
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
        ({"a": 7, "b": 0}, 7, {"a": 7, "b": 0}),
        ({"a": 10, "b": 5}, 0, {"a": 0, "b": 0}),
    ],
)
def test_scaled_parts_keep_their_sum(parts: dict[str, int], total: int, shown: dict[str, int]) -> None:
    assert scaled(parts, total) == shown


@pytest.mark.parametrize(("size", "mem_bw", "time_ns"), [(750, 50, 42), (32768, 1600, 60), (10, 0, 0)])
def test_reduction_time(size: int, mem_bw: float, time_ns: int) -> None:
    """Three truncated accesses; 750 bytes at 50 GB/s is one of the multiples that truncate one too low."""
    assert reduction_ns(size, mem_bw) == time_ns


def test_packet_times_round_to_the_nearest() -> None:
    assert [tx_ns(1036, rate) for rate in (400 * 10**9, 512 * 10**9)] == [21, 16]


@pytest.mark.parametrize(
    ("kinds", "name"),
    [(("nic", "tor"), "NIC link"), (("tor", "nic"), "NIC link"), (("cpu", "cpu"), "UPI link"),
     (("pcie", "pcie"), "inter-switch link"), (("gpu", "nic"), "GPU link"), (("host", "switch"), "link")],
)  # fmt: skip
def test_names_of_links(kinds: tuple[str, str], name: str) -> None:
    assert link_kind(*kinds) == name


def test_a_path_that_starts_within_a_segment_cuts_it(results: Results) -> None:
    record = load_record(results, "flash/t6/tp16ep2/ring_direct/roce_dcqcn")
    replay = Replay(record)
    end = replay.node_end(0, 1)
    whole = walk(replay, Moment("node_end", 0, 1, end), 0)
    cut_at = whole[3].begin_ns + whole[3].duration_ns // 2
    part = walk(replay, Moment("node_end", 0, 1, end), cut_at)
    assert part[0].begin_ns == cut_at
    assert part[1:] == whole[4:]
    assert sum(s.duration_ns for s in part) == end - cut_at


def test_records_that_break_the_rules_have_no_path(results: Results) -> None:
    """A flow that starts a nanosecond later than its cause allows."""
    record = load_record(results, "flash/t6/tp16ep2/ring_direct/roce_dcqcn")
    fct = record.traces.fct
    fct["start_ns"][(fct["layer"] == 0) & (fct["step"] == 7)] += np.uint64(1)
    with pytest.raises(InputError, match="do not follow the known rules"):
        Inspection(record, 1).path  # noqa: B018


def test_the_least_link_set_and_the_parts_are_in_a_fixed_order(results: Results) -> None:
    path = inspect_run(results, "flash/t1/tp16ep2/ring_direct/roce_dcqcn").path
    assert tuple(path.parts) == PARTS
    times = [path.link_ns[link] for link in path.main_links()]
    assert times == sorted(times, reverse=True)
    assert path.main_links(2.0) == sorted(path.link_ns, key=lambda link: (-path.link_ns[link], link))
