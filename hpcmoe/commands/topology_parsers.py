"""Arguments of ``hpcmoe topology``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Command = Callable[[argparse._SubParsersAction, str, str, str], argparse.ArgumentParser]


def add_topology(commands: argparse._SubParsersAction, command: Command) -> None:
    """`command` adds one subcommand: (commands, name, 'module:function', help)."""
    parser = commands.add_parser(
        "topology", help="clusters of your own", description="Clusters: those of the catalog and your own."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=type(parser))
    one = command(actions, "add", "topology:add", "check a file and keep it in the catalog under a name")
    _add_file(one)
    one.add_argument("--name", required=True, help="its name in run keys")
    one.add_argument("--replace", action="store_true", help="in place of an entry of that name")
    command(actions, "list", "topology:list_all", "list the topologies that run keys can name")
    one = command(actions, "show", "topology:show", "describe a topology, and draw it")
    _add_asked(one)
    one.add_argument("--svg", metavar="FILE", help="also draw it")
    one = command(actions, "check", "topology:check", "check a file")
    _add_file(one)
    one = command(actions, "compile", "topology:compile_file", "write a topology as upstream's text file")
    _add_asked(one)
    one.add_argument("-o", "--output", required=True, metavar="topology.txt", help="the file to write")
    one = command(actions, "remove", "topology:remove", "remove a topology of your own from the catalog")
    one.add_argument("name", metavar="NAME", help="its name in run keys")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a description (.yaml), else a physical topology in upstream's text"
    )
    _add_servers(parser)


def _add_asked(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", metavar="NAME|FILE", help="a name of the catalog, or a file")
    _add_servers(parser)
    parser.add_argument(
        "--network",
        metavar="NAME",
        default="roce_hpcc",
        help="network mode that gives links without a delay of their own theirs (default: %(default)s)",
    )


def _add_servers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpus-per-server",
        type=int,
        metavar="N",
        help="servers of a physical topology, N hosts each in order (default: unknown)",
    )
