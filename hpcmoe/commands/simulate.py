"""``hpcmoe simulate``: upstream's command line on upstream's files, with upstream's output."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

from hpcmoe import blame, chakra, parameters, upstream
from hpcmoe.commands import common, outputs
from hpcmoe.errors import HpcmoeError, SimulationError
from hpcmoe.scenario import Scenario, UpstreamFiles, scenario_from_upstream_files

POLICY_VARIABLE = "ASTRA_NS3_CC_POLICY"


def simulate(arguments: argparse.Namespace) -> int:
    from hpcmoe import runner

    files = upstream_files(arguments)
    overrides = parameters.parse_overrides(arguments.assignments)
    scenario = scenario_from_upstream_files(files, profile=arguments.profile, overrides=overrides)
    common.warn(scenario)
    names = upstream.read_network_config(files.network).files
    _check_outputs(scenario, files, names, arguments.json)
    progress = common.progress_printer()
    try:
        result = runner.run(scenario, progress=progress, backend=arguments.backend)
    except HpcmoeError as error:
        raise _explained(error, scenario) from error
    finally:
        common.end_progress(progress)
    write_outputs(scenario, result, names)
    common.write_json(arguments.json, to_json(result))
    if arguments.json != "-":
        print("\n".join(rank_report(scenario, result)))
    return 0


_OUTPUT_KEYS = {"fct": "FCT_OUTPUT_FILE", "pfc": "PFC_OUTPUT_FILE", "qlen": "QLEN_MON_FILE"}


def _check_outputs(
    scenario: Scenario, files: UpstreamFiles, names: dict[str, str], json_path: str | None
) -> None:
    inputs = [path for role, path in scenario.files.items() if role != "workload"]
    inputs += [files.cc_policy] if files.cc_policy else []
    traces = [chakra.trace_path(files.workload, rank) for rank in range(scenario.ranks)]
    written = {key: names.get(role) for role, key in _OUTPUT_KEYS.items()}
    outputs.check({**written, "--json": json_path}, [*inputs, *traces])


EMPTY_NODES = (
    "ASTRA-sim goes no further here either: METADATA and INVALID nodes do not start what waits for them. "
    "--profile study takes them out"
)


def _explained(error: HpcmoeError, scenario: Scenario) -> HpcmoeError:
    located = blame.located(error, scenario.files)
    if isinstance(located, SimulationError):
        hint = f". {EMPTY_NODES}" if "take no time" in str(located) and scenario.profile == "upstream" else ""
        return SimulationError(f"{located}. No output file was written{hint}")
    return located


def upstream_files(arguments: argparse.Namespace) -> UpstreamFiles:
    return UpstreamFiles(
        workload=arguments.workload_configuration,
        system=arguments.system_configuration,
        network=arguments.network_configuration,
        memory=arguments.remote_memory_configuration,
        logical_topology=arguments.logical_topology_configuration,
        groups=arguments.comm_group_configuration,
        cc_policy=os.environ.get(POLICY_VARIABLE) or None,
        num_queues_per_dim=arguments.num_queues_per_dim,
        injection_scale=arguments.injection_scale,
        rendezvous_protocol=arguments.rendezvous_protocol in ("true", "1"),
    )


def write_outputs(scenario: Scenario, result: Any, names: dict[str, str]) -> None:
    """fct and pfc files, and qlen where the configuration names one and the monitor is on."""
    _write(names["fct"], upstream.fct_lines(result.flows))
    _write(names["pfc"], upstream.pfc_lines(result.pauses))
    if "qlen" in names:
        _write(names["qlen"], result.qlen_lines or ())


def _write(path: str, lines: Iterable[str]) -> None:
    common.write_text(path, "".join(f"{line}\n" for line in lines))


def rank_report(scenario: Scenario, result: Any) -> Iterable[str]:
    roofline = bool(scenario.system["roofline_enabled"]) and not scenario.system["replay_only"]
    return upstream.rank_lines(result.ranks, roofline)


def to_json(result: Any) -> dict[str, Any]:
    """Times in ns; ``seconds`` is CPU time of the simulation."""
    return {
        "simulated_ns": int(result.simulated_ns),
        "events": int(result.events),
        "packet_hops": int(result.packet_hops),
        "seconds": float(result.seconds),
        "ranks": common.json_rank_rows(result.ranks),
    }
