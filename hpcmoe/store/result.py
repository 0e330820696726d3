"""Turns the outcome of one run into rows and traces of the schema's types."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from hpcmoe.store import schema


class RunResultLike(Protocol):
    """What the store reads of a run's result (hpcmoe.runner.RunResult has it all)."""

    @property
    def ranks(self) -> np.ndarray: ...
    @property
    def links(self) -> np.ndarray: ...
    @property
    def flows(self) -> np.ndarray: ...
    @property
    def queues(self) -> np.ndarray: ...
    @property
    def pauses(self) -> np.ndarray: ...
    @property
    def repeats(self) -> np.ndarray: ...


RESULT_COLUMNS = (
    "bottleneck_rank",
    "wall_ns",
    "gpu_ns",
    "comm_ns",
    "simulated_ns",
    "events",
    "packet_hops",
    "ecn_marks",
    "pfc_pauses",
    "drops",
    "ignored_int_flows",
    "layers_simulated",
    "layers_added",
    "quiet_moments",
)
"""Columns of /runs that are attributes of the same name on a result."""


@dataclass(frozen=True)
class RunRows:
    """Rows of one run: `values` are columns of /runs by name, the rest are arrays of their table."""

    status: str
    values: Mapping[str, Any]
    ranks: np.ndarray
    links: np.ndarray
    provenance: np.ndarray


def _empty(table: schema.Table) -> Callable[[], np.ndarray]:
    return partial(np.zeros, 0, schema.dtype(table))


@dataclass(frozen=True)
class RunTraces:
    """Variable-size part of one run. `config` is the scenario as JSON text.

    `repeats` says which stretches of the three traces stand for copies as well; repeats.expand
    writes them out.
    """

    digest: str
    config: str
    fct: np.ndarray = field(default_factory=_empty(schema.FCT))
    qlen: np.ndarray = field(default_factory=_empty(schema.QLEN))
    pfc: np.ndarray = field(default_factory=_empty(schema.PFC))
    repeats: np.ndarray = field(default_factory=_empty(schema.REPEATS))


def traces_checksum(traces: RunTraces) -> int:
    """CRC-32 of the rows of every trace, then of the scenario's text."""
    crc = 0
    for name in schema.VARIABLE_TABLES:
        crc = zlib.crc32(getattr(traces, name).tobytes(), crc)
    return zlib.crc32(traces.config.encode(), crc)


def provenance_row(
    *, seconds: float, peak_memory_bytes: int, finished_unix_s: float, rank: int, host: str
) -> np.ndarray:
    """One row of /provenance/runs."""
    row = np.zeros(1, schema.dtype(schema.RUN_PROVENANCE))
    row[0] = (seconds, peak_memory_bytes, finished_unix_s, rank, schema.encode_text(host, schema.HOST_BYTES))
    return row


def finished_rows(
    run: int, result: RunResultLike, *, digest: str, tokens: int, provenance: np.ndarray
) -> RunRows:
    """Rows of a run that ended well."""
    values = {name: getattr(result, name) for name in RESULT_COLUMNS}
    layers = values["layers_simulated"] + values["layers_added"]
    values |= {"tokens": tokens, "layers": layers, "digest": digest.encode()}
    return RunRows(
        "ok",
        values,
        take_columns(schema.RANKS, result.ranks, run),
        take_columns(schema.LINKS, result.links, run),
        provenance,
    )


def failed_rows(
    run: int, error: str, *, rank_count: int, link_count: int, digest: str, provenance: np.ndarray
) -> RunRows:
    """Rows of a run that failed: the reason, and zeros wherever there would be a result."""
    ranks = np.zeros(rank_count, schema.dtype(schema.RANKS))
    links = np.zeros(link_count, schema.dtype(schema.LINKS))
    ranks["run"] = links["run"] = run
    values = {"error": schema.encode_text(error, schema.ERROR_BYTES), "digest": digest.encode()}
    return RunRows("failed", values, ranks, links, provenance)


SIMULATOR_NAMES = {"fct": "flow", "qlen": "queue", "pfc": "pause"}
"""What the simulator calls the rows of each trace."""


def result_traces(result: RunResultLike, run: int, *, digest: str, config: str, keep: bool) -> RunTraces:
    """Traces of a run that ended well; `keep` false leaves only the scenario."""
    if not keep:
        return RunTraces(digest, config)
    return RunTraces(
        digest,
        config,
        take_columns(schema.FCT, result.flows),
        take_columns(schema.QLEN, result.queues),
        take_columns(schema.PFC, result.pauses),
        take_columns(schema.REPEATS, _stored_names(result.repeats), run),
    )


def _stored_names(repeats: np.ndarray) -> np.ndarray:
    """The simulator's repeats under the column names of /traces/repeats."""
    columns = {
        f"{own}_{end}": f"{kind}_{end}" for kind, own in SIMULATOR_NAMES.items() for end in ("begin", "end")
    }
    names = [columns.get(name, name) for name in repeats.dtype.names or ()]
    kinds = [repeats.dtype[position] for position in range(len(names))]
    renamed = np.zeros(len(repeats), list(zip(names, kinds, strict=True)))
    for old, new in zip(repeats.dtype.names or (), names, strict=True):
        renamed[new] = repeats[old]
    return renamed


def take_columns(table: schema.Table, source: np.ndarray, run: int | None = None) -> np.ndarray:
    """Columns of `table` out of a structured array, in the stored type.

    Raises ValueError for a missing column and for a value that the stored type cannot hold.
    """
    rows = np.zeros(len(source), schema.dtype(table))
    for column in table.columns:
        if column.name == "run" and run is not None:
            rows["run"] = run
            continue
        if source.dtype.names is None or column.name not in source.dtype.names:
            raise ValueError(f"result for {table.path} lacks column {column.name!r}")
        rows[column.name] = given = source[column.name]
        if not np.array_equal(rows[column.name], given, equal_nan=given.dtype.kind == "f"):
            raise ValueError(f"{table.path}: a value of column {column.name!r} does not fit {column.kind}")
    return rows
