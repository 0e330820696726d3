"""``hpcmoe et``: info, print and validate of Chakra traces."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpcmoe import chakra, upstream
from hpcmoe.chakra_nodes import Needs
from hpcmoe.commands import common
from hpcmoe.errors import InputError
from hpcmoe.et import between, files, problems, show
from hpcmoe.et import info as totals

FAULTY_EXIT_CODE = InputError.exit_code


def info(arguments: argparse.Namespace) -> int:
    found = files.find(arguments.traces)
    summary = totals.summarise(files.read(path, rank) for rank, path in found.items())
    common.write_json(arguments.json, summary)
    if arguments.json != "-":
        print("\n".join(totals.lines(summary)))
    return 0


def print_nodes(arguments: argparse.Namespace) -> int:
    path = Path(arguments.trace)
    trace = files.read(path, next(iter(files.find([str(path)]))))
    chosen = show.choose(trace, arguments.node, arguments.limit)
    common.write_json(arguments.json, {"file": str(path), "nodes": [show.to_json(node) for node in chosen]})
    if arguments.json == "-":
        return 0
    if arguments.node is not None:
        print("\n".join(text for node in chosen for text in show.details(trace, node)))
        return 0
    print(f"{path}: {len(trace.nodes)} nodes, schema version {trace.metadata.version or 'none'}")
    print("\n".join(map(show.line, chosen)))
    if len(chosen) < len(trace.nodes):
        print(f"... and {len(trace.nodes) - len(chosen)} more; --limit shows more")
    return 0


def validate(arguments: argparse.Namespace) -> int:
    """0 when nothing is wrong, 2 when something is."""
    paths = files.of_prefix(arguments.prefix)
    world = _world(arguments, paths)
    faults, checked = _read_all(arguments.prefix, paths, world, _needs(arguments))
    unknown = between.check(checked, world)
    faults += [fault for found in checked.values() for fault in found.faults]
    common.write_json(arguments.json, _content(arguments.prefix, len(paths), unknown, faults))
    if arguments.json != "-":
        for found in checked.values():
            print(*(f"remark: {remark}\n" for remark in found.remarks), sep="", end="")
        for fault in faults:
            print(fault)
        print(_verdict(arguments.prefix, len(checked), faults))
        if unknown:
            print(
                f"{unknown} collective(s) over some logical dimensions were not compared between ranks: "
                "--logical-topology-configuration names the dimensions"
            )
    return FAULTY_EXIT_CODE if faults else 0


def _world(arguments: argparse.Namespace, paths: dict[int, Path]) -> between.World:
    logical = arguments.logical_topology_configuration
    dims = tuple(upstream.read_logical_dims(logical)) if logical else ()
    ranks = arguments.ranks or math.prod(dims) if dims or arguments.ranks else max(paths) + 1
    if dims and ranks != math.prod(dims):
        raise InputError(
            "not the number of ranks of the logical topology",
            field="--ranks",
            value=ranks,
            allowed=str(math.prod(dims)),
        )
    return between.World(ranks, dims, upstream.read_groups(arguments.comm_group_configuration))


def _needs(arguments: argparse.Namespace) -> Needs:
    """What the system configuration makes the simulator read; without one, the roofline."""
    if arguments.system_configuration is None:
        return Needs()
    values = upstream.read_system(arguments.system_configuration).values
    return Needs(bool(values.get("roofline_enabled", False)), bool(values.get("replay_only", False)))


def _read_all(
    prefix: str, paths: dict[int, Path], world: between.World, needs: Needs
) -> tuple[list[InputError], dict[int, problems.Checked]]:
    """Faults of files as a whole, and the checked traces of the ranks that have one."""
    faults, checked = [], {}
    for rank in range(max(world.ranks, max(paths) + 1)):
        path = chakra.trace_path(prefix, rank)
        if rank >= world.ranks and rank in paths:
            text = f"one trace too many: the run has {world.ranks} ranks"
            faults.append(
                InputError(text, file=path, field="rank", value=rank, allowed=f"0 to {world.ranks - 1}")
            )
        elif rank < world.ranks and rank not in paths:
            text = f"no such file, but the run has {world.ranks} ranks"
            faults.append(
                InputError(text, file=path, field="rank", value=rank, allowed="a trace of each rank")
            )
        elif rank < world.ranks:
            try:
                checked[rank] = problems.check(files.read(path, rank), needs)
            except InputError as error:
                faults.append(error)
    return faults, checked


def _verdict(prefix: str, traces: int, faults: list[InputError]) -> str:
    found = f"{len(faults)} problem{'s' * (len(faults) != 1)}" if faults else "no problem"
    return f"{prefix}: {found} in {traces} readable trace{'s' * (traces != 1)}"


def _content(prefix: str, traces: int, unknown: int, faults: Iterable[InputError]) -> dict[str, Any]:
    rows = [
        {"file": f.file, "field": f.field, "value": f.value, "problem": f.message, "allowed": f.allowed}
        for f in faults
    ]
    return {"prefix": prefix, "traces": traces, "not_compared": unknown, "problems": rows}
