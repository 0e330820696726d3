"""From a scenario to its result. The only caller of the native simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcmoe import _native, isolation
from hpcmoe.errors import InputError, SimulationError
from hpcmoe.parameters import Value
from hpcmoe.scenario import Scenario
from hpcmoe.topology import Topology
from hpcmoe.trace import NodeType, TraceGraph
from hpcmoe.upstream.config import EcnThreshold


@dataclass(frozen=True)
class ProgressInfo:
    """How far a run is. ``seconds`` is CPU time spent so far."""

    simulated_ns: int
    events: int
    packet_hops: int
    finished_ranks: int
    ranks: int
    seconds: float


Progress = Callable[[ProgressInfo], None]

BACKENDS = ("native", "ns3")


@dataclass(frozen=True)
class RunResult:
    """What one run gave.

    ``wall_ns``, ``gpu_ns`` and ``comm_ns`` are those of the bottleneck rank: the one that ends last, the
    lowest on a tie. ``seconds`` is CPU time. A packet-hop is one data packet, ACK or NACK crossing one link.

    Arrays (times in ns, sizes in bytes):

    * ``ranks``: one row per rank in order: rank, finished, finish_ns, wall_ns, gpu_ns, comm_ns, cpu_ns,
      remote_mem_ns, exposed_comm_ns, bytes_sent, bytes_received, and the four roofline statistics.
    * ``links``: one row per direction, link 0 src to dst, link 0 dst to src, link 1 ...: src, dst, rate_bps,
      bytes, data_packets, ack_packets, pfc_frames, ecn_marks, pause_ns (the sending end was paused),
      peak_queue_bytes, busy_ns.
    * ``flows``, in order of completion: src, dst, sport, bytes, start_ns, fct_ns, standalone_ns, node_id,
      layer, chunk, step.
    * ``pauses``, PFC frames as received: time_ns, node, peer, port, is_switch, pause (1 pause, 0 resume).
    * ``queues``, non-empty queues at sampling instants: time_ns, src, dst, bytes.
    * ``repeats``: rows [flow_begin, flow_end), [pause_begin, pause_end) and [queue_begin, queue_end) of the
      three tables above stand for themselves and for ``count`` more copies, each ``period_ns`` later than the
      one before, with layer and node_id raised by layer_step and node_step. Counters and rank times include
      the copies.

    ``quiet_moments``: how often the network was empty and every rank computed or waited, the start included;
    fast-forward compares these moments.
    """

    wall_ns: int
    gpu_ns: int
    comm_ns: int
    bottleneck_rank: int
    simulated_ns: int
    events: int
    packet_hops: int
    seconds: float
    layers_simulated: int
    layers_added: int
    ecn_marks: int
    pfc_pauses: int
    drops: int
    ignored_int_flows: int
    ranks: np.ndarray
    links: np.ndarray
    flows: np.ndarray
    pauses: np.ndarray
    queues: np.ndarray
    repeats: np.ndarray
    quiet_moments: int
    qlen_lines: list[str]


@dataclass(frozen=True)
class FlowsResult:
    """What a network-only run gave; arrays and counts as in RunResult. ``node_id`` of a flow row is the
    flow's position in the list; ``unfinished`` are the positions without a row."""

    events: int
    packet_hops: int
    seconds: float
    ecn_marks: int
    pfc_pauses: int
    drops: int
    flows: np.ndarray
    unfinished: np.ndarray
    links: np.ndarray
    pauses: np.ndarray
    qlen_lines: list[str]


def run(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    record_flows: bool = True,
    record_pauses: bool = True,
    record_queues: bool = True,
    fast_forward: bool = True,
    backend: str = "native",
) -> RunResult:
    """Simulates the scenario to its end.

    ``fast_forward`` adds equal layers where an equal state of network and ranks proves that they run
    alike (``study`` profile); the result is the same, only faster. ``backend`` is ``native`` or ``ns3``; ns-3
    runs in a process of its own, which a fatal error ends, and simulates everything.

    Raises InputError for input that only the simulator can see to be wrong, SimulationError when no
    progress is possible (it names the stuck ranks and nodes) or an end-of-run invariant is broken, and
    KeyboardInterrupt within a second of Ctrl-C.
    """
    arguments = {
        **_network_arguments(scenario.topology, scenario.network, scenario.ecn),
        "local_pairs": scenario.cc_disabled_pairs,
        "system": dict(scenario.system),
        "logical_dims": scenario.logical_dims,
        "implementations": dict(scenario.implementations),
        "groups": dict(scenario.groups),
        "traces": scenario.traces,
        "keep": _kept(flows=record_flows, pauses=record_pauses, queues=record_queues),
        "fast_forward": fast_forward,
    }
    raw, seconds = _call(_native.simulate, arguments, backend, _reporter(progress, scenario.ranks))
    _check_serial_ranks(scenario, raw["ranks"])
    return _result(raw, _layer_count(scenario), seconds)


