"""Bad input that once got past a check: sizes beyond 64 bits, nested JSON, misplaced keys."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcmoe import blame, chakra, parameters, runner, topology, upstream
from hpcmoe.errors import InputError, SimulationError
from hpcmoe.json_input import read_object
from hpcmoe.model import model_from_config
from hpcmoe.overrides import Overrides
from hpcmoe.scenario_checks import check_network
from hpcmoe.sweep import arguments
from hpcmoe.topology import Link
from hpcmoe.trace import NodeType, TraceGraph, TraceNode

STAR = topology.unnamed(3, [2], [Link(0, 2, 10**9, 5), Link(1, 2, 10**9, 5)])
TOPOLOGY = "3 1 2\n2\n0 2 1Gbps 5ns 0\n1 2 1Gbps 5ns 0\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("time", [2**62 + 1, 2**63, 10**30])
def test_flows_later_than_64_bits_can_say(time: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"f\.txt: line 1: (too late|bad line)"):
        upstream.read_flows(write(tmp_path / "f.txt", f"{time} 0 1 5"), STAR)
    latest = upstream.read_flows(write(tmp_path / "f.txt", f"{2**62} 0 1 5"), STAR)
    assert latest[0, 0] == 2**62


@pytest.mark.parametrize("line", ["0 0 1 1_000", "\u0660 0 1 5", "+0 0 1 5", "0 0 1 5.0"])
def test_flow_numbers_are_plain_digits(line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: bad line"):
        upstream.read_flows(write(tmp_path / "f.txt", line), STAR)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 1 2", "3_0 1 2", "node count: bad value"),
        ("3 1 2", "\u0663 1 2", "node count: bad value"),
        ("3 1 2", "3 1 1", "something follows the last link .got '1'"),
        ("3 1 2", "5000 1 2", "too many hosts: 5000 nodes .*got 4999.; allowed: up to 4096"),
        ("0 2 1Gbps", "0 2 100001Gbps", "link 0 .0 2.: rate: bad value .*up to 100Tbps"),
        ("5ns 0\n1", "5ns 0_1\n1", "link 0 .0 2.: error rate: bad value"),
    ],
)
def test_bad_topologies(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_topology(write(tmp_path / "t.txt", TOPOLOGY.replace(old, new)))


def test_many_switches_are_not_many_hosts(tmp_path: Path) -> None:
    ids = " ".join(map(str, range(2, 5002)))
    read = upstream.read_topology(write(tmp_path / "t.txt", f"5002 5000 1 {ids} 0 1 100Gbps 5ns 0"))
    assert read.hosts == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LINK_DOWN 0 0 CC_MODE 3", "LINK_DOWN: a value is missing.*'CC_MODE'"),
        ("FCT_OUTPUT_FILE PFC_OUTPUT_FILE p.txt", "FCT_OUTPUT_FILE: a value is missing"),
        ("KMIN_MAP 2 10 1 KMAX_MAP 1 10 4", "KMIN_MAP: a value is missing.*'KMAX_MAP'"),
        ("KMIN_MAP -1", "KMIN_MAP: bad number of entries .got -1.; allowed: integers from 0"),
        ("KMIN_MAP 1 1_0 1", "KMIN_MAP: bad value"),
        ("PACKET_PAYLOAD_SIZE 1_000", "PACKET_PAYLOAD_SIZE: bad value"),
        ("U_TARGET \u0660", "U_TARGET: bad value"),
    ],
)
def test_bad_configurations(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_network_config(write(tmp_path / "c.txt", text))


def test_nested_json(tmp_path: Path) -> None:
    deep = write(tmp_path / "deep.json", '{"a":' * 100_000)
    for read in (
        upstream.read_system,
        upstream.read_memory,
        upstream.read_groups,
        upstream.read_logical_dims,
        model_from_config,
    ):
        with pytest.raises(InputError, match=r"deep\.json: not usable: nested too deeply"):
            read(deep)


def test_repeated_json_keys(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"g\.json: 1: the key is given twice"):
        upstream.read_groups(write(tmp_path / "g.json", '{"1": [0, 1], "1": [2]}'))
    with pytest.raises(InputError, match="b: the key is given twice"):
        read_object(write(tmp_path / "x.json", '{"a": {"b": 1, "b": 1}}'), "input")


def test_long_numbers_in_json(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.json: a number has too many digits"):
        upstream.read_memory(write(tmp_path / "m.json", '{"remote-mem-bw": ' + "9" * 5000 + "}"))


def test_unknown_system_keys_are_warned_about(tmp_path: Path) -> None:
    content = {"peak-perv": 1, "boost-mode": 0, "intra-dimension-scheduling": "FIFO", "peak-perf": 5}
    read = upstream.read_system(write(tmp_path / "s.json", json.dumps(content)))
    assert read.values == {"peak_perf_tflops": 5.0}
    assert read.warnings == [f"{tmp_path / 's.json'}: peak-perv: unknown key, ignored"]


def test_unreadable_files_are_named_once(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    for read in (upstream.read_topology, upstream.read_network_config):
        with pytest.raises(InputError) as error:
            read(path)
        assert str(error.value).count("none.txt") == 1
        assert str(error.value).endswith(": No such file or directory")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text"):
        upstream.read_topology(tmp_path / "bytes")


def test_long_values_are_shortened() -> None:
    assert str(InputError("bad", value="9" * 5000)) == f"bad (got '{'9' * 76}...)"
    assert len(str(InputError("bad", field="x" * 5000))) < 100


def test_allowed_values_are_exact() -> None:
    allowed = {name: parameters.find(name).allowed() for name in ("rate_ai_bps", "buffer_bytes")}
    assert allowed == {
        "rate_ai_bps": "a rate such as 50Mbps, from 1 bit/s",
        "buffer_bytes": f"integers from 1 to {4095 * 2**20}",
    }


def test_an_unknown_parameter_is_answered_with_five_names() -> None:
    with pytest.raises(InputError) as error:
        parameters.find("bufer_bytes")
    assert str(error.value).startswith("bufer_bytes: unknown parameter; allowed: buffer_bytes, ")
    assert str(error.value).endswith(" and others, see 'hpcmoe parameters'")
    assert str(error.value).count(",") == 5


def test_sections_can_be_refused() -> None:
    changes = Overrides({"peak_perf_tflops": "1", "has_window": "0"})
    with pytest.raises(InputError, match="peak_perf_tflops: a system parameter: not here"):
        changes.refuse("system", "not here")
    Overrides({"has_window": "0"}).refuse("system", "not here")


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "soon"])
def test_sweep_times_are_finite_and_positive(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--patience", "--report-every"):
        with pytest.raises(SystemExit):
            arguments.parser().parse_args(["out.h5", f"{option}={value}"])
        assert "expected seconds above 0" in capsys.readouterr().err
    assert isinstance(arguments.parser().parse_args(["out.h5", "--patience", "2.5"]), argparse.Namespace)


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (MemoryError(), SimulationError, "out of memory: 2 hosts, 2 links, 1 flows"),
        (OverflowError("int too large"), SimulationError, "a number is too large for the simulator: int"),
        (ValueError("bad link"), InputError, "bad link"),
    ],
)
def test_faults_of_the_simulator(
    fault: Exception, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**arguments: Any) -> None:
        raise fault

    monkeypatch.setattr(runner._native, "simulate_flows", fail)
    with pytest.raises(kind, match=f"^{message}"):
        runner.run_flows(STAR, {}, [], np.array([[0, 0, 1, 5]]))


FILES = {"workload": "et", "topology": "t.txt", "system": "s.json", "groups": "g.json", "logical": "l.json"}


@pytest.mark.parametrize(
    ("message", "located"),
    [
        ("rank 3, node 7: comm_bytes = 0; allowed: 1", "et.3.et: rank 3, node 7: comm_bytes = 0; allowed: 1"),
        ("communicator group 4 = [9]; allowed: 1", "g.json: communicator group 4 = [9]; allowed: 1"),
        ("link rate 1 bit/s is too slow", "t.txt: link rate 1 bit/s is too slow"),
        ("local_mem_bw_gbps = 0.0; allowed: 1", "s.json: local-mem-bw = 0.0; allowed: 1"),
        ("logical_dims = [3]; allowed: 4", "l.json: logical_dims = [3]; allowed: 4"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_errors_of_the_simulator_name_the_file(message: str, located: str) -> None:
    assert str(blame.located(InputError(message), FILES)) == located
    assert str(blame.located(InputError(message), {})) == message


def test_a_stall_names_the_workload() -> None:
    stall = SimulationError("no progress is possible after 0 ns: rank 0: node 1 waits for a message")
    assert str(blame.located(stall, FILES)).startswith("et: no progress")
    assert blame.located(stall, {}) is stall
    lost = SimulationError(f"{stall}. Unfinished flows: 0 -> 1 port 10000")
    assert blame.located(lost, FILES) is lost


def test_network_checks_name_the_configuration() -> None:
    network = parameters.complete(parameters.defaults("study", "network"), "network")
    with pytest.raises(InputError, match=r"^c\.txt: KMIN_MAP, KMAX_MAP, PMAX_MAP: marking is on"):
        check_network(STAR, network | {"ecn_enabled": True}, set(), "c.txt")


def test_traces_keep_values_above_63_bits(tmp_path: Path) -> None:
    node = TraceNode(0, NodeType.COMP, num_ops=2**64 - 1, tensor_bytes=8)
    chakra.write_trace(TraceGraph.from_nodes([node]), tmp_path / "x.0.et")
    assert int(chakra.read_trace(tmp_path / "x.0.et", 0).graph.num_ops[0]) == 2**64 - 1
