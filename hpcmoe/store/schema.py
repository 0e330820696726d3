"""What a results file holds: every dataset and column, with type, unit and meaning.

This is the single home of those facts. The writer builds its NumPy and HDF5 types from the
tables below, the reader attaches `units` and `help` from them, and docs/results-file.md is
checked against `markdown_tables()`.

All integers are little-endian and all compound types are packed, because ranks write rows of
/runs, /ranks, /links and /provenance/runs as raw bytes at their place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

FILETYPE = "hpcmoe-results"
FORMAT_VERSION = (2, 1)
"""(major, minor). A reader refuses another major; a minor only adds. 2.1: keys may have a sixth part, and
the design a study."""

STATUS = {"missing": 0, "ok": 1, "failed": 2}
STATUS_NAMES = tuple(STATUS)
FACTORS = ("model", "topology", "strategy", "collective", "network")
TRACE_KINDS = ("fct", "qlen", "pfc")

KEY_BYTES = 128
DIGEST_BYTES = 64
ERROR_BYTES = 512
HOST_BYTES = 64


@dataclass(frozen=True)
class Column:
    """One column. `kind` is a NumPy type code, `utf8:<bytes>`, `status` or `factor`."""

    name: str
    kind: str
    unit: str
    help: str


@dataclass(frozen=True)
class Table:
    """One dataset: its path in the file, what a row is, and its columns in storage order."""

    path: str
    row: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _c(name: str, kind: str, unit: str, text: str) -> Column:
    return Column(name, kind, unit, text)


RUNS = Table(
    "/runs",
    "one run, in run-key order",
    (
        _c("key", f"utf8:{KEY_BYTES}", "", "run key: model/topology/strategy/collective/network[/variant]"),
        _c("model", "factor", "", "model"),
        _c("topology", "factor", "", "topology"),
        _c("strategy", "factor", "", "tensor- and expert-parallel widths"),
        _c("collective", "factor", "", "TP all-reduce and EP all-to-all algorithms"),
        _c("network", "factor", "", "link type and congestion control"),
        _c("status", "status", "", "the other columns hold results only when this is ok; written last"),
        _c("bottleneck_rank", "<u4", "", "rank with the longest wall time, the lowest on a tie"),
        _c("wall_ns", "<u8", "ns", "wall time of the bottleneck rank"),
        _c("gpu_ns", "<u8", "ns", "compute time of the bottleneck rank"),
        _c("comm_ns", "<u8", "ns", "communication time of the bottleneck rank"),
        _c("simulated_ns", "<u8", "ns", "simulated time at the end of the run"),
        _c("events", "<u8", "1", "events processed"),
        _c("packet_hops", "<u8", "1", "packets (data and ACK) times links crossed"),
        _c("ecn_marks", "<u8", "1", "packets marked by ECN"),
        _c("pfc_pauses", "<u8", "1", "PFC pause frames"),
        _c("drops", "<u8", "1", "packets dropped"),
        _c("ignored_int_flows", "<u8", "1", "flows whose path is too long for INT, so without HPCC feedback"),
        _c("tokens", "<u4", "1", "tokens per rank"),
        _c("layers", "<u4", "1", "model layers the results stand for"),
        _c("layers_simulated", "<u4", "1", "layers simulated packet by packet"),
        _c("layers_added", "<u4", "1", "equal layers added by fast-forward"),
        _c(
            "quiet_moments",
            "<u8",
            "1",
            "moments of rest: empty network, all ranks compute or wait; start included",
        ),
        _c("rank_offset", "<u8", "rows", "first row of this run in /ranks"),
        _c("rank_count", "<u4", "rows", "rows of this run in /ranks"),
        _c("link_offset", "<u8", "rows", "first row of this run in /links"),
        _c("link_count", "<u4", "rows", "rows of this run in /links"),
        _c("digest", f"utf8:{DIGEST_BYTES}", "", "SHA-256 of the scenario and the simulator version"),
        _c(
            "checksum",
            "<u4",
            "",
            "CRC-32 of this row with status and checksum 0, then the run's /ranks and /links",
        ),
        _c("error", f"utf8:{ERROR_BYTES}", "", "why the run failed, cut to fit; empty when it did not"),
    ),
)

RANKS = Table(
    "/ranks",
    "one rank of one run",
    (
        _c("run", "<u4", "", "row in /runs"),
        _c("rank", "<u4", "", "rank (GPU)"),
        _c("finished", "u1", "", "1 when the rank executed its whole trace"),
        _c("finish_ns", "<u8", "ns", "simulated time at which the rank finished"),
        _c("wall_ns", "<u8", "ns", "wall time"),
        _c("gpu_ns", "<u8", "ns", "compute time"),
        _c("comm_ns", "<u8", "ns", "communication time"),
        _c("cpu_ns", "<u8", "ns", "time in CPU nodes of the trace"),
        _c("remote_mem_ns", "<u8", "ns", "time in remote-memory nodes of the trace"),
        _c("exposed_comm_ns", "<u8", "ns", "communication not overlapped by compute"),
        _c("bytes_sent", "<u8", "B", "bytes the rank sent"),
        _c("bytes_received", "<u8", "B", "bytes the rank received"),
        _c("compute_bound_percent", "<f8", "%", "share of compute nodes limited by peak performance"),
        _c("compute_utilization_percent", "<f8", "%", "achieved over peak performance"),
        _c("memory_utilization_percent", "<f8", "%", "achieved over peak memory bandwidth"),
        _c("operation_intensity", "<f8", "FLOP/B", "operations per byte of memory traffic"),
    ),
)

LINKS = Table(
    "/links",
    "one direction of one link of one run, two rows per link",
    (
        _c("run", "<u4", "", "row in /runs"),
        _c("src", "<u4", "", "node at the sending side"),
        _c("dst", "<u4", "", "node at the receiving side"),
        _c("rate_bps", "<u8", "bit/s", "link rate"),
        _c("bytes", "<u8", "B", "bytes carried, headers included"),
        _c("data_packets", "<u8", "1", "data packets carried"),
        _c("ack_packets", "<u8", "1", "ACK packets carried"),
        _c("pfc_frames", "<u8", "1", "PFC frames carried"),
        _c("ecn_marks", "<u8", "1", "packets marked by ECN at the sending side"),
        _c("pause_ns", "<u8", "ns", "time the sending side was paused"),
        _c("peak_queue_bytes", "<u8", "B", "longest queue at the sending side"),
        _c("busy_ns", "<u8", "ns", "time the link carried bits"),
    ),
)

FCT = Table(
    "/traces/fct",
    "one finished flow, in order of completion within a run",
    (
        _c("src", "<u4", "", "sending rank"),
        _c("dst", "<u4", "", "receiving rank"),
        _c("sport", "<u4", "", "source port, which seeds the route choice"),
        _c("bytes", "<u8", "B", "payload"),
        _c("start_ns", "<u8", "ns", "start, simulated time"),
        _c("fct_ns", "<u8", "ns", "flow completion time"),
        _c("standalone_ns", "<u8", "ns", "completion time on an empty network"),
        _c("node_id", "<u8", "", "trace node of the sending rank"),
        _c("layer", "<i4", "", "model layer, -1 when unknown"),
        _c("chunk", "<u2", "", "chunk of the collective"),
        _c("step", "<u2", "", "step of the collective algorithm"),
    ),
)

QLEN = Table(
    "/traces/qlen",
    "one sampled non-empty queue, by time within a run",
    (
        _c("time_ns", "<u8", "ns", "simulated time"),
        _c("src", "<u4", "", "node that holds the queue"),
        _c("dst", "<u4", "", "node at the other end of the link"),
        _c("bytes", "<u8", "B", "queue length"),
    ),
)

PFC = Table(
    "/traces/pfc",
    "one PFC event, by time within a run",
    (
        _c("time_ns", "<u8", "ns", "simulated time"),
        _c("node", "<u4", "", "node that is paused or resumed"),
        _c("peer", "<u4", "", "node at the other end of the link"),
        _c("port", "<u4", "", "interface index at the node"),
        _c("is_switch", "u1", "", "1 when the node is a switch"),
        _c("pause", "u1", "", "1 pause, 0 resume"),
    ),
)

TRACE_INDEX = Table(
    "/traces/index",
    "one run, same rows as /runs",
    (
        _c("digest", f"utf8:{DIGEST_BYTES}", "", "scenario the traces belong to; empty when there are none"),
        _c("status", "status", "", "status of the run when its traces were taken over"),
        _c("fct_offset", "<u8", "rows", "first row of this run in /traces/fct"),
        _c("fct_count", "<u8", "rows", "rows of this run in /traces/fct"),
        _c("qlen_offset", "<u8", "rows", "first row of this run in /traces/qlen"),
        _c("qlen_count", "<u8", "rows", "rows of this run in /traces/qlen"),
        _c("pfc_offset", "<u8", "rows", "first row of this run in /traces/pfc"),
        _c("pfc_count", "<u8", "rows", "rows of this run in /traces/pfc"),
        _c("repeats_offset", "<u8", "rows", "first row of this run in /traces/repeats"),
        _c("repeats_count", "<u8", "rows", "rows of this run in /traces/repeats"),
        _c(
            "checksum",
            "<u4",
            "",
            "CRC-32 of the run's rows of fct, qlen, pfc, repeats, then of its /config text",
        ),
    ),
)

REPEATS = Table(
    "/traces/repeats",
    "one stretch of trace rows that stands for itself and for copies, in order within a run",
    (
        _c("run", "<u4", "", "row in /runs"),
        _c(
            "fct_begin",
            "<u8",
            "rows",
            "first row of the stretch, counted from the run's first in /traces/fct",
        ),
        _c("fct_end", "<u8", "rows", "row after the stretch, counted alike"),
        _c("qlen_begin", "<u8", "rows", "the same for /traces/qlen"),
        _c("qlen_end", "<u8", "rows", "the same for /traces/qlen"),
        _c("pfc_begin", "<u8", "rows", "the same for /traces/pfc"),
        _c("pfc_end", "<u8", "rows", "the same for /traces/pfc"),
        _c("count", "<u8", "1", "copies beyond the rows stored"),
        _c("period_ns", "<u8", "ns", "time from one copy to the next"),
        _c("layer_step", "<i8", "1", "layers from one copy to the next"),
        _c("node_step", "<u8", "1", "trace nodes from one copy to the next"),
    ),
)

RUN_PROVENANCE = Table(
    "/provenance/runs",
    "one run, same rows as /runs",
    (
        _c("seconds", "<f8", "s", "CPU time of the run, building its scenario included"),
        _c("peak_memory_bytes", "<u8", "B", "peak resident memory of the process during the run"),
        _c("finished_unix_s", "<f8", "s", "when the run finished, seconds since 1970-01-01 UTC"),
        _c("rank", "<u4", "", "MPI rank that ran it"),
        _c("host", f"utf8:{HOST_BYTES}", "", "host that ran it"),
    ),
)

FIXED_TABLES = (RUNS, RANKS, LINKS, RUN_PROVENANCE)
"""Laid out whole before work begins; rows are written in place by the rank that ran them."""

TRACE_TABLES = {"fct": FCT, "qlen": QLEN, "pfc": PFC}
VARIABLE_TABLES = {**TRACE_TABLES, "repeats": REPEATS}
"""All that is spooled per run and committed in run-key order; names are those of RunTraces."""
ALL_TABLES = (RUNS, RANKS, LINKS, FCT, QLEN, PFC, REPEATS, TRACE_INDEX, RUN_PROVENANCE)

ROOT_ATTRIBUTES = {
    "filetype": f"always {FILETYPE!r}",
    "format_version": "two integers, major and minor",
    "hpcmoe_version": "program version that wrote the file",
    "git_sha": "commit of that program, or 'unknown'",
    "build_flags": "how the simulator was compiled, or 'unknown'",
    "tokens": "tokens per rank asked for, 0 where runs differ in it",
    "layers": "MoE layers asked for, -1 for all",
    "traces": "1 when per-flow, queue and pause traces are kept",
    "design": "JSON: factors (allowed names), select (patterns given), tokens, layers, overrides, traces, "
    "placement; study (levels, settings, variants, include, exclude, definitions) where a study file was "
    "given",
}

PROVENANCE_ATTRIBUTES = {
    "created": "when the file was laid out, ISO 8601 UTC",
    "host": "host of rank 0 at that time",
    "command": "command line",
    "ranks": "MPI ranks",
    "mpi": "MPI library, or 'none'",
    "hdf5": "HDF5 library version",
    "python": "Python version",
    "slurm_job": "Slurm job id, or empty",
}


def column_dtype(column: Column, factors: Mapping[str, Iterable[str]]) -> np.dtype[Any]:
    """NumPy type of one column, carrying what h5py needs for enumerations and text."""
    if column.kind == "status":
        return h5py.enum_dtype(STATUS, basetype="u1")
    if column.kind == "factor":
        codes = {name: code for code, name in enumerate(factors[column.name])}
        return h5py.enum_dtype(codes, basetype="u1")
    if column.kind.startswith("utf8:"):
        return h5py.string_dtype("utf-8", int(column.kind.removeprefix("utf8:")))
    return np.dtype(column.kind)


def dtype(table: Table, factors: Mapping[str, Iterable[str]] | None = None) -> np.dtype[Any]:
    """Packed row type of a table. `factors` (factor -> names, code = position) is for /runs."""
    return np.dtype([(c.name, column_dtype(c, factors or {})) for c in table.columns])


def describe(dataset: h5py.Dataset, table: Table) -> None:
    """Attach the units and the meaning of each column to a dataset, as JSON attributes."""
    dataset.attrs["row"] = table.row
    dataset.attrs["units"] = json.dumps({c.name: c.unit for c in table.columns})
    dataset.attrs["help"] = json.dumps({c.name: c.help for c in table.columns})


def encode_text(text: str, size: int) -> bytes:
    """UTF-8 bytes of `text`, at most `size`, never cut inside a character; NUL is replaced."""
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return data[:size].decode("utf-8", "ignore").encode("utf-8")


def _shown_kind(column: Column) -> str:
    if column.kind.startswith("utf8:"):
        return f"UTF-8, {column.kind.removeprefix('utf8:')} bytes"
    if column.kind == "status":
        return "enum u1: " + ", ".join(f"{code} {name}" for name, code in STATUS.items())
    if column.kind == "factor":
        return "enum u1"
    return column.kind.removeprefix("<")


def markdown_table(table: Table) -> str:
    """One table as the Markdown block that docs/results-file.md shows."""
    lines = [
        f"### `{table.path}`",
        "",
        f"A row is {table.row}.",
        "",
        "| column | type | unit | meaning |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{c.name}` | {_shown_kind(c)} | {c.unit} | {c.help} |" for c in table.columns]
    return "\n".join(lines) + "\n"


def markdown_tables() -> str:
    """Every dataset with columns, as docs/results-file.md must show them."""
    return "\n".join(markdown_table(table) for table in ALL_TABLES)


def markdown_attributes(attributes: Mapping[str, str]) -> str:
    """Attributes and their meaning as a Markdown table."""
    lines = ["| attribute | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in attributes.items()]
    return "\n".join(lines) + "\n"
