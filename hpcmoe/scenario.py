"""Everything that one run needs, complete and checked, and the digest that identifies it.

``scenario_from_key`` makes a run of the study, ``scenario_from_upstream_files`` a run of upstream's own
input files with every quirk of upstream kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hpcmoe import catalog, chakra, parameters, scenario_checks, topology, upstream
from hpcmoe import placement as placing
from hpcmoe._version import __version__
from hpcmoe.chakra_nodes import Needs
from hpcmoe.design import Degrees, RunKey
from hpcmoe.errors import InputError, closest_first
from hpcmoe.model import Model, load_model
from hpcmoe.overrides import Overrides
from hpcmoe.parameters import Value
from hpcmoe.pipeline import build_traces
from hpcmoe.placement import IN_ORDER, Placement, PlacementLike
from hpcmoe.topology import Topology
from hpcmoe.trace import TraceGraph
from hpcmoe.units import parse_rate_bps
from hpcmoe.upstream.config import EcnThreshold, NetworkConfig
from hpcmoe.upstream.json_files import COLLECTIVES, Implementation, parse_implementation

_MAX_INJECTION_SCALE = 10**6


@dataclass(frozen=True, eq=False)
class Scenario:
    """One run's inputs.

    ``ecn`` rows are (rate_bps, kmin_bytes, kmax_bytes, pmax). ``implementations`` lists (algorithm, window,
    one_dim) per logical dimension: algorithm 0 ring, 1 direct, 2 halving-doubling, 3 double binary tree;
    window -1 unlimited. ``traces`` has one graph per rank, which ranks may share. ``cc_disabled_pairs`` is
    bool [hosts, hosts], true for pairs without congestion control, or None. ``layers`` counts MoE layers.
    ``files`` names the files that it was read from, for error messages: 'system', 'network', 'topology',
    'groups', 'logical', 'workload' (the prefix of the traces), 'memory'; empty where there are none.
    ``placement`` is what ``topology`` was renumbered by: rank r runs on its node r.
    """

    key: str
    profile: str
    topology: Topology
    network: dict[str, Value]
    ecn: list[EcnThreshold]
    system: dict[str, Value]
    implementations: dict[str, list[Implementation]]
    logical_dims: tuple[int, ...]
    groups: dict[int, list[int]]
    traces: list[TraceGraph]
    cc_disabled_pairs: np.ndarray | None = None
    tokens: int | None = None
    layers: int | None = None
    workload: Mapping[str, Value] | None = None
    warnings: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    placement: Placement = IN_ORDER

    @property
    def ranks(self) -> int:
        return math.prod(self.logical_dims)

    @cached_property
    def trace_digests(self) -> list[str]:
        """Hex sha256 of each rank's trace."""
        known = {id(graph): graph.digest() for graph in {id(g): g for g in self.traces}.values()}
        return [known[id(graph)] for graph in self.traces]

    def to_json(self) -> dict[str, Any]:
        """All that decides the result, with digests in place of the traces, and what it is called."""
        return {
            "key": self.key,
            "profile": self.profile,
            "tokens": self.tokens,
            "layers": self.layers,
            "workload": self.workload,
            "placement": self.placement.to_json(),
            "node_names": list(self.topology.node_names),
            "server_of_host": list(self.topology.server_of_host),
            "fabric_ids": list(self.topology.fabric_ids),
            **self._inputs(),
        }

    def digest(self) -> str:
        """Hex sha256 over the inputs and the version; equal inputs under two keys have equal digests."""
        content = {"hpcmoe_version": __version__, **self._inputs()}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def _inputs(self) -> dict[str, Any]:
        distinct = list(dict.fromkeys(self.trace_digests))
        return {
            "node_count": self.topology.node_count,
            "switch_ids": list(self.topology.switch_ids),
            "links": [list(link) for link in self.topology.links],
            "network": self.network,
            "ecn": [list(row) for row in self.ecn],
            "system": self.system,
            "implementations": {k: [list(entry) for entry in v] for k, v in self.implementations.items()},
            "logical_dims": list(self.logical_dims),
            "groups": {str(group): members for group, members in sorted(self.groups.items())},
            "trace_sha256": distinct,
            "trace_of_rank": [distinct.index(digest) for digest in self.trace_digests],
            "cc_disabled_sha256": _matrix_digest(self.cc_disabled_pairs),
        }


def _matrix_digest(matrix: np.ndarray | None) -> str | None:
    if matrix is None:
        return None
    return hashlib.sha256(f"{matrix.shape}".encode() + np.packbits(matrix).tobytes()).hexdigest()


