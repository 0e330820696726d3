import numpy as np

from hpcmoe.upstream import fct_lines, pfc_lines, rank_lines
from hpcmoe.upstream.output import host_ip

RANK_FIELDS = (
    "finish_ns", "wall_ns", "gpu_ns", "comm_ns", "cpu_ns", "remote_mem_ns", "exposed_comm_ns", "bytes_sent",
    "bytes_received",
)  # fmt: skip
PERCENTS = (
    "compute_bound_percent",
    "compute_utilization_percent",
    "memory_utilization_percent",
    "operation_intensity",
)
RANKS = np.dtype(
    [
        ("rank", "u4"),
        ("finished", "?"),
        *((name, "u8") for name in RANK_FIELDS),
        *((name, "f8") for name in PERCENTS),
    ]
)


def ranks(*rows: dict[str, float]) -> np.ndarray:
    array = np.zeros(len(rows), dtype=RANKS)
    for i, row in enumerate(rows):
        array[i]["rank"], array[i]["finished"] = i, True
        for name, value in row.items():
            array[i][name] = value
    return array


def test_host_addresses() -> None:
    assert f"{host_ip(2):08x}" == "0b000201"
    assert f"{host_ip(300):08x}" == "0b012c01"


def test_fct_line() -> None:
    names = ("src", "dst", "sport", "bytes", "start_ns", "fct_ns", "standalone_ns")
    flows = np.array([(3, 8, 10000, 400000, 20000, 43266, 41856)], dtype=[(name, "u8") for name in names])
    assert list(fct_lines(flows)) == ["0b000301 0b000801 10000 100 400000 20000 43266 41856"]


def test_pfc_lines() -> None:
    kinds = [
        ("time_ns", "u8"),
        ("node", "u4"),
        ("peer", "u4"),
        ("port", "u4"),
        ("is_switch", "u1"),
        ("pause", "u1"),
    ]
    pauses = np.array([(137866, 9, 3, 1, 0, 1), (137900, 33, 2, 4, 1, 0)], dtype=kinds)
    assert list(pfc_lines(pauses)) == ["137866 9 0 1 1", "137900 33 1 4 0"]


def test_rank_report() -> None:
    row = {
        "finish_ns": 120, "wall_ns": 110, "gpu_ns": 40, "comm_ns": 80, "exposed_comm_ns": 80,
        "compute_bound_percent": 97.5, "operation_intensity": 2.0,
    }  # fmt: skip
    assert list(rank_lines(ranks(row))) == [
        "[workload] [info] sys[0] finished, 120 cycles, exposed communication 80 cycles.",
        "[statistics] [info] sys[0]. Post statistics processing start.",
        "[statistics] [info] sys[0]. Post statistics processing end.",
        "[statistics] [info] sys[0], Wall time: 110",
        "[statistics] [info] sys[0], GPU time: 40",
        "[statistics] [info] sys[0], Comm time: 80",
        "[statistics] [info] sys[0], Total compute-communication overlap: 10",
        "[statistics] [info] sys[0], Compute bound percentage: 97.500000%",
        "[statistics] [info] sys[0], Average compute utilization: 0.000000%",
        "[statistics] [info] sys[0], Average memory utilization: 0.000000%",
        "[statistics] [info] sys[0], Average operation intensity: 2.000000",
    ]


def test_classes_and_roofline_appear_only_where_present() -> None:
    text = "\n".join(rank_lines(ranks({"wall_ns": 5, "comm_ns": 5, "cpu_ns": 2}), roofline=False))
    assert "CPU time: 2" in text
    for absent in ("GPU time", "Remote mem", "overlap", "percentage"):
        assert absent not in text


def test_overlap_wraps_like_upstream() -> None:
    text = "\n".join(rank_lines(ranks({"wall_ns": 100, "gpu_ns": 10, "comm_ns": 20})))
    assert f"overlap: {2**64 - 70}" in text


def test_order_is_by_finishing_time_then_rank() -> None:
    rows = ranks({"finish_ns": 9}, {"finish_ns": 5}, {"finish_ns": 9}, {"finish_ns": 1})
    rows[3]["finished"] = False
    first = [line for line in rank_lines(rows) if "finished," in line]
    assert [line.split("]")[2].split("[")[1] for line in first] == ["1", "0", "2"]
