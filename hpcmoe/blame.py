"""Which input file an error is about. ``files`` is ``Scenario.files``: names by role."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpcmoe.errors import HpcmoeError, InputError, SimulationError
from hpcmoe.parameters import PARAMETERS, SYSTEM_NAMES

_RANK = re.compile(r"rank (\d+)[:,] node \d+")
_PARAMETER = re.compile(r"^(\w+) = ")
# What the simulator's messages begin with or speak of, and the role of the file that says it.
_SUBJECTS = (("communicator group", "groups"), ("logical_dims", "logical"), ("topology", "topology"),
             ("link", "topology"))  # fmt: skip


def trace_file(files: Mapping[str, str], rank: int) -> str | None:
    """The trace of a rank; None where there are no files."""
    return f"{files['workload']}.{rank}.et" if "workload" in files else None


def group_file(files: Mapping[str, str]) -> str | None:
    """Groups come from their file, or from the traces."""
    return files.get("groups", files.get("workload"))


def located(error: HpcmoeError, files: Mapping[str, str]) -> HpcmoeError:
    """An error of the simulator with the file that it is about, as far as its words tell."""
    text = str(error)
    if isinstance(error, InputError):
        file = None if error.file else _file(text, files)
        return InputError(_upstream_names(text), file=file) if file else error
    if isinstance(error, SimulationError) and _is_of_the_traces(text) and "workload" in files:
        return SimulationError(f"{files['workload']}: {text}")
    return error


def _is_of_the_traces(text: str) -> bool:
    """A stall with flows in the network can come from lost packets instead."""
    return bool(_RANK.search(text)) and "Unfinished flows" not in text


def _file(text: str, files: Mapping[str, str]) -> str | None:
    rank = _RANK.search(text)
    if rank:
        return trace_file(files, int(rank.group(1)))
    parameter = _PARAMETER.match(text)
    if parameter and parameter.group(1) in SYSTEM_NAMES:
        return files.get("system")
    for words, role in _SUBJECTS:
        if words in text:
            return group_file(files) if role == "groups" else files.get(role)
    return None


def _upstream_names(text: str) -> str:
    """A parameter at the beginning by the key that the file has."""
    parameter = PARAMETERS.get((_PARAMETER.match(text) or [""] * 2)[1])
    if parameter is None or not parameter.upstream_key:
        return text
    return parameter.upstream_key + text.removeprefix(parameter.name)
