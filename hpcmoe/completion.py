"""Shell completion: what may stand at the end of a command line, from the argument parser itself.

The scripts for the shells are a few lines each and ask ``hpcmoe __complete WORD...`` for candidates, one a
line; the last word is the one being typed. No candidate means a file name, which the shell completes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence

from hpcmoe import catalog, design, parameters

_FACTORS = tuple(design.FACTORS)
_Parser = argparse.ArgumentParser


def main(argv: Sequence[str]) -> int:
    """Prints the candidates for the last word."""
    for candidate in complete(argv):
        print(candidate)
    return 0


def complete(words: Sequence[str]) -> list[str]:
    """Candidates for the last of ``words``, the words after the program's name. Those that end in '/' or '='
    go on. bash splits words at '='; it gets what follows the '=' alone."""
    before, current, split = _joined(words)
    found = _candidates(before, current)
    return [candidate.partition("=")[2] for candidate in found] if split else found


def _candidates(before: Sequence[str], current: str) -> list[str]:
    parser, state = _walk(_root(), before)
    option, equals, value = current.partition("=")
    if equals and option.startswith("-"):
        action = _option(parser, option)
        values = _matching(_values(action, value), value) if action else []
        return [f"{option}={value}" for value in values]
    if state.pending is not None:
        found = _matching(_values(state.pending, current), current)
        if found or state.pending.nargs not in _MANY:
            return found
    if current.startswith("-"):
        return _matching(parser._option_string_actions, current)
    action = state.positional(parser)
    return _matching(_values(action, current), current) if action else []


_MANY = ("?", "*", "+")


def _joined(words: Sequence[str]) -> tuple[list[str], str, bool]:
    """Finished words, the current one, and whether '=' had been split off it."""
    merged: list[str] = []
    split = False
    for word in words:
        split = bool(merged) and (word == "=" or (split and merged[-1].endswith("=")))
        if split:
            merged[-1] += word
        else:
            merged.append(word)
    return (merged[:-1], merged[-1], split) if merged else ([], "", False)


class _State:
    """Where in a parser's arguments a line stands."""

    def __init__(self) -> None:
        self.pending: argparse.Action | None = None
        self.taken = 0

    def positional(self, parser: _Parser) -> argparse.Action | None:
        """The positional argument that comes next; the last one again where it takes many."""
        actions = [action for action in parser._actions if not action.option_strings]
        if self.taken < len(actions):
            return actions[self.taken]
        return actions[-1] if actions and actions[-1].nargs in ("*", "+") else None


def _root() -> _Parser:
    from hpcmoe.cli import build_parser

    return build_parser()


def _walk(parser: _Parser, words: Iterable[str]) -> tuple[_Parser, _State]:
    """The parser and the state after the finished words."""
    state = _State()
    for word in words:
        if word.startswith("-") and word != "-":
            action = None if "=" in word else _option(parser, word)
            state.pending = action if action is not None and action.nargs != 0 else None
        elif state.pending is not None:
            if state.pending.nargs not in ("*", "+"):
                state.pending = None
        else:
            action = state.positional(parser)
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                parser, state = _subparser(action, word), _State()
            else:
                state.taken += 1
    return parser, state


def _subparser(action: argparse._SubParsersAction, name: str) -> _Parser:
    if name == "sweep":  # parses its own arguments
        from hpcmoe.sweep import arguments

        return arguments.parser()
    parser: _Parser = action.choices[name]
    return parser


def _option(parser: _Parser, text: str) -> argparse.Action | None:
    return parser._option_string_actions.get(text)


def _matching(candidates: Iterable[str], current: str) -> list[str]:
    return [candidate for candidate in candidates if candidate.startswith(current)]


def _values(action: argparse.Action, current: str = "") -> Iterator[str]:
    """What an argument can be; nothing where it is a file, a number or free text."""
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.metavar in _BY_METAVAR:
        yield from _BY_METAVAR[str(action.metavar)](current)
    elif action.dest in _KINDS:
        yield from catalog.names(_KINDS[action.dest])
    elif action.dest == "names":
        yield from parameters.PARAMETERS


def keys(current: str) -> Iterator[str]:
    """Run keys that begin like ``current``, up to the end of the part that is being typed."""
    done = current.split("/")[:-1]
    if len(done) >= len(_FACTORS):
        return
    factor = _FACTORS[len(done)]
    end = "/" if factor != _FACTORS[-1] else ""
    for level in design.allowed_levels(factor):
        yield "/".join([*done, level]) + end


def assignments(current: str) -> Iterator[str]:
    """``name=`` of every parameter, and the named values of the one that is given."""
    name, equals, _ = current.partition("=")
    if not equals:
        yield from (f"{name}=" for name in parameters.PARAMETERS)
        return
    parameter = parameters.PARAMETERS.get(name)
    if parameter is not None:
        named = parameter.choices or (("true", "false") if parameter.kind == "bool" else ())
        yield from (f"{name}={value}" for value in named)


_BY_METAVAR: dict[str, Callable[[str], Iterator[str]]] = {
    "KEY": keys,
    "RUN": keys,
    "RUN1": keys,
    "RUN2": keys,
    "RUN1|FILE2.h5": keys,
    "GLOB": keys,
    "NAME=VALUE": assignments,
}
_KINDS = {"topology": "topologies", "network": "networks", "model": "models", "collective": "collectives"}

SCRIPTS = {
    "bash": r"""# hpcmoe completion for bash:  source <(hpcmoe completion bash)
_hpcmoe_complete() {
    local IFS=$'\n'
    COMPREPLY=($(hpcmoe __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace
}
complete -o default -F _hpcmoe_complete hpcmoe
""",
    "zsh": r"""#compdef hpcmoe
# hpcmoe completion for zsh:  source <(hpcmoe completion zsh)  after compinit
_hpcmoe() {
    local -a found open
    found=(${(f)"$(hpcmoe __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ! ${#found} )); then
        _files
        return
    fi
    open=(${(M)found:#*[/=]})
    found=(${found:#*[/=]})
    (( ${#open} )) && compadd -Q -S '' -- $open
    (( ${#found} )) && compadd -Q -- $found
}
compdef _hpcmoe hpcmoe
""",
    "fish": r"""# hpcmoe completion for fish:  hpcmoe completion fish | source
function __hpcmoe_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (hpcmoe __complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c hpcmoe -f -a '(__hpcmoe_complete)'
""",
}
