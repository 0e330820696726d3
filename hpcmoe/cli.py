"""The command line: argument parsing only. What a subcommand does is in ``hpcmoe.commands``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from hpcmoe import manual, start_up
from hpcmoe._version import __version__
from hpcmoe.command_line import Parser, add_json, add_set
from hpcmoe.commands import model_parsers, sweep_parsers, topology_parsers, trace_parsers
from hpcmoe.errors import HpcmoeError, InputError

# Subcommands whose arguments another package parses, with the module of its main(argv).
_FORWARDED = {"sweep": "hpcmoe.sweep", "__complete": "hpcmoe.completion"}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 2 bad input, 3 a run that cannot go on."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(argv)
    except HpcmoeError as error:
        print(f"hpcmoe: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write(start_up.MESSAGE)
        return start_up.INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; closing stdout at exit would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"hpcmoe: error: {error.filename or 'system'}: {error.strerror or error}", file=sys.stderr)
        return InputError.exit_code


def _run(argv: list[str]) -> int:
    if argv and argv[0] in _FORWARDED:
        forwarded = importlib.import_module(_FORWARDED[argv[0]]).main
        start_up.raise_on_interrupt()
        return int(forwarded(argv[1:]) or 0)
    arguments = build_parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = _lazy(arguments.command)
    start_up.raise_on_interrupt()
    return command(arguments)


def _lazy(command: str) -> Callable[[argparse.Namespace], int]:
    module, _, function = command.partition(":")
    found: Callable[[argparse.Namespace], int] = getattr(
        importlib.import_module(f"hpcmoe.commands.{module}"), function
    )
    return found


def build_parser() -> argparse.ArgumentParser:
    """The parser of all subcommands; ``command`` in the result is 'module:function'."""
    parser = Parser(prog="hpcmoe", description="Packet-level simulation of mixture-of-experts traffic.")
    parser.add_argument("--version", action="version", version=f"hpcmoe {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for add in (_add_run, _add_list, _add_trace, _add_export, _add_simulate, _add_flows, _add_report,
                _add_inspect, _add_compare, _add_crosscheck,
                _add_parameters):  # fmt: skip
        add(commands)
    trace_parsers.add_all(commands, _command)
    sweep_parsers.add_all(commands, _command)
    topology_parsers.add_topology(commands, _command)
    model_parsers.add_all(commands, _command)
    _add_completion(commands)
    commands.add_parser("sweep", help="run many configurations, on many ranks", add_help=False)
    manual.apply(parser)
    return parser


_Commands = argparse._SubParsersAction


def _command(commands: _Commands, name: str, command: str, help: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=command)
    return parser


def _add_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="model/topology/strategy/collective/network")
    sweep_parsers.add_study_option(parser)
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens per step (default: 4096)")
    parser.add_argument(
        "--layers",
        type=int,
        metavar="N",
        help="MoE layers to run, after the leading dense ones (default: all)",
    )
    parser.add_argument(
        "--placement",
        metavar="NAME|FILE",
        default="contiguous",
        help="GPU of each rank: contiguous (default), round_robin over the servers, or a file with a host "
        "index or GPU name per rank",
    )
    parser.add_argument(
        "--model-config", metavar="FILE", help="a Hugging Face config.json in place of the key's model"
    )


def _add_run(commands: _Commands) -> None:
    parser = _command(commands, "run", "run:run", "simulate one configuration of the study")
    _add_key(parser)
    add_set(parser)
    add_json(parser)
    parser.add_argument(
        "--no-fast-forward",
        action="store_false",
        dest="fast_forward",
        help="simulate every layer; the default adds layers that are proven equal, with the same result",
    )
    parser.add_argument("--profile", action="store_true", help="also print what the simulation cost")
    _add_backend(parser)


def _add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        choices=("native", "ns3"),
        default="native",
        help="who simulates the network: this program's engine (default) or ns-3, where it is built in",
    )


def _add_list(commands: _Commands) -> None:
    parser = _command(commands, "list", "catalog:list_keys", "list the run keys that match shell globs")
    parser.add_argument("patterns", metavar="GLOB", nargs="*", help="such as '*/t6/*' (default: all 768)")
    sweep_parsers.add_study_option(parser)
    for kind in ("models", "topologies", "networks", "collectives"):
        parser.add_argument(
            f"--{kind}",
            dest="kinds",
            action="append_const",
            const=kind,
            default=[],
            help=f"describe the {kind} instead",
        )


def _add_trace(commands: _Commands) -> None:
    parser = _command(
        commands, "trace", "export:trace", "write a configuration's Chakra traces, et.<rank>.et"
    )
    _add_key(parser)
    parser.add_argument("directory", metavar="DIR", help="folder to write into, made if it is not there")


def _add_export(commands: _Commands) -> None:
    parser = _command(commands, "export", "export:export", "write a configuration as upstream's input files")
    _add_key(parser)
    parser.add_argument("directory", metavar="DIR", help="folder to write into, made if it is not there")
    add_set(parser)


def _add_simulate(commands: _Commands) -> None:
    parser = _command(commands, "simulate", "simulate:simulate", "simulate upstream's input files")
    for name, what in (
        ("workload", "prefix of the traces <prefix>.<rank>.et"),
        ("system", "system.json"),
        ("network", "config.txt"),
        ("remote-memory", "remote memory JSON"),
        ("logical-topology", "logical topology JSON"),
    ):
        parser.add_argument(f"--{name}-configuration", required=True, metavar="PATH", help=what)
    parser.add_argument(
        "--comm-group-configuration", default="empty", metavar="PATH", help="communicator groups JSON"
    )
    parser.add_argument(
        "--logging-configuration", default="empty", metavar="PATH", help="accepted and not used"
    )
    parser.add_argument(
        "--num-queues-per-dim", type=int, default=1, metavar="N", help="queues of a dimension (default: 1)"
    )
    parser.add_argument("--comm-scale", type=float, default=1.0, metavar="X", help="accepted and not used")
    parser.add_argument(
        "--injection-scale", type=float, default=1.0, metavar="X", help="factor of the endpoint delay"
    )
    parser.add_argument(
        "--rendezvous-protocol",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false", "1", "0"),
        help="messages wait for a request of their receiver (default: false)",
    )
    _add_profile(parser)
    add_set(parser)
    add_json(parser)


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        choices=("upstream", "study"),
        default="upstream",
        help="upstream: every quirk kept (default); study: as 'hpcmoe run' does it",
    )
    _add_backend(parser)


def _add_crosscheck(commands: _Commands) -> None:
    parser = _command(
        commands,
        "crosscheck",
        "crosscheck:crosscheck",
        "run both network backends and compare every flow and rank",
    )
    parser.add_argument(
        "--select",
        metavar="GLOB",
        nargs="+",
        action="extend",
        help="run keys (default: 24 that combine every model with every topology)",
    )
    parser.add_argument("--tokens", type=int, default=512, metavar="N", help="tokens per step (default: 512)")
    parser.add_argument("--layers", type=int, default=1, metavar="N", help="MoE layers (default: 1)")
    add_set(parser)


def _add_flows(commands: _Commands) -> None:
    parser = _command(commands, "flows", "flows:flows", "simulate a list of flows on a network alone")
    parser.add_argument("--network-configuration", required=True, metavar="PATH", help="config.txt")
    parser.add_argument(
        "--flows", required=True, metavar="FILE", help="lines 't_ns src dst bytes' sorted by time"
    )
    parser.add_argument("--fct", required=True, metavar="OUT", help="flow completion times")
    parser.add_argument("--until-ns", type=int, metavar="T", help="stop at this time, finished or not")
    _add_profile(parser)
    add_set(parser)


def _add_report(commands: _Commands) -> None:
    parser = _command(commands, "report", "report:report", "write tables and claims of a results file")
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write into")
    parser.add_argument(
        "--runs",
        metavar="GLOB",
        action="append",
        default=[],
        help="also write a page for every finished run that matches, from its traces; may be repeated",
    )
    parser.add_argument(
        "--no-figures",
        dest="figures",
        action="store_false",
        help="leave the figures out; they need matplotlib",
    )


def _add_inspect(commands: _Commands) -> None:
    parser = _command(commands, "inspect", "inspect:inspect", "look inside one run of a results file")
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser.add_argument("run", metavar="RUN", help="key of a finished run that has traces")
    _add_layer(parser)
    parser.add_argument("--html", metavar="PAGE", help="also write the page on the run")
    parser.add_argument(
        "--trace", metavar="JSON", help="also write the layer in Chrome's trace format, for Perfetto"
    )


def _add_compare(commands: _Commands) -> None:
    parser = _command(
        commands, "compare", "compare:compare", "say how two runs differ, or the same runs in two files"
    )
    parser.add_argument("results", metavar="FILE.h5", help="results file")
    parser.add_argument(
        "first", metavar="RUN1|FILE2.h5", help="key of a finished run with traces, or a second file"
    )
    parser.add_argument("second", metavar="RUN2", nargs="?", help="key of another run of FILE.h5")
    _add_layer(parser)
    parser.add_argument(
        "--select",
        metavar="GLOB",
        nargs="+",
        action="extend",
        help="of two files: runs to compare (default: all)",
    )
    parser.add_argument(
        "--show", type=int, metavar="N", help="of two files: ranks and flows shown per value (default: 1)"
    )
    parser.add_argument("--json", metavar="FILE", help="of two files: also as JSON; - is standard output")


def _add_layer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layer", type=int, metavar="N", help="layer to look at (default: the one that stands for most)"
    )


def _add_completion(commands: _Commands) -> None:
    parser = _command(commands, "completion", "completion:completion", "print a shell's completion script")
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to print it for")


def _add_parameters(commands: _Commands) -> None:
    parser = _command(commands, "parameters", "catalog:list_parameters", "list every parameter")
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these")
