"""Reads a folder that ``hpcmoe export`` made and in which upstream's program ran."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hpcmoe import catalog, parameters, topology, upstream
from hpcmoe.design import FACTORS, is_level, parse_strategy
from hpcmoe.errors import InputError
from hpcmoe.export import FILES, TRACE_PREFIX
from hpcmoe.model import Model, load_model
from hpcmoe.scenario import Scenario, UpstreamFiles, scenario_from_upstream_files
from hpcmoe.trace import NodeType
from hpcmoe.upstream import reports
from hpcmoe.workload import BYTES_PER_ELEMENT, build_workload

STDOUT = "stdout.txt"
_LEVEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_SYNCS = tuple((parameters.find("layer_sync").choices or {}).values())
_ENDINGS = ("", ".gz")  # a large trace may have been compressed
Traces = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Imported:
    """One run of another program: its inputs, what it reported per rank, and its traces, None where they were
    left out. ``files`` has the SHA-256 of each output file that was read."""

    key: str
    scenario: Scenario
    ranks: np.ndarray
    flows: np.ndarray | None
    pauses: np.ndarray | None
    queues: np.ndarray | None
    files: Mapping[str, str] = field(default_factory=dict)
    finished_unix_s: float = 0.0


def read_folder(
    folder: str | os.PathLike[str],
    *,
    key: str | None = None,
    stdout: str | None = None,
    profile: str = "upstream",
    traces: bool = True,
) -> Imported:
    """The run in a folder with the names of ``hpcmoe export``.

    ``key`` defaults to the one in the folder's run.sh, ``stdout`` to the file of that name in the folder;
    ``profile`` says how the inputs were run, ``traces`` whether to read flows, pauses and queues. InputError
    names the file that is missing or wrong.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError("no such folder", file=place)
    key = _checked_key(key) if key else _key_of_script(place)
    scenario = _scenario(place, key, profile)
    output = Path(stdout) if stdout else place / STDOUT
    if not output.is_file():
        raise InputError(
            "no such file: it is what the program printed, './run.sh > stdout.txt'; --stdout names another",
            file=output,
        )
    ranks = upstream.read_rank_report(output, scenario.ranks)
    files = {"stdout": output}
    tables: dict[str, np.ndarray | None] = dict.fromkeys(_READERS)
    for name, path in (_trace_files(place) if traces else {}).items():
        files[name] = path
        tables[name] = _READERS[name](path, scenario.topology)
    _check_flows(tables["fct"], ranks, files)
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return Imported(
        key, scenario, ranks, tables["fct"], tables["pfc"], tables["qlen"], digests, output.stat().st_mtime
    )


_READERS = {"fct": reports.read_fct, "pfc": reports.read_pfc, "qlen": reports.read_qlen}


def _checked_key(key: str) -> str:
    parts = key.split("/")
    if len(parts) != len(FACTORS) or not all(map(_LEVEL.fullmatch, parts)):
        allowed = f"{'/'.join(FACTORS)}, each part of letters, digits, '_', '.' and '-'"
        raise InputError("not a run key", field="--key", value=key, allowed=allowed)
    return key


def _key_of_script(folder: Path) -> str:
    """The key that ``hpcmoe export`` writes on the second line of run.sh."""
    script = folder / FILES["script"]
    lines = script.read_text(encoding="utf-8", errors="replace").splitlines() if script.is_file() else []
    text = lines[1].removeprefix("# ").strip("'") if len(lines) > 1 else ""
    try:
        return _checked_key(text)
    except InputError:
        allowed = f"{'/'.join(FACTORS)}, the model etc. by any name"
        raise InputError("names no run key; --key gives one", file=script, allowed=allowed) from None


def _scenario(folder: Path, key: str, profile: str) -> Scenario:
    path = {name: str(folder / file) for name, file in FILES.items()}
    for name in ("system", "network", "memory", "logical"):
        if not Path(path[name]).is_file():
            raise InputError("no such file: import reads the folder of 'hpcmoe export'", file=path[name])
    files = UpstreamFiles(
        workload=str(folder / TRACE_PREFIX),
        system=path["system"],
        network=path["network"],
        memory=path["memory"],
        logical_topology=path["logical"],
        cc_policy=path["policy"] if Path(path["policy"]).is_file() else None,
        base=str(folder),
    )
    scenario = scenario_from_upstream_files(files, profile=profile)
    return _recognised(replace(scenario, key=key))


def _recognised(scenario: Scenario) -> Scenario:
    """With tokens, layers and node names where the key's catalog entries give just these inputs."""
    model, topology_name, strategy, _, network = scenario.key.split("/")
    if model in catalog.names("models") and is_level("strategy", strategy):
        scenario = _with_workload(scenario, load_model(model), *parse_strategy(strategy))
    if topology_name in catalog.names("topologies") and network in catalog.names("networks"):
        scenario = replace(scenario, topology=_named_topology(scenario.topology, topology_name, network))
    return scenario


def _with_workload(scenario: Scenario, model: Model, tp: int, ep: int) -> Scenario:
    graph = scenario.traces[0]
    sizes = graph.comm_bytes[graph.type == NodeType.COMM_COLL]
    layers = int(graph.layer.max(initial=-1)) + 1 - model.dense_layers
    tokens = int(sizes[0]) // (model.all_reduce_width * BYTES_PER_ELEMENT) if len(sizes) else 0
    if scenario.logical_dims != (tp, ep) or not 1 <= layers <= model.moe_layers or tokens < 1:
        return scenario
    defaults = parameters.defaults("study", "workload")
    for sync in dict.fromkeys((parameters.find("layer_sync").default, *_SYNCS)):
        options = parameters.complete({**defaults, "layer_sync": sync}, "workload")
        built = build_workload(model, tp, ep, tokens, layers, options).graph.digest()
        if set(scenario.trace_digests) == {built}:
            held = None if layers == model.moe_layers else layers
            return replace(scenario, tokens=tokens, layers=held, workload=options)
    return scenario


def _named_topology(found: topology.Topology, name: str, network: str) -> topology.Topology:
    named = topology.build(name, topology.external_delay_ns(network))
    same = (named.links, named.switch_ids) == (found.links, found.switch_ids)
    return named if same else found


def _trace_files(folder: Path) -> dict[str, Path]:
    """Output files by kind, as the network configuration names them; qlen only where it has anything, as
    the file of a monitor that is off is empty."""
    names = upstream.read_network_config(folder / FILES["network"]).files
    found = {name: path for name in _READERS if name in names and (path := _existing(folder / names[name]))}
    for name in ("fct", "pfc"):
        if name not in found:
            text = "no such file: the program writes it; --no-traces imports the ranks' times alone"
            raise InputError(text, file=folder / names[name])
    if "qlen" in found and not found["qlen"].stat().st_size:
        del found["qlen"]
    return found


def _existing(path: Path) -> Path | None:
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    return next(filter(Path.is_file, candidates), None)


def _check_flows(flows: np.ndarray | None, ranks: np.ndarray, files: Mapping[str, Path]) -> None:
    if flows is None:
        return
    end = int(ranks["finish_ns"].max())
    late = np.flatnonzero(flows["start_ns"] + flows["fct_ns"] > end)
    if late.size:
        row = flows[late[0]]
        raise InputError(
            f"a flow ends after the last rank has finished at {end} ns: fct file and output are of two runs",
            file=files["fct"],
            field=f"flow {late[0]} ({row['src']} to {row['dst']})",
            value=int(row["start_ns"] + row["fct_ns"]),
        )
