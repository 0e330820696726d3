"""``hpcmoe run``: one configuration, a short table and optionally JSON."""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator
from typing import Any

from hpcmoe.commands import common, outputs
from hpcmoe.scenario import Scenario

_COUNTERS = ("simulated_ns", "events", "packet_hops", "layers_simulated", "layers_added", "ecn_marks",
             "pfc_pauses", "drops", "quiet_moments")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from hpcmoe import runner

    outputs.check({"--json": arguments.json}, [arguments.model_config] if arguments.model_config else [])
    scenario = common.key_scenario(arguments)
    common.warn(scenario)
    progress = common.progress_printer()
    try:
        result = runner.run(
            scenario,
            progress=progress,
            fast_forward=arguments.fast_forward,
            backend=arguments.backend,
        )
    finally:
        common.end_progress(progress)
    common.write_json(arguments.json, to_json(scenario, result))
    if arguments.json != "-":
        print("\n".join(table(scenario, result, arguments.backend, arguments.fast_forward)))
        if arguments.profile:
            print("\n".join(cost(result)))
    return 0


def to_json(scenario: Scenario, result: Any) -> dict[str, Any]:
    """The result with times in ns; wall, GPU and communication time are the bottleneck rank's."""
    totals = {name: int(getattr(result, name)) for name in ("wall_ns", "gpu_ns", "comm_ns", *_COUNTERS)}
    return {
        "key": scenario.key,
        "tokens": scenario.tokens,
        "layers": scenario.layers,
        "placement": scenario.placement.to_json(),
        "digest": scenario.digest(),
        "bottleneck_rank": int(result.bottleneck_rank),
        **totals,
        "seconds": float(result.seconds),
        "ranks": common.json_rank_rows(result.ranks),
    }


def table(
    scenario: Scenario, result: Any, backend: str = "native", fast_forward: bool = True
) -> Iterator[str]:
    """A short table for people."""
    layers = "all" if scenario.layers is None else str(scenario.layers)
    kind = "MoE layers" if any(name.endswith(".exp") for name in scenario.traces[0].names) else "layers"
    yield f"{scenario.key}  ({scenario.tokens} tokens, {layers} {kind})"
    fraction = result.comm_ns / result.wall_ns if result.wall_ns else 0.0
    yield from (
        f"  {name:<24}{value}"
        for name, value in (
            ("completion time", f"{result.wall_ns / 1e6:.6f} ms  (rank {result.bottleneck_rank})"),
            ("GPU time", f"{result.gpu_ns / 1e6:.6f} ms"),
            ("communication time", f"{result.comm_ns / 1e6:.6f} ms  ({fraction:.1%})"),
            *_exposed(result),
            ("layers simulated", _layers(result, backend, fast_forward)),
            ("ECN marks", f"{result.ecn_marks}"),
            ("PFC pauses", f"{result.pfc_pauses}"),
            ("dropped packets", f"{result.drops}"),
        )
    )


def _exposed(result: Any) -> Iterator[tuple[str, str]]:
    """Where computation and communication overlap they do not add up to the completion time."""
    if result.wall_ns != result.gpu_ns + result.comm_ns:
        exposed = int(result.ranks["exposed_comm_ns"][result.bottleneck_rank])
        yield "  not overlapped", f"{exposed / 1e6:.6f} ms  ({exposed / result.wall_ns:.1%})"


def _layers(result: Any, backend: str, fast_forward: bool) -> str:
    simulated = result.layers_simulated
    if backend == "ns3":
        return f"{simulated}, all of them: ns-3 adds none"
    if not fast_forward:
        return f"{simulated}, all of them as asked for"
    if result.layers_added:
        return f"{simulated}, and {result.layers_added} proven equal and added"
    return f"{simulated}, none added ({_why_none(result)})"


def _why_none(result: Any) -> str:
    if result.layers_simulated <= 1:
        return "there is one"
    if result.quiet_moments == 0:
        return "its traces or parameters rule that out"
    if result.quiet_moments == 1:
        return "the ranks were all at rest only at the start"
    return "no state came twice"


def cost(result: Any) -> Iterator[str]:
    """What the simulation took on this machine."""
    seconds = max(result.seconds, 1e-9)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"  {'CPU time':<24}{result.seconds:.3f} s"
    for name, count in (("events", result.events), ("packet-hops", result.packet_hops)):
        # Added layers were not simulated, so a rate would mean nothing.
        rate = "" if result.layers_added else f"  ({count / seconds / 1e6:.2f} M/s)"
        yield f"  {name:<24}{count}{rate}"
    yield f"  {'peak memory':<24}{peak_mib:.0f} MiB"