def run_flows(
    topology: Topology,
    network: dict[str, Value],
    ecn: Sequence[EcnThreshold],
    flows: np.ndarray,
    until_ns: int | None = None,
    *,
    record_pauses: bool = True,
    local_pairs: np.ndarray | None = None,
    progress: Progress | None = None,
    backend: str = "native",
) -> FlowsResult:
    """Drives the network alone. ``flows``: int64 [n, 4] of (start_ns, src, dst, bytes).

    Without ``until_ns``, flows that never finish are a SimulationError that names them. Other errors, and
    ``backend``, as for ``run``.
    """
    rows = np.asarray(flows, dtype=np.int64).reshape(-1, 4)
    arguments = {
        **_network_arguments(topology, network, ecn),
        "local_pairs": local_pairs,
        "flows": rows.tolist(),
        "until_ns": until_ns,
        "keep": _kept(flows=True, pauses=record_pauses),
    }
    raw, seconds = _call(_native.simulate_flows, arguments, backend, _reporter(progress, 0))
    done = np.zeros(len(rows), dtype=bool)
    done[raw["flows"]["node_id"]] = True
    names = (
        "events",
        "packet_hops",
        "ecn_marks",
        "pfc_pauses",
        "drops",
        "flows",
        "links",
        "pauses",
        "qlen_lines",
    )
    return FlowsResult(
        **{name: raw[name] for name in names},
        unfinished=np.flatnonzero(~done),
        seconds=seconds,
    )


def backends() -> tuple[str, ...]:
    """The network backends that this installation has."""
    names: tuple[str, ...] = _native.backends()
    return names


def _call(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    backend: str,
    on_progress: Callable[..., None] | None,
) -> tuple[Any, float]:
    """What the simulator gives, and the CPU seconds that it took."""
    if backend not in BACKENDS:
        raise InputError("unknown backend", field="backend", value=backend, allowed=BACKENDS)
    with _translated_errors(arguments):
        if backend == "ns3":
            _check_ns3()
            return isolation.call(function, {**arguments, "backend": backend}, on_progress)
        started = time.process_time()
        raw = function(**arguments, on_progress=on_progress)
        return raw, time.process_time() - started


def _check_ns3() -> None:
    if "ns3" in backends():
        return
    reason = "this installation was built without ns-3; HPCMOE_NS3=ON when installing adds it"
    raise InputError(reason, field="backend", value="ns3", allowed=backends())


def _kept(**wanted: bool) -> set[str]:
    return {name for name, value in wanted.items() if value}


def _network_arguments(
    topology: Topology, network: dict[str, Value], ecn: Sequence[EcnThreshold]
) -> dict[str, Any]:
    return {
        "nodes": topology.node_count,
        "switches": list(topology.switch_ids),
        "links": [tuple(link) for link in topology.links],
        "network": dict(network),
        "ecn": list(ecn),
    }


def _reporter(progress: Progress | None, ranks: int) -> Callable[..., None] | None:
    if progress is None:
        return None
    started = time.process_time()

    def report(
        simulated_ns: int, events: int, packet_hops: int, finished_ranks: int, seconds: float | None = None
    ) -> None:
        spent = time.process_time() - started if seconds is None else seconds
        progress(ProgressInfo(simulated_ns, events, packet_hops, finished_ranks, ranks, spent))

    return report


@contextmanager
def _translated_errors(arguments: Mapping[str, Any]) -> Iterator[None]:
    """The simulator's faults under the names that the rest of the package knows."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
    except RuntimeError as error:
        raise SimulationError(str(error)) from error
    except MemoryError as error:
        raise SimulationError(f"out of memory: {_size_text(arguments)}") from error
    except OverflowError as error:
        raise SimulationError(f"a number is too large for the simulator: {error}") from error


def _size_text(arguments: Mapping[str, Any]) -> str:
    hosts = arguments["nodes"] - len(arguments["switches"])
    counted = [(hosts, "hosts"), (len(arguments["links"]), "links")]
    counted += [(len(arguments[name]), name) for name in ("traces", "flows") if name in arguments]
    return ", ".join(f"{count} {what}" for count, what in counted)


def _check_serial_ranks(scenario: Scenario, ranks: np.ndarray) -> None:
    """In a serial trace a rank computes or communicates at any time, never neither nor both."""
    serial = np.array([_is_serial(graph) for graph in scenario.traces])
    broken = np.flatnonzero(serial & (ranks["wall_ns"] != ranks["gpu_ns"] + ranks["comm_ns"]))
    if broken.size:
        row = ranks[broken[0]]
        raise SimulationError(
            f"internal invariant broken at the end of the run: rank {broken[0]}: wall {row['wall_ns']} ns "
            f"is not gpu {row['gpu_ns']} ns plus comm {row['comm_ns']} ns"
        )


_COUNTED = (NodeType.COMP, NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)


def _is_serial(graph: TraceGraph) -> bool:
    counts = np.diff(graph.parent_begin)
    kinds = np.isin(graph.type, _COUNTED) & ~graph.is_cpu_op
    chained = counts[0] == 0 and np.all(counts[1:] == 1)
    return bool(chained and kinds.all() and np.array_equal(graph.parents, np.arange(len(graph) - 1)))


def _layer_count(scenario: Scenario) -> int:
    """Model layers in the longest trace; 0 when the traces do not say."""
    return max((int(graph.layer.max(initial=-1)) + 1 for graph in scenario.traces), default=0)


def _result(raw: dict[str, Any], layers: int, seconds: float) -> RunResult:
    ranks = raw["ranks"]
    bottleneck = int(np.argmax(ranks["wall_ns"]))
    row = ranks[bottleneck]
    names = (
        "simulated_ns", "events", "packet_hops", "ecn_marks", "pfc_pauses", "drops", "ignored_int_flows",
        "ranks", "links", "flows", "pauses", "queues", "repeats", "quiet_moments", "qlen_lines",
    )  # fmt: skip
    return RunResult(
        wall_ns=int(row["wall_ns"]),
        gpu_ns=int(row["gpu_ns"]),
        comm_ns=int(row["comm_ns"]),
        bottleneck_rank=bottleneck,
        layers_simulated=layers - raw["layers_added"],
        layers_added=raw["layers_added"],
        seconds=seconds,
        **{name: raw[name] for name in names},
    )
