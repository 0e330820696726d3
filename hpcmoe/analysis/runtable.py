"""The runs of a results file as plain columns: the only thing analysis sees of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcmoe.errors import InputError

STATUSES = ("ok", "failed", "missing")
TEXT_COLUMNS = ("key", "model", "topology", "strategy", "collective", "network", "status", "error")
NUMBER_COLUMNS = (
    "wall_ns",
    "gpu_ns",
    "comm_ns",
    "bottleneck_rank",
    "events",
    "packet_hops",
    "layers_simulated",
    "layers_added",
    "tokens",
    "layers",
    "ecn_marks",
    "pfc_pauses",
)


class ResultsLike(Protocol):
    """What a reader of results offers: a structured array with one row per planned run (fields
    ``TEXT_COLUMNS`` and ``NUMBER_COLUMNS``) and the attributes of the file."""

    @property
    def runs(self) -> NDArray[Any]: ...

    @property
    def attrs(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class RunTable:
    """One entry per planned run in every column; numbers are valid where ``status`` is ``ok``.

    ``numbers`` are int64 (nanoseconds, counts); ``layers`` is the number of MoE layers asked for,
    -1 for all.  ``attrs`` are the file's attributes.
    """

    text: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, NDArray[np.int64]]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for position, status in enumerate(self.text["status"]):
            if status not in STATUSES:
                raise InputError(
                    "unknown run status", field=f"runs[{position}].status", value=status, allowed=STATUSES
                )
        keys = self.text["key"]
        if len(set(keys)) != len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError("a run appears twice", field="runs.key", value=twice)

    def __len__(self) -> int:
        return len(self.text["key"])

    @property
    def ok(self) -> NDArray[np.bool_]:
        return np.array([status == "ok" for status in self.text["status"]], dtype=bool)

    def count(self, status: str) -> int:
        return self.text["status"].count(status)


def from_results(results: ResultsLike) -> RunTable:
    """Copies what analysis needs out of an open results file."""
    names = results.runs.dtype.names or ()
    lacking = [name for name in TEXT_COLUMNS + NUMBER_COLUMNS if name not in names]
    if lacking:
        raise InputError("the runs of this file lack columns", field="runs", value=", ".join(lacking))
    text = {name: tuple(_text(value) for value in results.runs[name]) for name in TEXT_COLUMNS}
    numbers = {name: results.runs[name].astype(np.int64) for name in NUMBER_COLUMNS}
    return RunTable(text=text, numbers=numbers, attrs=dict(results.attrs))


def from_rows(rows: Sequence[Mapping[str, Any]], attrs: Mapping[str, Any] | None = None) -> RunTable:
    """A table from one mapping per run; columns left out are empty text or 0, ``layers`` -1."""
    defaults = {"layers": -1}
    text = {name: tuple(str(row.get(name, "")) for row in rows) for name in TEXT_COLUMNS}
    numbers = {
        name: np.array([row.get(name, defaults.get(name, 0)) for row in rows], dtype=np.int64)
        for name in NUMBER_COLUMNS
    }
    return RunTable(text=text, numbers=numbers, attrs=attrs or {})


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
