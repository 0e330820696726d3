"""Ranks on GPUs: names, files, what follows a placement through a run, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from hpcmoe import placement, runner, topology, upstream
from hpcmoe.errors import InputError
from hpcmoe.export import export_scenario
from hpcmoe.routing import Routes
from hpcmoe.scenario import Scenario, scenario_from_key

KEY = "flash/t4/tp4ep8/ring_direct/ib_cc0"
T4 = topology.build("t4", 700)


def made(key: str = KEY, **options: object) -> Scenario:
    return scenario_from_key(key, tokens=16, layers=1, **options)  # type: ignore[arg-type]


def gpus(scenario: Scenario) -> list[int]:
    return [int(name.removeprefix("gpu")) for name in scenario.topology.node_names[: scenario.ranks]]


def test_contiguous_changes_nothing() -> None:
    assert placement.place(T4, 32, placement.parse("contiguous"), "key") is T4
    assert made().digest() == made(placement=[f"gpu{i}" for i in range(32)]).digest()


def test_round_robin_deals_ranks_to_servers_in_turn() -> None:
    scenario = made(placement="round_robin")
    assert gpus(scenario)[:6] == [0, 8, 16, 24, 1, 9]
    assert sorted(gpus(scenario)) == list(range(32))
    assert scenario.topology.server_of_host[:6] == (0, 1, 2, 3, 0, 1)


def test_fewer_ranks_than_gpus() -> None:
    key = "flash/t4/tp2ep3/ring_direct/ib_cc0"
    assert gpus(made(key)) == list(range(6))
    spread = made(key, placement="round_robin")
    assert gpus(spread) == [0, 8, 16, 24, 1, 9]
    assert len(runner.run(spread).ranks) == 6


def test_a_file_has_indices_or_names(tmp_path: Path) -> None:
    path = tmp_path / "ranks.txt"
    path.write_text(
        "# the last server first\n" + "".join(f"{31 - i}\n" for i in range(31)) + "\ngpu0  # here\n"
    )
    assert gpus(made(placement=str(path))) == list(range(31, -1, -1))
    assert made(placement=path).placement.hosts[-1] == "gpu0"


def test_the_graph_is_the_same_under_other_numbers() -> None:
    """Every link joins the same two named nodes, and the servers of the names are the same."""
    placed = made(placement="round_robin").topology

    def named(graph: topology.Topology) -> list[tuple[str, str]]:
        return [(graph.node_names[link.src], graph.node_names[link.dst]) for link in graph.links]

    def servers(graph: topology.Topology) -> dict[str, int]:
        return dict(zip(graph.node_names, graph.server_of_host, strict=False))

    assert named(placed) == named(T4)
    assert servers(placed) == servers(T4)
    assert (placed.switch_ids, placed.fabric_ids) == (T4.switch_ids, T4.fabric_ids)


def test_flows_without_control_are_those_inside_the_new_servers() -> None:
    scenario = made(placement="round_robin")
    disabled = scenario.cc_disabled_pairs
    assert disabled is not None
    assert disabled[0, 4]
    assert not disabled[0, 1]


def test_the_scenario_says_where_ranks_are() -> None:
    assert made().to_json()["placement"] == "contiguous"
    assert made(placement="round_robin").to_json()["placement"] == "round_robin"
    order = list(range(31, -1, -1))
    assert made(placement=order).to_json()["placement"] == order
    assert made(placement="round_robin").digest() != made().digest()


def nic_links_crossed(scenario: Scenario, roles: tuple[str, ...]) -> int:
    """Links between NIC and ToR that messages cross on the paths that the simulator takes. ``roles`` are the
    collectives of the layer that count."""
    graph, routes, names = scenario.topology, Routes(scenario.topology), scenario.traces[0].names
    nic_links = {
        i for i, link in enumerate(graph.links) if {graph.node_kinds[n] for n in link[:2]} == {"nic", "tor"}
    }
    flows = [f for f in runner.run(scenario).flows if names[int(f["node_id"])].partition(".")[2] in roles]
    assert flows
    paths = (routes.data_path(int(f["src"]), int(f["dst"]), int(f["sport"])) for f in flows)
    return sum(link // 2 in nic_links for path in paths for link in path)


def test_an_all_to_all_dealt_to_servers_crosses_nics() -> None:
    """Eight ranks fill one server, or have two GPUs on each of the four."""
    key = "flash/t4/tp2ep4/ring_direct/ib_cc0"
    assert nic_links_crossed(made(key), ("disp", "comb")) == 0
    assert nic_links_crossed(made(key, placement="round_robin"), ("disp", "comb")) > 0


def test_tensor_parallel_groups_dealt_to_servers_cross_nics() -> None:
    """TP groups of four are inside a server, or over all four; expert-parallel groups the other way round."""
    near, far = made(), made(placement="round_robin")
    assert nic_links_crossed(near, ("ar1", "ar2")) == 0 < nic_links_crossed(far, ("ar1", "ar2"))
    assert nic_links_crossed(near, ("disp", "comb")) > 0 == nic_links_crossed(far, ("disp", "comb"))


def test_the_export_is_the_placed_graph(tmp_path: Path) -> None:
    scenario = made(placement="round_robin")
    export_scenario(scenario, tmp_path)
    assert upstream.read_topology(tmp_path / "topology.txt").links == scenario.topology.links
    policy = upstream.read_cc_policy(tmp_path / "cc_policy.txt", 32)
    off_diagonal = ~np.eye(32, dtype=bool)
    assert scenario.cc_disabled_pairs is not None
    assert np.array_equal(policy[off_diagonal], scenario.cc_disabled_pairs[off_diagonal])


LINES = [f"gpu{i}" for i in range(32)]


def _with(line: int, text: str) -> str:
    return "\n".join([*LINES[: line - 1], text, *LINES[line:]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no host in the file; allowed: a host index or GPU name per rank"),
        ("# nothing\n\n", "no host in the file"),
        (
            "\n".join(LINES[:31]),
            "the placement has 31 hosts for 32 ranks (got 31); allowed: 32, one for each rank",
        ),
        ("\n".join([*LINES, "5"]), "the placement has 33 hosts for 32 ranks"),
        (_with(3, "gpu1"), "line 3 (rank 2): the host of rank 1 again; a host runs one rank (got 'gpu1')"),
        (_with(3, "1"), "line 3 (rank 2): the host of rank 1 again; a host runs one rank (got 1)"),
        (
            _with(3, "gpu32"),
            "line 3 (rank 2): no such host (got 'gpu32'); allowed: 0 to 31, or gpu0 to gpu31",
        ),
        (_with(3, "32"), "line 3 (rank 2): no such host (got 32); allowed: 0 to 31, or gpu0 to gpu31"),
        (_with(3, "nic0"), "line 3 (rank 2): no such host (got 'nic0')"),
        (_with(3, "-1"), "line 3 (rank 2): no such host (got '-1')"),
        (_with(3, "2.0"), "line 3 (rank 2): no such host (got '2.0')"),
        (_with(3, "2 2"), "line 3: not one host; rank r is placed"),
        (_with(3, "9" * 20), "line 3 (rank 2): no such host"),
        (_with(3, "9" * 5000), "line 3: not one host"),
        (" ".join(LINES), "line 1: not one host"),
    ],
)
def test_broken_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ranks.txt"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        made(placement=path)
    said = str(error.value)
    assert message in said
    assert said.startswith(str(path))
    assert "\n" not in said


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "ranks.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"ranks.txt: cannot read the placement: not text"):
        made(placement=path)


def test_neither_a_name_nor_a_file() -> None:
    with pytest.raises(
        InputError, match=r"no such placement, and no such file \(got 'roundrobin'\).*round_robin"
    ):
        made(placement="roundrobin")
    with pytest.raises(InputError, match=r"no/such.txt: cannot read the placement"):
        made(placement="no/such.txt")


@pytest.mark.parametrize("bad", [[True] * 32, [0.5] * 32, [None] * 32])
def test_sequences_have_indices_or_names(bad: list[object]) -> None:
    with pytest.raises(InputError, match="placement of rank 0: no such host"):
        made(placement=bad)


def test_more_ranks_than_gpus() -> None:
    with pytest.raises(
        InputError, match="TP x EP x DP x PP = 64 ranks do not fit on the 32 GPUs of the topology"
    ):
        made("flash/t4/tp8ep8/ring_direct/ib_cc0")


def test_round_robin_needs_servers() -> None:
    unknown = topology.unnamed(4, [3], [topology.Link(i, 3, 10**9, 5) for i in range(3)])
    with pytest.raises(InputError, match="does not say what they are.*--gpus-per-server"):
        placement.place(unknown, 3, placement.parse("round_robin"), "key")
