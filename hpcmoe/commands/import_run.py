"""``hpcmoe import``: a run of another program into a results file."""

from __future__ import annotations

import argparse

from hpcmoe.commands import common, outputs


def import_run(arguments: argparse.Namespace) -> int:
    from hpcmoe.importing import add_run, labelled, read_folder

    outputs.check({"-o": arguments.output})
    run = read_folder(
        arguments.directory,
        key=arguments.key,
        stdout=arguments.stdout,
        profile=arguments.profile,
        traces=arguments.traces,
    )
    run = labelled(run, arguments.labels) if arguments.labels else run
    common.warn(run.scenario)
    count = add_run(arguments.output, run, arguments.name)
    flows = "no flows" if run.flows is None else f"{len(run.flows)} flows"
    what = f"{run.key} of {arguments.name}, {len(run.ranks)} ranks, {flows}"
    print(f"{arguments.output}: {what}; {count} run(s) now")
    return 0
