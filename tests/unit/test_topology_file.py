"""The description of a cluster: what it compiles to, the ready clusters, and what is refused."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from hpcmoe import catalog, runner, topology, topology_file
from hpcmoe.errors import InputError
from hpcmoe.scenario import scenario_from_key
from hpcmoe.topology import Topology

READY = ("dgx_rail_64", "dgx_rail_256", "leaf_spine_64", "leaf_spine_256", "leaf_spine_1024", "validation32")

PODS = """\
servers: 4
server:
  nodes: {gpu: 2, nic: 2}
  links:
    - [gpu, nic, pcie]
    - [nic, leaf, external]
pod:
  servers: 2
  nodes: {leaf: 2}
  links: []
fabric:
  nodes: {spine: 2}
  links:
    - [full, leaf, spine, uplink]
link_types:
  pcie: {rate: 256Gbps, delay: 50ns}
  uplink: {rate: 800Gbps, ecn: {kmin_bytes: 1, kmax_bytes: 2, pmax: 0.5}}
"""


def compiled(text: str, folder: Path, delay_ns: int = 700) -> Topology:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return topology_file.load(path).compile(delay_ns)


def peers(graph: Topology, name: str) -> list[str]:
    return [graph.node_names[node] for node in graph.neighbors[graph.node_names.index(name)]]


@pytest.fixture
def pods(tmp_path: Path) -> Topology:
    return compiled(PODS, tmp_path)


def test_nodes_are_numbered_gpus_first_then_from_the_inside(pods: Topology) -> None:
    assert pods.node_names == (
        *(f"gpu{i}" for i in range(8)), *(f"nic{i}" for i in range(8)), *(f"leaf{i}" for i in range(4)),
        "spine0", "spine1",
    )  # fmt: skip
    assert pods.server_of_host == (0, 0, 1, 1, 2, 2, 3, 3)
    assert pods.fabric_ids == tuple(range(16, 22))


def test_a_line_of_a_server_counts_in_its_own_pod(pods: Topology) -> None:
    assert peers(pods, "leaf1") == ["nic1", "nic3", "spine0", "spine1"]
    assert peers(pods, "leaf2") == ["nic4", "nic6", "spine0", "spine1"]


def test_a_type_without_a_delay_has_the_network_modes(pods: Topology) -> None:
    assert Counter((link.rate_bps, link.delay_ns) for link in pods.links) == {
        (256 * 10**9, 50): 8, (400 * 10**9, 700): 8, (800 * 10**9, 700): 8
    }  # fmt: skip


def test_an_external_delay_of_its_own_stands(tmp_path: Path) -> None:
    text = PODS + "  external: {rate: 200Gbps, delay: 2us}\n"
    links = compiled(text, tmp_path).links
    assert {link.delay_ns for link in links if link.rate_bps == 200 * 10**9} == {2000}


def test_thresholds_of_link_types_in_use(pods: Topology) -> None:
    assert pods.ecn == ((800 * 10**9, 1, 2, 0.5),)


def test_ports_that_never_mark(tmp_path: Path) -> None:
    text = PODS.replace("ecn: {kmin_bytes: 1, kmax_bytes: 2, pmax: 0.5}", "ecn: never")
    assert compiled(text, tmp_path).ecn == ((800 * 10**9, 4294967000, 4294967000, 0.0),)


def test_nodes_are_shared_out_in_runs(tmp_path: Path) -> None:
    text = (
        "servers: 1\nserver: {nodes: {gpu: 6, sw: 3}, links: [[gpu, sw, local], [mesh, sw, inter_switch]]}\n"
    )
    graph = compiled(text, tmp_path)
    assert peers(graph, "sw1") == ["gpu2", "gpu3", "sw0", "sw2"]


# --- the ready clusters --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("dgx_rail_64", {"gpu": 64, "nvswitch": 8, "nic": 64, "rail": 8, "spine": 4}),
        ("dgx_rail_256", {"gpu": 256, "nvswitch": 32, "nic": 256, "rail": 8, "spine": 16}),
        ("leaf_spine_64", {"gpu": 64, "nvswitch": 8, "nic": 64, "leaf": 4, "spine": 8}),
        ("leaf_spine_256", {"gpu": 256, "nvswitch": 32, "nic": 256, "leaf": 8, "spine": 16}),
        ("leaf_spine_1024", {"gpu": 1024, "nvswitch": 128, "nic": 1024, "leaf": 32, "spine": 16}),
        ("validation32", {"gpu": 32, "scaleup": 4, "pcie": 32, "nic": 16, "tor": 1}),
    ],
)
def test_ready_clusters(name: str, kinds: dict[str, int]) -> None:
    graph = topology.build(name, 700)
    topology.check(graph)
    assert Counter(graph.node_kinds) == kinds
    assert len(set(graph.node_names)) == graph.node_count
    assert set(Counter(graph.server_of_host).values()) == {8}


@pytest.mark.parametrize("name", READY)
@pytest.mark.parametrize("network", ["ib_hpcc", "roce_dcqcn"])
def test_ready_clusters_run(name: str, network: str) -> None:
    strategy = "tp8ep4" if name == "validation32" else "tp8ep8"
    scenario = scenario_from_key(f"flash/{name}/{strategy}/ring_direct/{network}", tokens=16, layers=1)
    assert scenario.warnings == ()  # nobody is too far apart for HPCC
    assert runner.run(scenario).ranks["finished"].all()


def test_nics_are_on_their_rail() -> None:
    graph = topology.build("dgx_rail_64", 700)
    for rail in range(8):
        nics = [name for name in peers(graph, f"rail{rail}") if name.startswith("nic")]
        assert nics == [f"nic{8 * server + rail}" for server in range(8)]


def test_gpus_of_a_server_meet_in_its_scale_up_domain() -> None:
    graph = topology.build("validation32", 700)
    assert (graph.links_apart[0, 1:8] == 2).all()  # the way through a shared NIC is longer


# --- faults --------------------------------------------------------------------------------------

BROKEN = {
    "empty": (PODS, "", "not a mapping of names to values"),
    "a list": (PODS, "[1, 2]", "not a mapping of names to values"),
    "no YAML": (PODS, "servers: [", "line 1: not YAML"),
    "a key twice": ("fabric:", "server:", "given twice: server"),
    "a key that is a list": (PODS, "? [a, b]\n: c", "line 1: a name has to be text"),
    "links without end": (
        "{spine: 2}\n  links:",
        "{spine: 30000, top: 30000}\n  links:\n    - [full, spine, top, uplink]",
        "fabric.links, line 1: too many links up to here (got 900000016); allowed: up to 1048576",
    ),
    "misspelt field": ("servers: 4", "sevrers: 4", "sevrers: unknown field; allowed: servers"),
    "no servers": ("servers: 4\n", "", "servers: missing; allowed: a description has title"),
    "servers 0": ("servers: 4", "servers: 0", "servers: not a count (got 0); allowed: integers from 1"),
    "servers true": ("servers: 4", "servers: yes", "servers: not a count (got True)"),
    "uneven pods": (
        "  servers: 2",
        "  servers: 3",
        "pod.servers: pods have equally many of the 4 servers (got 3); allowed: 1, 2, 4",
    ),
    "no gpu": ("{gpu: 2, nic: 2}", "{nic: 2}", "server.nodes: a server has no gpu"),
    "gpu outside": ("{spine: 2}", "{spine: 2, gpu: 1}", "fabric.nodes: GPUs are in servers (got 'gpu')"),
    "kind twice": (
        "{spine: 2}",
        "{nic: 2}",
        "fabric.nodes: server.nodes has this kind already; give it another name (got 'nic')",
    ),
    "kind with a digit": ("{spine: 2}", "{spine2: 2}", "fabric.nodes: not a kind of node (got 'spine2')"),
    "count": ("{leaf: 2}", "{leaf: two}", "pod.nodes.leaf: not a count (got 'two')"),
    "no links": ("  links: []\n", "", "pod.links: not a list of links; allowed: lines [from, to, type]"),
    "short line": ("[gpu, nic, pcie]", "[gpu, nic]", "server.links, line 1: not a link"),
    "unknown type": (
        "[gpu, nic, pcie]",
        "[gpu, nic, pci]",
        "server.links, line 1: unknown link type (got 'pci'); allowed: pcie",
    ),
    "unknown node": (
        "[nic, leaf, external]",
        "[nic, leef, external]",
        "server.links, line 2: no such node (got 'leef'); allowed: a kind of gpu, nic, leaf, spine",
    ),
    "index": (
        "[nic, leaf, external]",
        "[nic0-2, leaf0, external]",
        "server.links, line 2: out of range seen from a server (got 'nic0-2'); allowed: nic0 to nic1",
    ),
    "uneven": (
        "[full, leaf, spine, uplink]",
        "[leaf0-2, spine, uplink]",
        "fabric.links, line 1: 3 nodes cannot be shared out evenly over 2",
    ),
    "mesh of one": ("[full, leaf, spine, uplink]", "[mesh, leaf0, uplink]", "a mesh joins two nodes"),
    "parallel": (
        "[full, leaf, spine, uplink]",
        "[nic0, leaf0, uplink]",
        "fabric.links, line 1: a second link between two nodes, after server.links, line 2; give",
    ),
    "self": (
        "[full, leaf, spine, uplink]",
        "[leaf0, leaf0, uplink]",
        "fabric.links, line 1: a link from a node to itself (got 'leaf0 to leaf0')",
    ),
    "islands": ("[full, leaf, spine, uplink]", "[leaf0-1, spine, uplink]", "no path between gpu0 and gpu1"),
    "rate": (
        "rate: 256Gbps",
        "rate: 256",
        "link_types.pcie.rate: bad rate (got 256); allowed: a rate with its unit",
    ),
    "delay": ("delay: 50ns", "delay: -1us", "link_types.pcie.delay: bad delay (got '-1us')"),
    "type's field": ("delay: 50ns", "latency: 50ns", "link_types.pcie.latency: unknown field"),
    "thresholds": ("kmin_bytes: 1,", "kmin_bytes: 3,", "link_types.uplink.ecn: bad thresholds (got {'kmin"),
    "too many": ("servers: 4", "servers: 4096", "servers: too many GPUs in all (got 8192)"),
    "title": ("servers: 4", "title: [a]\nservers: 4", "title: not text (got ['a'])"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_descriptions(fault: str, tmp_path: Path) -> None:
    old, new, message = BROKEN[fault]
    assert old in PODS
    with pytest.raises(InputError) as error:
        compiled(PODS.replace(old, new, 1), tmp_path)
    said = str(error.value)
    assert said.startswith(f"{tmp_path / 'cluster.yaml'}: ")
    assert message in said
    assert "\n" not in said


def test_types_of_one_rate_have_the_same_thresholds(tmp_path: Path) -> None:
    other = "ecn: {kmin_bytes: 5, kmax_bytes: 6, pmax: 1}"
    text = PODS.replace("rate: 256Gbps, delay: 50ns", f"rate: 800Gbps, delay: 50ns, {other}")
    with pytest.raises(InputError, match=r"link_types\.uplink\.ecn: another link type of this rate"):
        compiled(text, tmp_path)


def test_the_run_says_which_rate_lacks_thresholds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    without = yaml.safe_load(PODS.replace(", ecn: {kmin_bytes: 1, kmax_bytes: 2, pmax: 0.5}", ""))
    catalog.add("topologies", "mine", without)
    key = "flash/mine/tp2ep4/ring_direct/roce_hpcc"
    with pytest.raises(InputError, match=r"256Gbps.*or to --set ecn="):
        scenario_from_key(key, tokens=16, layers=1)
    made = scenario_from_key(key, tokens=16, layers=1, overrides={"ecn": "*:1:2:1"})
    assert {256 * 10**9, 800 * 10**9} <= {row[0] for row in made.ecn}
    catalog.forget()


# --- physical topologies -------------------------------------------------------------------------

TEXT = "5 1 4\n0\n1 0 400Gbps 1us 0\n2 0 400Gbps 1us 0\n3 0 400Gbps 2us 0\n0 4 400Gbps 1us 0.5\n"


def raw(text: str, folder: Path, each: int | None = None) -> Topology:
    path = folder / "physical.txt"
    path.write_text(text)
    return topology_file.load(path, each).compile(700)


def test_hosts_of_a_physical_topology_come_first(tmp_path: Path) -> None:
    graph = raw(TEXT, tmp_path)
    assert graph.switch_ids == (4,)
    assert graph.node_names == ("host1", "host2", "host3", "host4", "switch0")
    assert [tuple(link[:2]) for link in graph.links] == [(0, 4), (1, 4), (2, 4), (4, 3)]
    assert [link.delay_ns for link in graph.links] == [1000, 1000, 2000, 1000]
    assert graph.server_of_host == ()


def test_servers_of_a_physical_topology_and_what_is_outside(tmp_path: Path, data: Path) -> None:
    graph = topology_file.load(data / "upstream/t4.topology.txt", 8).compile(700)
    built = topology.build("t4", 700)
    assert (graph.links, graph.server_of_host, graph.fabric_ids) == (
        built.links, built.server_of_host, built.fabric_ids
    )  # fmt: skip


@pytest.mark.parametrize("each", [0, 3, -2, True])
def test_servers_have_equally_many_hosts(each: int, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"gpus_per_server: servers have equally many of the 4 hosts .*1, 2, 4"
    ):
        raw(TEXT, tmp_path, each)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "node count: the file ends too early"),
        ("five 1 4", "node count: bad value (got 'five'); allowed: integers from 0"),
        ("99999 1 4", "node count: too many nodes (got 99999); allowed: up to 65536"),
        ("9000 1 4", "too many hosts"),
        (TEXT.replace("\n0\n", "\n7\n", 1), "switches: node id out of range (got 7); allowed: 0 to 4"),
        (TEXT.replace("5 1 4\n0", "5 2 4\n0 0"), "switches: a switch id is listed twice"),
        (TEXT.replace("3 0 400Gbps", "3 9 400Gbps"), "link 2 (3 9): node id out of range"),
        (TEXT.replace("3 0 400Gbps", "3 3 400Gbps"), "link 2 (3 3): a link from a node to itself"),
        (TEXT.replace("3 0 400Gbps", "2 0 400Gbps"), "link 2 (2 0): parallel links: link 1 joins the same"),
        (TEXT.replace("3 0 400Gbps", "3 0 fast"), "link 2 (3 0): rate: bad value (got 'fast'); allowed: a"),
        (TEXT.replace("2us", "soon"), "link 2 (3 0): delay: bad value (got 'soon'); allowed: a time such as"),
        (TEXT.replace("0.5", "1.5"), "link 3 (0 4): bad error rate (got 1.5); allowed: 0 to below 1"),
        (TEXT + "1 2", "something follows the last link (got '1')"),
        (TEXT.removesuffix("0.5\n"), "link 3 (0 4): error rate: the file ends too early"),
        ("2 2 0\n0 1\n", "switches: no host: every node is a switch"),
    ],
)  # fmt: skip
def test_broken_physical_topologies(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        raw(text, tmp_path)
    said = str(error.value)
    assert said.startswith(str(tmp_path / "physical.txt"))
    assert message in said
    assert "\n" not in said


def test_only_physical_topologies_are_told_their_servers(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(PODS)
    with pytest.raises(InputError, match="--gpus-per-server: only for a physical topology"):
        topology_file.load(path, 2)
