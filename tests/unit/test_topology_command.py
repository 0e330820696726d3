"""``hpcmoe topology`` from the command line, and topologies of the user's own in runs and sweeps."""

import json
from pathlib import Path

import pytest

from hpcmoe import catalog, cli, topology, upstream
from hpcmoe.store import open_results
from hpcmoe.sweep import main as sweep

CLUSTER = """\
# two servers
servers: 2
server:
  nodes: {gpu: 4, bridge: 1, nic: 4}
  links:
    - [gpu, bridge0, local]
    - [gpu, nic, local]
    - [nic, rail, external]
fabric:
  nodes: {rail: 4, spine: 2}
  links:
    - [full, rail, spine, external]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a description, a physical topology and a catalog of the user's own."""
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path / "catalog"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(CLUSTER)
    upstream.write_topology(topology.build("t4", 700), tmp_path / "t4.txt")
    return tmp_path


def run(*arguments: str) -> int:
    return cli.main(["topology", *arguments])


def test_from_a_file_to_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "mine.yaml") == 0
    assert "mine.yaml: 8 GPUs in 2 servers, 16 other nodes, 32 links\n" in capsys.readouterr().out
    assert run("add", "mine.yaml", "--name", "mine") == 0
    assert "flash/mine/tp<N>ep<M>/ring_direct/ib_cc0 with N x M up to 8" in capsys.readouterr().out
    assert run("list") == 0
    assert "mine                    mine  (yours)\n" in capsys.readouterr().out
    key = "flash/mine/tp2ep4/ring_direct/roce_hpcc"
    assert cli.main(["run", key, "--tokens", "16", "--layers", "1"]) == 0
    assert cli.main(["list", "--topologies"]) == 0
    assert run("remove", "mine") == 0
    assert "mine" not in catalog.names("topologies")


def test_a_physical_topology_in_the_catalog_is_the_same_graph(folder: Path) -> None:
    assert run("add", "t4.txt", "--name", "raw", "--gpus-per-server", "8") == 0
    raw, built = topology.build("raw", 5), topology.build("t4", 700)
    assert (raw.links, raw.server_of_host, raw.fabric_ids) == (
        built.links,
        built.server_of_host,
        built.fabric_ids,
    )


def test_add_keeps_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("add", "mine.yaml", "--name", "mine") == 0
    assert run("add", "mine.yaml", "--name", "mine") == 2
    assert "exists already" in capsys.readouterr().err
    assert run("add", "mine.yaml", "--name", "mine", "--replace") == 0
    assert run("add", "mine.yaml", "--name", "t1") == 2
    assert "have this name already" in capsys.readouterr().err
    assert run("remove", "t1") == 2


def test_a_broken_file_is_not_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.yaml").write_text(CLUSTER.replace("nic: 4", "nic: 3"))
    assert run("add", "bad.yaml", "--name", "bad") == 2
    assert (
        "bad.yaml: server.links, line 2: 4 nodes cannot be shared out evenly over 3"
        in capsys.readouterr().err
    )
    assert "bad" not in catalog.names("topologies")


def test_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "mine.yaml", "--network", "ib_cc0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mine.yaml: 8 GPUs in 2 servers, 16 other nodes, 32 links  (network delay 0.7us)"
    assert "  nodes                 8 GPUs, 2 bridges, 8 NICs, 4 rail switches, 2 spine switches" in lines
    assert "  bisection bandwidth   1600 Gbps between the halves of the GPUs, 400 Gbps per GPU" in lines
    assert "                        4 rail switches: 1.00 : 1 (3200 Gbps down, 3200 Gbps up)" in lines


@pytest.mark.parametrize("what", [["mine.yaml"], ["t4.txt"], ["t4.txt", "--gpus-per-server", "8"], ["t3"]])
def test_drawings(what: list[str], folder: Path) -> None:
    assert run("show", *what, "--svg", "drawing.svg") == 0
    text = (folder / "drawing.svg").read_text()
    assert text.startswith("<?xml")
    assert text.rstrip().endswith("</svg>")


