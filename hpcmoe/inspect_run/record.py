"""One run's records in the shape that an inspection needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hpcmoe import parameters
from hpcmoe.design import RunKey
from hpcmoe.errors import InputError
from hpcmoe.inspect_run import repeats as repeated
from hpcmoe.model import load_model
from hpcmoe.pipeline import build_traces
from hpcmoe.routing import Routes
from hpcmoe.store.reader import Results
from hpcmoe.store.repeats import blocks
from hpcmoe.store.result import RunTraces
from hpcmoe.topology import Link, Topology
from hpcmoe.trace import CollectiveType, NodeType, TraceGraph

ALGORITHMS = ("ring", "direct", "halving-doubling", "double binary tree")
_NAMES = {
    "attn": "attention",
    "ar1": "all-reduce 1",
    "disp": "all-to-all, dispatch",
    "exp": "experts",
    "comb": "all-to-all, combine",
    "ffn": "FFN",
    "ar2": "all-reduce 2",
}
_COLLECTIVE_KEYS = {CollectiveType.ALL_REDUCE: "all_reduce", CollectiveType.ALL_TO_ALL: "all_to_all"}


class Flow(NamedTuple):
    """One message; ``end_ns`` is when both of its ends learn that it is complete."""

    src: int
    dst: int
    sport: int
    bytes: int
    start_ns: int
    end_ns: int
    standalone_ns: int
    node: int
    layer: int
    chunk: int
    step: int

    @property
    def fct_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Node:
    """One node of the chain that every rank runs. ``duration_ns`` is of compute, ``algorithm`` of
    collectives, and a barrier has neither; a node starts when the one before it ends."""

    id: int
    layer: int
    role: str
    duration_ns: int | None
    algorithm: str = ""

    @property
    def is_compute(self) -> bool:
        return self.duration_ns is not None

    @property
    def is_barrier(self) -> bool:
        return self.duration_ns is None and not self.algorithm

    @property
    def title(self) -> str:
        return _NAMES.get(self.role, self.role)


@dataclass(frozen=True)
class RunRecord:
    """Config, counters and traces of one finished run (columns as in the results file)."""

    key: str
    config: Mapping[str, Any]
    run: np.void
    ranks: np.ndarray
    links: np.ndarray
    traces: RunTraces

    @cached_property
    def pfc(self) -> np.ndarray:
        """PFC events, copies included."""
        return np.concatenate(list(blocks(self.traces, "pfc")))

    @cached_property
    def qlen(self) -> np.ndarray:
        """Queue samples, copies included."""
        return np.concatenate(list(blocks(self.traces, "qlen")))

    @cached_property
    def topology(self) -> Topology:
        config = self.config
        names = tuple(config["node_names"])
        # Files of earlier versions know one switch outside of servers.
        fabric = config.get("fabric_ids", [node for node, name in enumerate(names) if name == "tor"])
        return Topology(
            config["node_count"],
            tuple(config["switch_ids"]),
            tuple(Link(*row) for row in config["links"]),
            names,
            tuple(re.sub(r"[0-9.]+$", "", name) for name in names),
            tuple(config["server_of_host"]),
            tuple(fabric),
        )

    @cached_property
    def routes(self) -> Routes:
        return Routes(self.topology, descending=self.config["network"]["neighbor_order"] == 0)

    @property
    def system(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.config["system"]
        return found

    @cached_property
    def chain(self) -> tuple[Node, ...]:
        """The nodes of a rank in order; InputError for runs without one chain for all ranks, and when this
        version would build other nodes."""
        key, config = RunKey.parse(self.key), self.config
        options = {**parameters.defaults("study", "workload"), **(config.get("workload") or {})}
        whole = not options["overlap_shared_ffn"] and options["microbatches"] == 1
        if len(config["trace_sha256"]) > 1 or not whole:
            raise InputError(
                "an inspection follows one serial chain that all ranks run, and this run has stages, "
                "microbatches, an uneven expert load or an overlapped FFN",
                field=self.key,
            )
        model = load_model(key.model)
        graph = build_traces(model, key.degrees, config["tokens"], config["layers"], options).graphs[0]
        if [graph.digest()] != config["trace_sha256"]:
            raise InputError(
                "this run was made from another workload than this version builds; inspect it with the "
                "version that made it (attribute hpcmoe_version of the file)",
                field=self.key,
            )
        return tuple(self._node(graph, i) for i in range(len(graph)))

    def _node(self, graph: TraceGraph, i: int) -> Node:
        layer, role = int(graph.layer[i]), graph.names[i].partition(".")[2]
        if graph.type[i] == NodeType.COMP:
            return Node(
                i, layer, role, compute_ns(self.system, int(graph.num_ops[i]), int(graph.tensor_bytes[i]))
            )
        if graph.comm_type[i] == CollectiveType.BARRIER:
            return Node(i, layer, role, None)
        dim = int(graph.involved_dims[i]).bit_length() - 1
        entry = self.config["implementations"][_COLLECTIVE_KEYS[CollectiveType(int(graph.comm_type[i]))]][dim]
        return Node(i, layer, role, None, ALGORITHMS[entry[0]])

    @cached_property
    def layers(self) -> list[int]:
        """Layers with records, ascending."""
        return repeated.layers_held(self.traces)

    def nodes_of(self, layer: int) -> tuple[Node, ...]:
        """The chain's nodes of one layer, from the barrier on with which it may begin."""
        return tuple(node for node in self.chain if node.layer == layer and not node.is_barrier)

    def flows_of(self, layer: int) -> list[Flow]:
        """Flows of one layer, in order of completion. The last few layers asked for are kept."""
        if layer not in self._flows:
            while len(self._flows) >= _KEPT_LAYERS:
                self._flows.pop(next(iter(self._flows)))
            self._flows[layer] = self._read_flows(layer)
        return self._flows[layer]

    @cached_property
    def _flows(self) -> dict[int, list[Flow]]:
        return {}

    def _read_flows(self, layer: int) -> list[Flow]:
        rows = repeated.layer_flows(self.traces, layer)
        columns = [rows[name].astype(np.int64).tolist() for name in _FLOW_COLUMNS]
        return [
            Flow(s, d, p, b, t, t + f, a, n, la, c, st)
            for s, d, p, b, t, f, a, n, la, c, st in zip(*columns, strict=True)
        ]

    def typical_layer(self) -> int:
        """The recorded layer that stands for most others, else the middle one."""
        if not self.layers and len(self.traces.fct):
            text = "the flows of this run do not say their layer; 'hpcmoe import --labels' tells it"
            raise InputError(text, field=self.key)
        if not self.layers:
            raise InputError("this run has no flow records; run it with traces", field=self.key)
        repeats, fct = self.traces.repeats, self.traces.fct
        if len(repeats):
            most = repeats[int(np.argmax(repeats["count"]))]
            return int(fct["layer"][int(most["fct_begin"]) : int(most["fct_end"])].max())
        return self.layers[len(self.layers) // 2]


_KEPT_LAYERS = 3
_FLOW_COLUMNS = (
    "src", "dst", "sport", "bytes", "start_ns", "fct_ns", "standalone_ns", "node_id", "layer", "chunk", "step"
)  # fmt: skip


def compute_ns(system: Mapping[str, Any], ops: int, tensor_bytes: int) -> int:
    """Time of a compute node under the roofline, truncated to whole ns as the simulator does."""
    if not ops or not tensor_bytes:
        return 0
    perf = min(system["local_mem_bw_gbps"] * 1e9 * (ops / tensor_bytes), system["peak_perf_tflops"] * 1e12)
    return int(ops / perf * 1e9)


def load_record(results: Results, run: str) -> RunRecord:
    """Reads a finished run; InputError when it is not in the file, failed, or has no traces."""
    traces = results.traces(run)
    number = results.runs["key"].tolist().index(run)
    return RunRecord(
        run,
        results.config(run),
        results.runs[number],
        results.ranks(run),
        results.links(run),
        traces,
    )
