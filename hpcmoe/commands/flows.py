"""``hpcmoe flows``: the network alone under a list of flows."""

from __future__ import annotations

import argparse

import numpy as np

from hpcmoe import blame, parameters, upstream
from hpcmoe.commands import common, outputs
from hpcmoe.errors import HpcmoeError, InputError, SimulationError
from hpcmoe.overrides import Overrides
from hpcmoe.scenario import network_from_file, topology_of
from hpcmoe.scenario_checks import check_network
from hpcmoe.topology import Topology
from hpcmoe.upstream.text_files import LATEST_NS

_LEFT_OUT: tuple[parameters.Section, ...] = ("system", "workload")
_NAMED = 8  # stuck flows that the message spells out


def flows(arguments: argparse.Namespace) -> int:
    from hpcmoe import runner

    changes = Overrides(parameters.parse_overrides(arguments.assignments), of_key=False)
    for section in _LEFT_OUT:
        changes.refuse(section, "flows has the network alone")
    path = arguments.network_configuration
    config, network = network_from_file(path, arguments.profile, changes)
    topology = topology_of(config, path)
    ecn = changes.ecn(config.ecn, topology.switch_port_rates())
    check_network(topology, network, {row[0] for row in ecn}, path)
    wanted = upstream.read_flows(arguments.flows, topology)
    check_paths(topology, wanted, arguments.flows)
    _check_until(arguments.until_ns)
    names = {"network": path, "topology": config.files["topology"]}
    outputs.check({"--fct": arguments.fct}, [*names.values(), arguments.flows])
    # With a limit that no run gets to, the flows that did finish are kept.
    until_ns = LATEST_NS if arguments.until_ns is None else arguments.until_ns
    try:
        result = runner.run_flows(topology, network, ecn, wanted, until_ns, backend=arguments.backend)
    except HpcmoeError as error:
        raise blame.located(error, names) from error
    common.write_text(arguments.fct, "".join(f"{line}\n" for line in upstream.fct_lines(result.flows)))
    if len(result.unfinished) and arguments.until_ns is None:
        text = stuck_text(wanted, np.asarray(result.unfinished))
        raise SimulationError(f"{text}{_lost_text(result.drops)}. {arguments.fct} has the others")
    return 0


def _lost_text(drops: int) -> str:
    if not drops:
        return ""
    return (
        f" ({drops} packets were lost; there is no retransmission timer, so a lost last packet is never "
        "repaired)"
    )


def _check_until(until_ns: int | None) -> None:
    if until_ns is not None and not 0 <= until_ns <= LATEST_NS:
        allowed = f"integers from 0 to {LATEST_NS}"
        raise InputError("bad time", field="--until-ns", value=until_ns, allowed=allowed)


def check_paths(topology: Topology, wanted: np.ndarray, file: str) -> None:
    """InputError for a flow whose hosts no path joins."""
    for src in np.unique(wanted[:, 1]).tolist():
        reachable = topology.reachable_from(src)
        for index in np.flatnonzero(wanted[:, 1] == src).tolist():
            if int(wanted[index, 2]) not in reachable:
                raise InputError(
                    "no path joins the hosts (hosts do not forward)",
                    file=file,
                    field=f"flow {index}",
                    value=f"{src} {wanted[index, 2]}",
                )


def stuck_text(wanted: np.ndarray, unfinished: np.ndarray) -> str:
    """Names the flows that never finish."""
    named = [
        f"flow {i} ({wanted[i, 1]} -> {wanted[i, 2]}, {wanted[i, 3]} bytes)"
        for i in unfinished[:_NAMED].tolist()
    ]
    rest = f" and {len(unfinished) - _NAMED} more" if len(unfinished) > _NAMED else ""
    return f"{len(unfinished)} of {len(wanted)} flows never finish: {', '.join(named)}{rest}"
