"""Output lines in upstream's formats. Functions take the structured arrays of a run's result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

DESTINATION_PORT = 100
_WORKLOAD, _STATISTICS = "[workload] [info] ", "[statistics] [info] "


def host_ip(node: int) -> int:
    """IPv4 address of a host as upstream numbers them: 11.0.0.1 + id in the middle bytes."""
    return 0x0B000001 + (node // 256) * 65536 + (node % 256) * 256


def fct_lines(flows: np.ndarray) -> Iterator[str]:
    """``sip dip sport dport size start fct standalone`` per flow, in the order given."""
    for src, dst, sport, *numbers in _rows(flows, _FCT):
        rest = " ".join(map(str, numbers))
        yield f"{host_ip(src):08x} {host_ip(dst):08x} {sport} {DESTINATION_PORT} {rest}"


def pfc_lines(pauses: np.ndarray) -> Iterator[str]:
    """``time node nodeType ifIndex type``: node type 1 is a switch, type 1 a pause and 0 a resume."""
    for row in _rows(pauses, _PFC):
        yield " ".join(str(int(value)) for value in row)


_FCT = ("src", "dst", "sport", "bytes", "start_ns", "fct_ns", "standalone_ns")
_PFC = ("time_ns", "node", "is_switch", "port", "pause")


def _rows(array: np.ndarray, columns: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    """Python integers by column: much faster than a structured row at a time."""
    yield from zip(*(array[name].tolist() for name in columns), strict=True)


def rank_lines(ranks: np.ndarray, roofline: bool = True) -> Iterator[str]:
    """The report of every finished rank, by finishing time and then rank."""
    finished = ranks[ranks["finished"]]
    for row in finished[np.lexsort((finished["rank"], finished["finish_ns"]))]:
        yield from _one_rank(row, roofline)


def _one_rank(row: Any, roofline: bool) -> Iterator[str]:
    name = f"sys[{row['rank']}]"
    yield (
        f"{_WORKLOAD}{name} finished, {row['finish_ns']} cycles, "
        f"exposed communication {row['exposed_comm_ns']} cycles."
    )
    yield f"{_STATISTICS}{name}. Post statistics processing start."
    yield f"{_STATISTICS}{name}. Post statistics processing end."
    yield f"{_STATISTICS}{name}, Wall time: {row['wall_ns']}"
    yield from (
        f"{_STATISTICS}{name}, {label}: {row[column]}" for label, column in CLASSES if row[column] > 0
    )
    overlap = _overlap(row)
    if overlap > 0:
        yield f"{_STATISTICS}{name}, Total compute-communication overlap: {overlap}"
    if roofline:
        yield from (
            f"{_STATISTICS}{name}, {label}: {row[column]:.6f}{unit}" for label, column, unit in ROOFLINE
        )


CLASSES = (
    ("CPU time", "cpu_ns"),
    ("GPU time", "gpu_ns"),
    ("Comm time", "comm_ns"),
    ("Remote mem time", "remote_mem_ns"),
)
ROOFLINE = (
    ("Compute bound percentage", "compute_bound_percent", "%"),
    ("Average compute utilization", "compute_utilization_percent", "%"),
    ("Average memory utilization", "memory_utilization_percent", "%"),
    ("Average operation intensity", "operation_intensity", ""),
)


def _overlap(row: Any) -> int:
    """GPU + Comm - wall as upstream's unsigned 64-bit; 0 unless the rank has both."""
    gpu, comm, wall = int(row["gpu_ns"]), int(row["comm_ns"]), int(row["wall_ns"])
    return (gpu + comm - wall) % 2**64 if gpu and comm else 0