def test_compile_writes_upstreams_file(folder: Path, data: Path) -> None:
    assert run("compile", "t4", "-o", "out.txt", "--network", "ib_cc0") == 0
    assert (folder / "out.txt").read_text() == (data / "upstream/t4.topology.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "t7"], "no such file, and no such topology in the catalog (got 't7'); allowed: t1"),
        (["show", "t4", "--gpus-per-server", "8"], "--gpus-per-server: only for a file"),
        (["show", "t4", "--network", "roce"], "unknown name in the catalog's networks (got 'roce')"),
        (["compile", "t4", "-o", "none/out.txt"], "none/out.txt: cannot write"),
        (["check", "none.yaml"], "none.yaml: cannot read the topology"),
        (["remove", "t7"], "unknown name in the catalog's topologies (got 't7')"),
        (["add", "mine.yaml", "--name", "Not A Name"], "not a name (got 'Not A Name')"),
        (["check", "t4.txt", "--gpus-per-server", "5"], "servers have equally many of the 32 hosts (got 5)"),
    ],
)
def test_faults(arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_sweep_over_clusters_of_ones_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs of eight ranks on topologies of 8 and 32 GPUs, placed; the sweep is continued only as it began."""
    assert run("add", "mine.yaml", "--name", "mine") == 0
    begin = ["own.h5", "--quiet", "--tokens", "16", "--layers", "1", "--select"]
    keys = ["flash/mine/tp2ep4/ring_direct/ib_cc0", "flash/t4/tp2ep4/ring_direct/ib_cc0"]
    assert sweep([*begin, *keys, "--placement", "round_robin"]) == 0
    with open_results(folder / "own.h5") as results:
        assert results.design["placement"] == "round_robin"
        for key in keys:
            assert results.config(key)["placement"] == "round_robin"
            assert len(results.ranks(key)) == 8
    capsys.readouterr()
    assert sweep([*begin, *keys]) == 2
    assert "--placement (placement round_robin in the file, contiguous asked for)" in capsys.readouterr().err
    assert cli.main(["report", "own.h5", "-o", "report", "--no-figures", "--runs", "*"]) == 0
    pages = sorted(path.name for path in (folder / "report/runs").iterdir())
    assert len(pages) == 2
    assert cli.main(["compare", "own.h5", *keys]) == 0
    assert cli.main(["plan", "own.h5"]) == 0


def test_a_sweep_refuses_what_does_not_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    select = ["--select", "flash/t4/tp2ep4/ring_direct/ib_cc0", "flash/t4/tp8ep8/ring_direct/ib_cc0"]
    assert sweep(["own.h5", "--quiet", *select]) == 2
    assert "TP x EP x DP x PP = 64 ranks do not fit on the 32 GPUs" in capsys.readouterr().err
    assert not (folder / "own.h5").exists()
    (folder / "ranks.txt").write_text("0\n1\n")
    assert sweep(["own.h5", "--quiet", "--placement", "ranks.txt", *select[:2]]) == 2
    assert "ranks.txt: placement: the placement has 2 hosts for 8 ranks" in capsys.readouterr().err


def test_run_and_export_take_a_placement(folder: Path) -> None:
    small = ["--tokens", "16", "--layers", "1", "--placement", "round_robin"]
    key = "flash/t4/tp4ep8/ring_direct/ib_cc0"
    assert cli.main(["run", key, *small, "--json", "out.json"]) == 0
    assert json.loads((folder / "out.json").read_text())["placement"] == "round_robin"
    assert cli.main(["export", key, "exported", *small]) == 0
    assert upstream.read_topology(folder / "exported/topology.txt").links[0][:2] == (0, 32)
    assert upstream.read_topology(folder / "exported/topology.txt").links[1][:2] == (4, 32)