def scenario_from_key(
    key: RunKey | str,
    *,
    tokens: int | None = None,
    layers: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    model: Model | None = None,
    placement: PlacementLike = IN_ORDER,
) -> Scenario:
    """A run of the study, in the ``study`` profile.

    ``layers`` counts MoE layers (the leading dense layers always stay), None is all of them. ``overrides``
    are parameters by name, as values or as text. ``model`` replaces the key's model. ``placement`` says which
    GPU each rank runs on: 'contiguous', 'round_robin', a file, or one host index or GPU name per rank.
    """
    key = RunKey.parse(key) if isinstance(key, str) else key
    changes = Overrides(overrides or {})
    delay = changes.external_delay_ns(topology.external_delay_ns(key.network))
    placement = placing.parse(placement)
    topo = placing.place(topology.build(key.topology, delay), key.degrees.ranks, placement, str(key))
    model = model or load_model(key.model)
    tokens = catalog.study()["tokens"] if tokens is None else tokens
    options = changes.apply("workload", parameters.defaults("study", "workload"))
    workload = parameters.complete(options, "workload")
    built = build_traces(model, key.degrees, tokens, layers, workload, changes.routing())
    scenario = Scenario(
        key=str(key),
        profile="study",
        topology=topo,
        network=_study_network(key.network, changes),
        ecn=changes.ecn(_study_ecn(topo), topo.switch_port_rates()),
        system=parameters.complete(changes.apply("system", parameters.defaults("study", "system")), "system"),
        implementations=_catalog_implementations(key.collective),
        logical_dims=_logical_dims(key.degrees),
        groups={},
        traces=built.graphs,
        cc_disabled_pairs=_same_server(topo),
        tokens=tokens,
        layers=layers,
        workload=workload,
        placement=placement,
        warnings=built.warnings,
    )
    return _checked(scenario)


def _logical_dims(degrees: Degrees) -> tuple[int, ...]:
    """[TP, EP], and [TP, EP, DP, PP] where there is more than one group."""
    return degrees[:2] if degrees.dp == degrees.pp == 1 else tuple(degrees)


def _study_network(network: str, changes: Overrides) -> dict[str, Value]:
    values = parameters.defaults("study", "network")
    file = str(catalog.file_of("networks", network))
    given = catalog.load("networks", network).get("parameters")
    if not isinstance(given, Mapping):
        raise InputError("not a mapping of parameters", file=file, field="parameters", value=given)
    for name, value in given.items():
        if name not in parameters.NETWORK_NAMES:
            allowed = closest_first(name, parameters.NETWORK_NAMES)[:5]
            raise InputError("no network parameter", file=file, field=name, value=value, allowed=allowed)
        values[name] = parameters.find(name).parse(str(value), file=file)
    return parameters.complete(changes.apply("network", values), "network")


def _study_ecn(topo: Topology) -> list[EcnThreshold]:
    """The study's thresholds, by rate, and in their place or beside them the topology's own."""
    rows = [
        (parse_rate_bps(row["rate"]), row["kmin_bytes"], row["kmax_bytes"], row["pmax"])
        for row in catalog.study()["ecn"]
    ]
    return [*{row[0]: row for row in (*rows, *topo.ecn)}.values()]


def _catalog_implementations(collective: str) -> dict[str, list[Implementation]]:
    entry, file = catalog.load("collectives", collective), catalog.file_of("collectives", collective)
    found = {}
    for name in COLLECTIVES:
        given = entry.get(name)
        if not isinstance(given, list) or not given:
            allowed = "an algorithm per logical dimension, such as [ring, direct]"
            raise InputError("not a list of algorithms", file=file, field=name, value=given, allowed=allowed)
        found[name] = [parse_implementation(text, file=file, field=name) for text in given]
    return found


def _same_server(topo: Topology) -> np.ndarray | None:
    """Pairs of hosts in one server; None where the topology does not say what its servers are."""
    if not topo.server_of_host:
        return None
    servers = np.array(topo.server_of_host)
    return servers[:, None] == servers[None, :]


@dataclass(frozen=True)
class UpstreamFiles:
    """Upstream's command line: the input files and the options that are no file.

    ``base``: the folder that the names in the network configuration are relative to.
    """

    workload: str
    system: str
    network: str
    memory: str
    logical_topology: str
    groups: str = "empty"
    cc_policy: str | None = None
    num_queues_per_dim: int = 1
    injection_scale: float = 1.0
    rendezvous_protocol: bool = False
    base: str = ""


def scenario_from_upstream_files(
    files: UpstreamFiles, *, profile: str = "upstream", overrides: Mapping[str, Any] | None = None
) -> Scenario:
    """A run of upstream's input files; the topology is the one that the network configuration names."""
    changes = Overrides(overrides or {}, of_key=False)
    changes.refuse("workload", "the traces are given, and they say what runs")
    dims = upstream.read_logical_dims(files.logical_topology)
    ranks = math.prod(dims)
    system, implementations, warnings = _upstream_system(files, profile, changes)
    config, network = network_from_file(files.network, profile, changes)
    topo = topology_of(config, files.network, files.base)
    needs = Needs(bool(system["roofline_enabled"]), bool(system["replay_only"]))
    _check_trace_files(files.workload, ranks, dims)
    traces = chakra.read_traces(files.workload, ranks, needs)
    graphs, groups = chakra.merge_groups(traces, upstream.read_groups(files.groups), ranks)
    if profile == "study" and not needs.replay_only:  # upstream issues what waits for them late or never
        whole = {id(graph): graph.without_empty_nodes() for graph in graphs}
        graphs = [whole[id(graph)] for graph in graphs]
    scenario = Scenario(
        key="",
        profile=profile,
        topology=topo,
        network=network,
        ecn=changes.ecn(config.ecn, topo.switch_port_rates()),
        system=system,
        implementations=implementations,
        logical_dims=dims,
        groups=groups,
        traces=graphs,
        cc_disabled_pairs=upstream.read_cc_policy(files.cc_policy, topo.hosts) if files.cc_policy else None,
        warnings=(*warnings, *config.warnings, *_trace_warnings(traces, files.workload)),
        files=_file_names(files, config),
    )
    return _checked(scenario)


