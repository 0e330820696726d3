"""The command line around the simulator, which a stand-in replaces: what it is given and what is made of
its results."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hpcmoe
from hpcmoe import cli
from hpcmoe.commands import common
from hpcmoe.commands.flows import stuck_text
from hpcmoe.errors import SimulationError
from hpcmoe.scenario import Scenario

KEY = "flash/t6/tp8ep4/ring_direct/ib_cc0"
SMALL = ["--tokens", "8", "--layers", "1"]

RANK_NAMES = ("finish_ns", "wall_ns", "gpu_ns", "comm_ns", "cpu_ns", "remote_mem_ns", "exposed_comm_ns")
PERCENTS = (
    "compute_bound_percent",
    "compute_utilization_percent",
    "memory_utilization_percent",
    "operation_intensity",
)
FLOW_NAMES = ("src", "dst", "sport", "bytes", "start_ns", "fct_ns", "standalone_ns")
PAUSE_NAMES = ("time_ns", "node", "peer", "port", "is_switch", "pause")


def columns(names: tuple[str, ...], kind: str = "u8") -> list[tuple[str, str]]:
    return [(name, kind) for name in names]


FLOWS = np.array([(0, 9, 10000, 500, 0, 1234, 1200)], dtype=columns(FLOW_NAMES))


def result(ranks: int) -> SimpleNamespace:
    rows = np.zeros(
        ranks, [("rank", "u4"), ("finished", "?"), *columns(RANK_NAMES), *columns(PERCENTS, "f8")]
    )
    rows["rank"], rows["finished"] = np.arange(ranks), True
    rows["finish_ns"] = rows["wall_ns"] = 1_000_000
    rows["gpu_ns"], rows["comm_ns"] = 250_000, 750_000
    return SimpleNamespace(
        wall_ns=1_000_000,
        gpu_ns=250_000,
        comm_ns=750_000,
        bottleneck_rank=0,
        simulated_ns=1_000_000,
        events=4000,
        packet_hops=2000,
        seconds=0.5,
        layers_simulated=1,
        layers_added=0,
        quiet_moments=0,
        ecn_marks=3,
        pfc_pauses=1,
        drops=0,
        ranks=rows,
        flows=FLOWS,
        pauses=np.array([(7, 33, 0, 2, 1, 1)], dtype=columns(PAUSE_NAMES)),
        qlen_lines=["time 100 32 j 1 2000"],
    )


class FakeRunner(ModuleType):
    """Remembers what it is called with."""

    def __init__(self) -> None:
        super().__init__("hpcmoe.runner")
        self.scenarios: list[Scenario] = []
        self.flow_calls: list[tuple[Any, ...]] = []
        self.unfinished: list[int] = []
        self.drops = 0
        self.failure: BaseException | None = None

    def run(
        self,
        scenario: Scenario,
        *,
        progress: Callable[[Any], None] | None = None,
        fast_forward: bool = True,
        backend: str = "native",
    ) -> SimpleNamespace:
        self.fast_forward = fast_forward
        self.backend = backend
        if self.failure is not None:
            raise self.failure
        self.scenarios.append(scenario)
        return result(scenario.ranks)

    def run_flows(self, *arguments: Any, backend: str = "native") -> SimpleNamespace:
        self.backend = backend
        self.flow_calls.append(arguments)
        return SimpleNamespace(flows=FLOWS, unfinished=np.array(self.unfinished, dtype=int), drops=self.drops)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner()
    monkeypatch.setitem(sys.modules, "hpcmoe.runner", fake)
    monkeypatch.setattr(hpcmoe, "runner", fake, raising=False)
    return fake


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """An exported input set as the working directory."""
    assert cli.main(["export", KEY, str(tmp_path), *SMALL]) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASTRA_NS3_CC_POLICY", raising=False)
    capsys.readouterr()
    return tmp_path


UPSTREAM = [
    "simulate", "--workload-configuration=et", "--system-configuration", "system.json",
    "--network-configuration=config.txt", "--remote-memory-configuration", "memory.json",
    "--logical-topology-configuration=logical.json", "--comm-group-configuration=empty",
]  # fmt: skip


def test_run_prints_a_table(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", KEY, *SMALL, "--set", "has_window=0", "--set", "ecn=*:1:2:1"]) == 0
    (scenario,) = runner.scenarios
    assert (scenario.tokens, scenario.layers, scenario.network["has_window"]) == (8, 1, False)
    assert scenario.ecn[0][1:] == (1, 2, 1.0)
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"{KEY}  (8 tokens, 1 MoE layers)"
    assert "1.000000 ms  (rank 0)" in out
    assert "0.750000 ms  (75.0%)" in out
    assert "CPU time" not in out
    assert err == ""


def test_run_profile_prints_the_cost(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", KEY, *SMALL, "--profile"]) == 0
    assert "4000  (0.01 M/s)" in capsys.readouterr().out


def test_every_layer_is_simulated_on_request(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", KEY, *SMALL]) == 0
    assert runner.fast_forward
    assert cli.main(["run", KEY, *SMALL, "--no-fast-forward"]) == 0
    assert not runner.fast_forward
    assert "1, all of them as asked for" in capsys.readouterr().out


def test_run_json_to_standard_output_is_alone(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", KEY, *SMALL, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["key"] == KEY
    assert (content["wall_ns"], content["gpu_ns"], content["comm_ns"]) == (1_000_000, 250_000, 750_000)
    assert content["digest"] == runner.scenarios[0].digest()
    assert len(content["ranks"]) == 32


def test_run_with_a_model_of_ones_own(runner: FakeRunner, tmp_path: Path) -> None:
    config = {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert cli.main(["run", KEY, "--tokens", "8", "--model-config", str(tmp_path / "config.json")]) == 0
    assert runner.scenarios[0].traces[0].comm_bytes[1] == 8 * 64 * 2


def test_simulate_is_a_drop_in(
    runner: FakeRunner, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(UPSTREAM) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[workload] [info] sys[0] finished, 1000000 cycles, exposed communication 0 cycles."
    assert sum("Wall time: 1000000" in line for line in lines) == 32
    assert (exported / "fct.txt").read_text() == "0b000001 0b000901 10000 100 500 0 1234 1200\n"
    assert (exported / "pfc.txt").read_text() == "7 33 1 2 1\n"
    assert (exported / "qlen.txt").read_text() == "time 100 32 j 1 2000\n"
    assert runner.scenarios[0].profile == "upstream"
    assert runner.scenarios[0].cc_disabled_pairs is None


def test_simulate_writes_json(runner: FakeRunner, exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*UPSTREAM, "--json=out.json"]) == 0
    content = json.loads(Path("out.json").read_text())
    assert set(content) == {"simulated_ns", "events", "packet_hops", "seconds", "ranks"}
    assert content["ranks"][31] == {"rank": 31, "wall_ns": 1_000_000, "gpu_ns": 250_000, "comm_ns": 750_000}
    assert capsys.readouterr().out.startswith("[workload]")
    assert cli.main([*UPSTREAM, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == content


def test_a_stalled_simulation_says_that_nothing_is_written(
    runner: FakeRunner, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.failure = SimulationError("no progress is possible: rank 0: node 1 waits for a message")
    assert cli.main(UPSTREAM) == 3
    error = capsys.readouterr().err
    assert error.startswith("hpcmoe: error: et: no progress is possible: rank 0: node 1")
    assert error.endswith("No output file was written\n")
    assert not (exported / "fct.txt").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("FCT_OUTPUT_FILE fct.txt", "FCT_OUTPUT_FILE et.3.et", "et.3.et: FCT_OUTPUT_FILE: would overwrite"),
        ("PFC_OUTPUT_FILE pfc.txt", "PFC_OUTPUT_FILE fct.txt", "the same file as FCT_OUTPUT_FILE"),
        ("QLEN_MON_FILE qlen.txt", "QLEN_MON_FILE none/q", "none/q: cannot write"),
    ],
)
def test_simulate_refuses_outputs_before_it_runs(
    old: str, new: str, message: str, runner: FakeRunner, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = exported / "config.txt"
    config.write_text(config.read_text().replace(old, new))
    assert cli.main(UPSTREAM) == 2
    assert message in capsys.readouterr().err
    assert not runner.scenarios


def test_simulate_options(runner: FakeRunner, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRA_NS3_CC_POLICY", "cc_policy.txt")
    options = [
        "--num-queues-per-dim=2",
        "--injection-scale",
        "3",
        "--rendezvous-protocol=true",
        "--comm-scale=1",
        "--logging-configuration=empty",
        "--profile",
        "study",
        "--set",
        "random_seed=9",
    ]
    assert cli.main([*UPSTREAM, *options]) == 0
    (scenario,) = runner.scenarios
    assert (scenario.system["num_queues_per_dim"], scenario.system["endpoint_delay_ns"]) == (2, 30)
    assert scenario.system["rendezvous_protocol"] is True
    assert scenario.network["int_exact_rates"] is True
    assert scenario.network["random_seed"] == 9
    assert scenario.cc_disabled_pairs is not None


def test_qlen_is_written_only_where_named(runner: FakeRunner, exported: Path) -> None:
    config = exported / "config.txt"
    config.write_text(
        config.read_text().replace("QLEN_MON_FILE qlen.txt", "").replace("fct.txt", "flows.out")
    )
    assert cli.main(UPSTREAM) == 0
    assert (exported / "flows.out").exists()
    assert not (exported / "fct.txt").exists()
    assert not (exported / "qlen.txt").exists()


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.txt").write_text((data / "upstream/config.txt").read_text())
    (tmp_path / "topology.txt").write_text((data / "upstream/t6.topology.txt").read_text())
    (tmp_path / "flows.txt").write_text("0 0 9 500\n10 1 2 700\n")
    return tmp_path


FLOWS_COMMAND = ["flows", "--network-configuration", "config.txt", "--flows", "flows.txt", "--fct=out.txt"]


def test_flows(runner: FakeRunner, network: Path) -> None:
    assert cli.main(FLOWS_COMMAND) == 0
    ((topology, parameters, ecn, wanted, until),) = runner.flow_calls
    assert (topology.hosts, parameters["cc_mode"], len(ecn), until) == (32, 0, 7, 2**62)
    assert wanted.tolist() == [[0, 0, 9, 500], [10, 1, 2, 700]]
    assert (network / "out.txt").read_text() == "0b000001 0b000901 10000 100 500 0 1234 1200\n"


def test_unfinished_flows(runner: FakeRunner, network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runner.unfinished, runner.drops = [1], 4
    assert cli.main(FLOWS_COMMAND) == 3
    error = capsys.readouterr().err
    text = "1 of 2 flows never finish: flow 1 (1 -> 2, 700 bytes) (4 packets were lost;"
    assert error.startswith(f"hpcmoe: error: {text}")
    assert error.endswith("out.txt has the others\n")
    assert (network / "out.txt").read_text() == "0b000001 0b000901 10000 100 500 0 1234 1200\n"
    assert cli.main([*FLOWS_COMMAND, "--until-ns", "50"]) == 0
    assert runner.flow_calls[-1][-1] == 50
    assert (network / "out.txt").read_text()


def test_many_stuck_flows_are_cut_short() -> None:
    wanted = np.array([[0, 0, 1, 5]] * 20)
    assert stuck_text(wanted, np.arange(10)).endswith("5 bytes) and 2 more")


def test_flows_without_a_path(runner: FakeRunner, network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (network / "topology.txt").write_text("3 1 1\n2\n0 2 400Gbps 1us 0\n")
    (network / "flows.txt").write_text("0 0 1 500\n")
    assert cli.main(FLOWS_COMMAND) == 2
    assert "flows.txt: flow 0: no path joins the hosts" in capsys.readouterr().err


def test_trace_writes_one_file_per_rank(tmp_path: Path, data: Path) -> None:
    key = "flash/t1/tp2ep16/ring_direct/ib_cc0"
    assert cli.main(["trace", key, str(tmp_path / "new" / "folder"), "--layers", "1"]) == 0
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert {file.name for file in files} == {f"et.{rank}.et" for rank in range(32)}
    reference = (data / "upstream/flash_layer_tp2ep16.et").read_bytes()
    assert all(file.read_bytes() == reference for file in files)


def test_export_writes_the_input_set(exported: Path) -> None:
    names = {file.name for file in exported.iterdir() if not file.name.startswith("et.")}
    assert names == {
        "system.json",
        "logical.json",
        "memory.json",
        "topology.txt",
        "config.txt",
        "cc_policy.txt",
        "run.sh",
        "flow.txt",
        "trace.txt",
    }
    assert (exported / "run.sh").stat().st_mode & 0o111
    script = (exported / "run.sh").read_text()
    assert 'ASTRA_NS3_CC_POLICY="$PWD/cc_policy.txt"' in script


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 768
    assert cli.main(["list", "pro/t6/*/ring_direct/ib_cc0"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "pro/t6/tp2ep16/ring_direct/ib_cc0"


def test_list_describes_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--models", "--networks"]) == 0
    out = capsys.readouterr().out
    assert "DeepSeek V4 Flash 0731" in out
    assert "tensor_parallel TFLOP at 4096 tokens: 67.964 calibrated" in out
    assert "roce_dcqcn" in out


def test_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["parameters"]) == 0
    out = capsys.readouterr().out
    assert "buffer_bytes [bytes]  default 33554432, upstream 16777216; " in out
    assert "cc_mode  default none, upstream dcqcn; allowed: none (0), dcqcn (1)" in out
    assert {"ecn", "external_delay", "routing"} <= {line.split(" ")[0] for line in out.splitlines()}
    assert cli.main(["parameters", "has_window", "ecn"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


WRITTEN = [
    Path("d", *name.split("/"))
    for name in (
        "index.html",
        "report.md",
        "tables/a.csv",
        "tables/b.csv",
        "figures/f.png",
        "runs/r.html",
    )
]


def test_sweep_and_report_are_handed_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []
    sweep, report = ModuleType("hpcmoe.sweep"), ModuleType("hpcmoe.report")
    sweep.main = lambda argv: seen.append(argv) or 75  # type: ignore[attr-defined]
    report.write_report = lambda *a, **k: seen.append(a) or WRITTEN  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hpcmoe.sweep", sweep)
    monkeypatch.setitem(sys.modules, "hpcmoe.report", report)
    assert cli.main(["sweep", "out.h5", "--json", "-h"]) == 75
    assert cli.main(["report", "x.h5", "-o", "d"]) == 0
    assert seen == [["out.h5", "--json", "-h"], ("x.h5", "d")]
    out = capsys.readouterr().out.splitlines()
    assert out == ["d/index.html", "d/report.md", "d/tables/ 2 csv", "d/figures/ 1 png", "d/runs/ 1 html"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "flash/t6"], "run key: a run key has five parts"),
        (["run", KEY, "--set", "windows=1"], "windows: unknown parameter; allowed: has_window"),
        (["run", KEY, "--set", "has_window"], "--set: not an assignment"),
        (["run", KEY, "--tokens", "0"], "tokens: bad number"),
        (["run", KEY, "--model-config", "none.json"], "none.json: cannot read the model"),
        (["run", KEY, *SMALL, "--json", "no/such/folder.json"], "no/such/folder.json: cannot write"),
        (["list", "*/t9/*"], "no run matches"),
        (["parameters", "windows"], "unknown parameter"),
        (["trace", KEY, "/proc/none/x", *SMALL], "/proc/none/x: cannot write"),
        (["simulate", *UPSTREAM[1:]], "logical.json: cannot read the logical topology"),
        (FLOWS_COMMAND, "config.txt: cannot read the network configuration"),
        ([*FLOWS_COMMAND, "--profile", "mine"], "--profile"),
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["run"], "KEY"),
        (["run", KEY, "--tok", "8"], "unrecognized arguments"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(
    command: list[str], message: str, runner: FakeRunner, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    try:
        code: Any = cli.main(command)
    except SystemExit as exit:
        code = exit.code
    err = capsys.readouterr().err
    assert code == 2
    assert err.startswith("hpcmoe: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("failure", "code"), [(SimulationError("rank 3 is stuck"), 3), (KeyboardInterrupt(), 130)]
)
def test_failures_while_running(
    failure: BaseException, code: int, runner: FakeRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.failure = failure
    assert cli.main(["run", KEY, *SMALL]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hpcmoe: ")
    assert "Traceback" not in err


def test_warnings_go_to_standard_error(runner: FakeRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "flash/t3/tp16ep2/ring_direct/ib_hpcc", *SMALL]) == 0
    err = capsys.readouterr().err
    assert err.startswith("hpcmoe: warning: HPCC ignores feedback")
    assert err.count("\n") == 1


def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert common.progress_printer() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show = common.progress_printer()
    assert show is not None
    info = SimpleNamespace(simulated_ns=2_500_000, finished_ranks=4, ranks=32, events=3_400_000, seconds=2.14)
    show(info)
    show(info)  # too soon after the first
    common.end_progress(show)
    text = "2.500 ms simulated, 4/32 ranks finished, 3.4 M events, 2.1 s"
    assert capsys.readouterr().err == f"\r\x1b[K{text}\r\x1b[K"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"hpcmoe {hpcmoe.__version__}\n"
