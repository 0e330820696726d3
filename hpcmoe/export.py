"""A scenario as upstream's input files."""

from __future__ import annotations

import shlex
from pathlib import Path

from hpcmoe import chakra, upstream
from hpcmoe.scenario import Scenario

TRACE_PREFIX = "et"
FILES = {
    "system": "system.json",
    "logical": "logical.json",
    "memory": "memory.json",
    "topology": "topology.txt",
    "network": "config.txt",
    "policy": "cc_policy.txt",
    "script": "run.sh",
}
# Upstream reads a count from both even where it uses neither.
_COUNTS = {"flow": "flow.txt", "trace": "trace.txt"}
_NAMED = {**_COUNTS, "topology": FILES["topology"], "fct": "fct.txt", "pfc": "pfc.txt", "qlen": "qlen.txt"}

_SCRIPT = """\
#!/bin/sh
# {title}
# Runs these files with ASTRA-sim's ns-3 binary, or with hpcmoe where ASTRA_SIM is not set:
#   ASTRA_SIM=/path/to/AstraSimNetwork ./run.sh
# The policy file switches congestion control off inside servers. A binary that does not know the
# variable runs those flows with it.
set -e
cd "$(dirname "$0")"
export ASTRA_NS3_CC_POLICY="$PWD/{policy}"
exec ${{ASTRA_SIM:-hpcmoe simulate}} \\
  --workload-configuration="$PWD/{prefix}" \\
  --system-configuration="$PWD/{system}" \\
  --network-configuration="$PWD/{network}" \\
  --remote-memory-configuration="$PWD/{memory}" \\
  --logical-topology-configuration="$PWD/{logical}" \\
  --comm-group-configuration=empty "$@"
"""


def write_traces(scenario: Scenario, directory: Path) -> None:
    """One ``et.<rank>.et`` per rank; ranks that share a trace get equal files."""
    encoded = {
        id(graph): chakra.encode_trace(graph, len(scenario.logical_dims))
        for graph in {id(g): g for g in scenario.traces}.values()
    }
    for rank, graph in enumerate(scenario.traces):
        chakra.trace_path(directory / TRACE_PREFIX, rank).write_bytes(encoded[id(graph)])


def export_scenario(scenario: Scenario, directory: Path) -> list[str]:
    """Writes every file into an existing directory and returns their names, traces left out.

    Upstream's files have no place for what the study profile changes: to get the study's own result back
    run them with ``hpcmoe simulate --profile study``.
    """
    write_traces(scenario, directory)
    upstream.write_system(directory / FILES["system"], scenario.system, scenario.implementations)
    upstream.write_logical_dims(directory / FILES["logical"], scenario.logical_dims)
    upstream.write_memory(directory / FILES["memory"], scenario.system)
    upstream.write_topology(scenario.topology, directory / FILES["topology"])
    upstream.write_network_config(directory / FILES["network"], scenario.network, scenario.ecn, _NAMED)
    for name in _COUNTS.values():
        (directory / name).write_text("0\n", encoding="utf-8")
    names = [FILES[name] for name in ("system", "logical", "memory", "topology", "network")]
    names += _COUNTS.values()
    if scenario.cc_disabled_pairs is not None:
        upstream.write_cc_policy(scenario.cc_disabled_pairs, directory / FILES["policy"])
        names.append(FILES["policy"])
    return [*names, _write_script(scenario, directory)]


def _write_script(scenario: Scenario, directory: Path) -> str:
    script = directory / FILES["script"]
    text = _SCRIPT.format(title=shlex.quote(scenario.key), prefix=TRACE_PREFIX, **FILES)
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    return FILES["script"]