def _trace_warnings(traces: Sequence[chakra.TraceFile], prefix: str) -> Iterator[str]:
    dropped = [trace.dropped for trace in traces]
    if any(dropped):
        yield (
            f"{prefix}: {sum(dropped)} control dependencies on nodes that the traces do not have are ignored "
            "(ASTRA-sim refuses such traces)"
        )


def _file_names(files: UpstreamFiles, config: NetworkConfig) -> dict[str, str]:
    names = {
        "system": files.system,
        "network": files.network,
        "topology": os.path.join(files.base, config.files["topology"]),
        "logical": files.logical_topology,
        "workload": files.workload,
        "memory": files.memory,
    }
    return names if "empty" in files.groups else {**names, "groups": files.groups}


def network_from_file(
    path: str | Path, profile: str, changes: Overrides
) -> tuple[NetworkConfig, dict[str, Value]]:
    """A config.txt and the complete network parameters that it gives in a profile.

    Keys of upstream have upstream's defaults in either profile; the profile decides the rest.
    """
    config = upstream.read_network_config(path)
    values = parameters.defaults("upstream", "network")
    values.update(
        {name: parameters.defaults(profile, "network")[name] for name in parameters.PROFILE_SWITCHES}
    )
    values.update(config.values)
    if "qlen" not in config.files:
        values["qlen_monitor_start_ns"] = parameters.MONITOR_OFF
    values = changes.apply("network", values)
    if values["cc_mode"] == parameters.CC_MODES["none"]:
        # Upstream leaves rates that are not given undefined, and without control nothing reads them.
        study = parameters.defaults("study", "network")
        values.update({name: study[name] for name in ("rate_ai_bps", "rate_hai_bps") if values[name] is None})
    return config, parameters.complete(values, "network", file=str(path))


def topology_of(config: NetworkConfig, path: str | Path, base: str = "") -> Topology:
    """The topology that a config.txt names, relative to ``base`` or else to the working directory."""
    if "topology" not in config.files:
        raise InputError("missing", file=path, field="TOPOLOGY_FILE", allowed="the path of a topology file")
    return upstream.read_topology(os.path.join(base, config.files["topology"]))


def _upstream_system(
    files: UpstreamFiles, profile: str, changes: Overrides
) -> tuple[dict[str, Value], dict[str, list[Implementation]], list[str]]:
    if not 0 <= files.injection_scale <= _MAX_INJECTION_SCALE:
        raise InputError(
            "bad value",
            field="--injection-scale",
            value=files.injection_scale,
            allowed=f"0 to {_MAX_INJECTION_SCALE}",
        )
    config = upstream.read_system(files.system)
    values = parameters.defaults("upstream", "system")
    profiled = parameters.defaults(profile, "system")
    values.update({name: profiled[name] for name in parameters.SYSTEM_PROFILE_SWITCHES})
    values.update(config.values)
    values.update(upstream.read_memory(files.memory))
    if "endpoint_delay_ns" in config.values:  # the default is not scaled
        scaled = int(config.values["endpoint_delay_ns"] * files.injection_scale)
        values["endpoint_delay_ns"] = _check_option("endpoint_delay_ns", scaled, "--injection-scale")
    values["num_queues_per_dim"] = _check_option(
        "num_queues_per_dim", files.num_queues_per_dim, "--num-queues-per-dim"
    )
    values["rendezvous_protocol"] = files.rendezvous_protocol
    complete = parameters.complete(changes.apply("system", values), "system", file=files.system)
    return complete, config.implementations, config.warnings


def _check_option(name: str, value: int, option: str) -> Value:
    return parameters.PARAMETERS[name].check(value, field=option)


def _check_trace_files(prefix: str, ranks: int, dims: Sequence[int]) -> None:
    shape = " x ".join(map(str, dims))
    missing = next((r for r in range(ranks) if not chakra.trace_path(prefix, r).is_file()), None)
    if missing is not None:
        raise InputError(
            f"no such file, but the logical topology {shape} has {ranks} ranks",
            file=chakra.trace_path(prefix, missing),
        )
    if chakra.trace_path(prefix, ranks).is_file():
        raise InputError(
            f"one trace too many: the logical topology {shape} has {ranks} ranks",
            file=chakra.trace_path(prefix, ranks),
        )


def _checked(scenario: Scenario) -> Scenario:
    warnings = scenario_checks.check(scenario)
    return replace(scenario, warnings=(*scenario.warnings, *warnings)) if warnings else scenario
