"""ns-3 keeps its state in the process: many runs one after the other, and what becomes of a fatal error."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcmoe import isolation, parameters, runner
from hpcmoe.cli import main
from hpcmoe.errors import InputError, SimulationError
from hpcmoe.topology import Link, Topology

GBPS = 10**9

RUNS = 50
MEMORY_OF_RUNS = """
import json, sys
from hpcmoe import _native

def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

arguments = json.loads(sys.stdin.read())
first, memory = None, []
for _ in range(int(sys.argv[1])):
    result = _native.simulate_flows(
        **arguments, local_pairs=None, until_ns=None, keep={"flows"}, backend="ns3")
    first = first or result["flows"].tolist()
    assert result["flows"].tolist() == first
    memory.append(resident_kib())
print(json.dumps(memory))
"""


def star_with_flows(flow_bytes: int) -> dict[str, Any]:
    """Eight hosts on one switch that marks, under DCQCN, all sending to host 0."""
    values = parameters.defaults("study", "network")
    values.update(cc_mode=1, ecn_enabled=True, ecn_random=0, qlen_monitor_start_ns=parameters.MONITOR_OFF)
    return {
        "nodes": 9,
        "switches": [8],
        "links": [(host, 8, 100 * GBPS, 500, 0.0) for host in range(8)],
        "network": parameters.complete(values, "network"),
        "ecn": [(100 * GBPS, 10_000, 40_000, 0.2)],
        "flows": [(0, host, 0, flow_bytes) for host in range(1, 8)],
    }


@pytest.mark.ns3
def test_fifty_runs_in_one_process_do_not_grow() -> None:
    import json

    done = subprocess.run(
        [sys.executable, "-c", MEMORY_OF_RUNS, str(RUNS)],
        input=json.dumps(star_with_flows(200_000)), capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    memory = json.loads(done.stdout)
    assert len(memory) == RUNS
    assert memory[-1] < 1.05 * memory[1]


@pytest.mark.ns3
def test_a_second_simulation_beside_the_first_is_refused() -> None:
    from hpcmoe import _native

    refused: list[str] = []

    def start_another(*_: int) -> None:
        arguments = star_with_flows(1000)
        with pytest.raises(RuntimeError, match="room for one simulation at a time") as caught:
            _native.simulate_flows(**arguments, local_pairs=None, until_ns=None, keep=set(), backend="ns3")
        refused.append(str(caught.value))

    arguments = star_with_flows(1000)
    _native.simulate_flows(
        **arguments, local_pairs=None, until_ns=None, keep=set(), backend="ns3", on_progress=start_another
    )
    assert refused


def fatal(*, on_progress: Any) -> None:
    """What ns-3 does on a fatal error."""
    on_progress(1, 2, 3, 4)
    os.write(2, b'NS_FATAL, terminating\nmsg="no such port", +1.0s file=switch.cc, line=7\n')
    os.abort()


def test_a_fatal_error_is_a_failed_run_with_the_message() -> None:
    seen: list[tuple[float, ...]] = []
    with pytest.raises(SimulationError, match=r"^ns-3 stopped the run: no such port$"):
        isolation.call(fatal, {}, lambda *content: seen.append(content))
    assert [content[:4] for content in seen] == [(1, 2, 3, 4)]


@pytest.mark.ns3
def test_a_fatal_error_of_ns3_itself() -> None:
    """The command line would not let this seed through."""
    topology, network, flows = small_network()
    with pytest.raises(SimulationError, match="ns-3 stopped the run: "):
        runner.run_flows(topology, {**network, "random_seed": 0}, [], flows, backend="ns3")
    assert len(runner.run_flows(topology, network, [], flows, backend="ns3").flows) == 1


def silent(*, on_progress: Any) -> None:
    os._exit(9)


def test_a_process_that_just_ends_is_a_failed_run() -> None:
    with pytest.raises(SimulationError, match="ended with code 9"):
        isolation.call(silent, {}, None)


def wrong(*, on_progress: Any) -> None:
    raise ValueError("payload_bytes 0")


def test_errors_and_values_come_back() -> None:
    with pytest.raises(ValueError, match="payload_bytes 0"):
        isolation.call(wrong, {}, None)
    value, seconds = isolation.call(lambda *, x, on_progress: x + 1, {"x": 41}, None)
    assert value == 42
    assert seconds >= 0


def endless(*, on_progress: Any, pid_file: str) -> None:
    Path(pid_file).write_text(str(os.getpid()))
    while True:
        on_progress(0, 0, 0, 0)
        time.sleep(0.01)


def test_an_interrupted_run_leaves_no_process_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt(*_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        isolation.call(endless, {"pid_file": str(pid_file)}, interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), signal.SIG_DFL)


def small_network() -> tuple[Topology, dict[str, Any], np.ndarray]:
    topology = Topology(
        node_count=2, switch_ids=(), links=(Link(0, 1, 100 * GBPS, 500, 0.0),),
        node_names=("a", "b"), node_kinds=("gpu", "gpu"),
    )  # fmt: skip
    network = {**parameters.defaults("study", "network"), "cc_mode": 0, "ecn_enabled": False}
    return topology, parameters.complete(network, "network"), np.array([(0, 0, 1, 5000)])


def test_without_ns3_the_backend_is_refused_with_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "backends", lambda: ("native",))
    topology, network, flows = small_network()
    with pytest.raises(InputError, match="built without ns-3; HPCMOE_NS3=ON when installing adds it"):
        runner.run_flows(topology, network, [], flows, backend="ns3")
    with pytest.raises(InputError, match=r"unknown backend.*native, ns3"):
        runner.run_flows(topology, network, [], flows, backend="ns2")


@pytest.mark.ns3
def test_input_that_only_the_simulator_can_judge_is_an_input_error() -> None:
    topology, network, flows = small_network()
    with pytest.raises(InputError, match="allowed are 1 .."):
        runner.run_flows(topology, network, [], flows * [1, 1, 1, 0], backend="ns3")
    exact = {**network, "int_exact_rates": True}
    many = tuple(Link(host, 9, (100 + host) * GBPS, 500, 0.0) for host in range(9))
    crowd = Topology(
        node_count=10, switch_ids=(9,), links=many, node_names=tuple("abcdefghij"), node_kinds=("gpu",) * 10
    )
    with pytest.raises(InputError, match="8 codes for link rates, but the switches have 9 rates"):
        runner.run_flows(crowd, exact, [], flows, backend="ns3")


@pytest.mark.ns3
def test_progress_reaches_the_caller() -> None:
    topology, network, flows = small_network()
    seen: list[runner.ProgressInfo] = []
    runner.run_flows(topology, network, [], flows, backend="ns3", progress=seen.append)
    assert seen
    assert seen[-1].packet_hops == 10
    assert seen[-1].seconds > 0


@pytest.mark.ns3
def test_run_on_ns3_gives_the_same_report(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "flash/t6/tp2ep16/ring_direct/roce_dcqcn", "--tokens=4", "--layers=1"]
    reports = []
    for backend in runner.BACKENDS:
        assert main([*command, f"--backend={backend}"]) == 0
        reports.append(capsys.readouterr().out.splitlines())
    native, ns3 = ([line for line in report if "layers simulated" not in line] for report in reports)
    assert ns3 == native
    assert any("completion time" in line for line in ns3)


@pytest.mark.ns3
def test_sweep_on_ns3(tmp_path: Path) -> None:
    from hpcmoe.store import open_results

    rows = {}
    for backend in runner.BACKENDS:
        file = tmp_path / f"{backend}.h5"
        command = ["sweep", str(file), "--select", "flash/t[16]/tp2ep16/ring_direct/*_hpcc", "--tokens=4",
                   "--layers=1", "--quiet", f"--backend={backend}"]  # fmt: skip
        assert main(command) == 0
        runs = open_results(file).runs
        rows[backend] = [
            (run["key"], run["status"], run["wall_ns"], run["comm_ns"], run["packet_hops"]) for run in runs
        ]
    assert rows["ns3"] == rows["native"]
    assert len(rows["ns3"]) == 4
