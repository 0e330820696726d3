"""Arguments of the subcommands about traces and other programs' runs, and of the microbenchmark."""

from __future__ import annotations

import argparse
import re

from hpcmoe.command_line import add_json, add_set, number, positive
from hpcmoe.commands.sweep_parsers import Command
from hpcmoe.units import parse_rate_bps, parse_time_ns


def add_all(commands: argparse._SubParsersAction, command: Command) -> None:
    """`command` adds one subcommand: (commands, name, 'module:function', help)."""
    et = commands.add_parser("et", help="look at Chakra traces, and check them", description="Chakra traces.")
    actions = et.add_subparsers(metavar="ACTION", required=True, parser_class=type(et))
    _add_info(actions, command)
    _add_print(actions, command)
    _add_validate(actions, command)
    _add_import(commands, command)
    _add_validation(commands, command)


_rate = number(parse_rate_bps, "a rate such as 3200Gbps", lambda rate: rate >= 1)
_time = number(parse_time_ns, "a time such as 0.1us")


def _add_info(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "info", "et:info", "count what is in the traces")
    parser.add_argument(
        "traces", metavar="PREFIX|FILE", nargs="+", help="prefix of the traces <prefix>.<rank>.et, or files"
    )
    add_json(parser)


def _add_print(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "print", "et:print_nodes", "show the nodes of a trace")
    parser.add_argument("trace", metavar="FILE", help="one trace")
    parser.add_argument("--node", type=_natural, metavar="ID", help="this node alone, in full")
    parser.add_argument(
        "--limit", type=_natural, metavar="N", default=50, help="nodes shown at most (default: %(default)s)"
    )
    add_json(parser)


def _add_validate(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "validate", "et:validate", "list everything that is wrong with the traces")
    parser.add_argument("prefix", metavar="PREFIX", help="prefix of the traces <prefix>.<rank>.et")
    parser.add_argument(
        "--ranks", type=positive, metavar="N", help="ranks of the run (default: as many as traces)"
    )
    parser.add_argument(
        "--system-configuration",
        metavar="PATH",
        help="system.json, which decides what compute nodes need (default: the roofline is on)",
    )
    parser.add_argument(
        "--logical-topology-configuration",
        metavar="PATH",
        help="logical topology JSON, to compare collectives over some of its dimensions",
    )
    parser.add_argument(
        "--comm-group-configuration", default="empty", metavar="PATH", help="communicator groups JSON"
    )
    add_json(parser)


def _add_import(commands: argparse._SubParsersAction, command: Command) -> None:
    parser = command(
        commands, "import", "import_run:import_run", "take a run of ASTRA-sim into a results file"
    )
    parser.add_argument("directory", metavar="DIR", help="folder of 'hpcmoe export' in which the program ran")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE.h5", help="results file, new or with earlier imports"
    )
    parser.add_argument("--key", metavar="KEY", help="run key (default: the one in the folder's run.sh)")
    parser.add_argument(
        "--name", default="ASTRA-sim", help="program that made the numbers (default: %(default)s)"
    )
    parser.add_argument("--stdout", metavar="FILE", help="what the program printed (default: DIR/stdout.txt)")
    parser.add_argument(
        "--labels",
        metavar="FILE.h5",
        help="results file with this program's run of the same inputs, for the layer and step of each flow",
    )
    parser.add_argument(
        "--profile",
        choices=("upstream", "study"),
        default="upstream",
        help="profile of the run, where the program was 'hpcmoe simulate' (default: %(default)s)",
    )
    parser.add_argument(
        "--no-traces", action="store_false", dest="traces", help="leave flows, pauses and queues out"
    )


def _add_validation(commands: argparse._SubParsersAction, command: Command) -> None:
    checks = commands.add_parser(
        "validate",
        help="repeat what the study measured on a machine",
        description="Simulate what the study measured on a machine, beside its published figures.",
    )
    actions = checks.add_subparsers(metavar="BENCHMARK", required=True, parser_class=type(checks))
    parser = command(
        actions, "nccl-alltoall", "validate:nccl_all_to_all", "all-to-all on 32 accelerators, Table 3-9"
    )
    add = parser.add_argument
    add(
        "--bytes",
        type=_size,
        default=2 * 10**9,
        metavar="SIZE",
        help="message size, such as 256MB or 2GiB (default: 2GB)",
    )
    add(
        "--count",
        choices=("per-rank", "in-and-out", "total"),
        default="per-rank",
        help="what the size counts: what a rank sends (default), that twice, or what all ranks send",
    )
    add("--algorithm", choices=("direct", "ring"), default="direct", help="default: %(default)s")
    add("--topology", default="validation32", metavar="NAME", help="of the catalog (default: %(default)s)")
    add("--network", default="roce_dcqcn", metavar="NAME", help="network mode (default: %(default)s)")
    add(
        "--scaleup-rate",
        type=_rate,
        metavar="RATE",
        help="of an accelerator's scale-up link (default: the topology's)",
    )
    add("--scaleup-delay", type=_time, metavar="TIME", help="of that link (default: the topology's)")
    add(
        "--attachment-rate",
        type=_rate,
        metavar="RATE",
        help="between accelerator and NIC (default: the topology's)",
    )
    add_set(parser)
    add_json(parser)


_SIZE = re.compile(r"([0-9]{1,15}) ?(k|M|G|Ki|Mi|Gi)?B?")
_MOST_BYTES = 64 * 10**9
_FACTORS = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    size = int(match.group(1)) * _FACTORS[match.group(2)] if match else 0
    if not 1 <= size <= _MOST_BYTES:
        raise argparse.ArgumentTypeError(f"expected a size such as 256MB or 2GiB, up to 64GB, got {text!r}")
    return size


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)
