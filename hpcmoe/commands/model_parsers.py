"""Arguments of ``hpcmoe model``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Command = Callable[[argparse._SubParsersAction, str, str, str], argparse.ArgumentParser]


def add_all(commands: argparse._SubParsersAction, command: Command) -> None:
    """`command` adds one subcommand: (commands, name, 'module:function', help)."""
    about = "Models of the catalog, and your own from a Hugging Face config.json."
    model = commands.add_parser("model", help="show models, add your own", description=about)
    actions = model.add_subparsers(metavar="ACTION", required=True, parser_class=type(model))
    _add_add(actions, command)
    _add_show(actions, command)
    command(actions, "list", "model:list_models", "list the models that run keys can name")
    parser = command(actions, "remove", "model:remove", "remove a model of your own from the catalog")
    parser.add_argument("name", metavar="NAME", help="its name in run keys")


def _add_add(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(actions, "add", "model:add", "make a config.json a model that run keys can name")
    parser.add_argument("config", metavar="CONFIG.json", help="a Hugging Face config.json")
    parser.add_argument("--name", required=True, metavar="NAME", help="how run keys will name it")
    parser.add_argument("--title", metavar="TITLE", help="how reports call it (default: NAME)")
    parser.add_argument("--replace", action="store_true", help="in place of an entry of that name")


def _add_show(actions: argparse._SubParsersAction, command: Command) -> None:
    parser = command(
        actions, "show", "model:show", "show layers, computation, traffic and weights of a model"
    )
    parser.add_argument("model", metavar="NAME|CONFIG.json", help="a name of the catalog, or a file")
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens per step (default: 4096)")
    parser.add_argument("--strategy", default="tp2ep16", metavar="tp<N>ep<M>", help="default: %(default)s")
    parser.add_argument(
        "--weight-bits", type=int, default=16, metavar="N", help="bits per weight (default: %(default)s)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write it as JSON; - is standard output")
