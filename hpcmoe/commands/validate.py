"""``hpcmoe validate``: what the study measured on a machine, simulated."""

from __future__ import annotations

import argparse

from hpcmoe import parameters
from hpcmoe.commands import common


def nccl_all_to_all(arguments: argparse.Namespace) -> int:
    from hpcmoe import validation

    assumptions = validation.Assumptions(
        size_bytes=arguments.bytes,
        count=arguments.count,
        algorithm=arguments.algorithm,
        topology=arguments.topology,
        network=arguments.network,
        scaleup_rate_bps=arguments.scaleup_rate,
        scaleup_delay_ns=arguments.scaleup_delay,
        attachment_rate_bps=arguments.attachment_rate,
        overrides=parameters.parse_overrides(arguments.assignments),
    )
    progress = common.progress_printer()
    try:
        outcome = validation.run_nccl_all_to_all(assumptions, progress)
    finally:
        common.end_progress(progress)
    common.warn(outcome.scenario)
    common.write_json(arguments.json, validation.to_json(outcome))
    if arguments.json != "-":
        print("\n".join(validation.lines(outcome)))
    return 0
