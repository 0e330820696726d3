import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcmoe import parameters, topology, upstream
from hpcmoe.errors import InputError
from hpcmoe.topology import Link
from hpcmoe.upstream.json_files import format_implementation, parse_implementation

KEYS = [str(p.upstream_key) for p in parameters.PARAMETERS.values() if p.section == "network"]
STAR = topology.unnamed(4, [3], [Link(i, 3, 10**9, 5) for i in range(3)])


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.txt"


def test_sample_configuration(data: Path) -> None:
    read = upstream.read_network_config(data / "upstream/config.txt")
    study = parameters.defaults("study", "network")
    expected = {name: study[name] for name in read.values} | {"qlen_monitor_start_ns": 10**18}
    assert read.values == expected
    assert read.ecn[4:6] == [
        (400_000_000_000, 800_000, 3_200_000, 0.2),
        (512_000_000_000, 800_000, 3_200_000, 0.2),
    ]
    assert read.files["topology"] == "topology.txt"
    assert not read.warnings


def test_only_what_is_given_is_set(config: Path) -> None:
    read = upstream.read_network_config(write(config, "CC_MODE 3"))
    assert read.values == {"cc_mode": 3}
    assert read.files == {"fct": "fct.txt", "pfc": "pfc.txt"}


def test_unknown_tokens_are_skipped_and_later_values_count(config: Path) -> None:
    text = "BUFFER_SIZE 16 {MiB} SOMETHING 1 2 CC_MODE 1\n\tBUFFER_SIZE\n2"
    values = upstream.read_network_config(write(config, text)).values
    assert values == {"buffer_bytes": 2 * 2**20, "cc_mode": 1}


def test_maps_accumulate(config: Path) -> None:
    text = "KMIN_MAP 1 10 1 KMAX_MAP 1 10 4 PMAX_MAP 1 10 0.5 KMIN_MAP 2 20 2 10 3 KMAX_MAP 1 20 4"
    assert upstream.read_network_config(write(config, text)).ecn == [(10, 3000, 4000, 0.5)]


@pytest.mark.parametrize("mode", [0, 2, 12, 99])
def test_other_cc_modes_are_none(mode: int, config: Path) -> None:
    assert upstream.read_network_config(write(config, f"CC_MODE {mode}")).values["cc_mode"] == 0


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("RP_TIMER 1.9", "rp_timer_us", 1),
        ("HAS_WIN 2", "has_window", True),
        ("GLOBAL_T 2", "global_t", False),
        ("GLOBAL_T 1", "global_t", True),
        ("ACK_HIGH_PRIO 3", "ack_high_prio", True),
        ("RATE_AI 5MBps", "rate_ai_bps", 40_000_000),
        ("HEADROOM_FACTOR 2.5", "headroom_factor", 2.5),
        ("QLEN_MON_START 100", "qlen_monitor_start_ns", 100),
    ],
)
def test_values_mean_what_upstream_makes_of_them(text: str, name: str, value: object, config: Path) -> None:
    assert upstream.read_network_config(write(config, text)).values == {name: value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CC_MODE 10", "CC_MODE: HPCC-PINT is not simulated"),
        ("CC_MODE hpcc", "CC_MODE: bad value .*'hpcc'.*allowed: 0 .none."),
        ("PACKET_PAYLOAD_SIZE many", "PACKET_PAYLOAD_SIZE: bad value .*allowed: integers from 1"),
        ("PACKET_PAYLOAD_SIZE", "PACKET_PAYLOAD_SIZE: the file ends"),
        ("L2_ACK_INTERVAL 0", "L2_ACK_INTERVAL: bad value"),
        ("RATE_AI fast", "RATE_AI: bad value"),
        ("U_TARGET x", "U_TARGET: bad value"),
        ("ENABLE_QCN yes", "ENABLE_QCN: bad value"),
        ("RP_TIMER soon", "RP_TIMER: bad value"),
        ("RP_TIMER -1", "RP_TIMER: bad value"),
        ("BUFFER_SIZE 4096", "BUFFER_SIZE: bad value .*1 to 4095"),
        ("BUFFER_SIZE 1.5", "BUFFER_SIZE: bad value"),
        ("LINK_DOWN 5 0 1", "LINK_DOWN: links that go down"),
        ("LINK_DOWN 5 0", "LINK_DOWN: the file ends"),
        ("KMIN_MAP 2 10 1", "KMIN_MAP: the file ends"),
        ("KMIN_MAP 1 10 x", "KMIN_MAP: bad value"),
        ("KMIN_MAP 1 10 inf", "KMIN_MAP: bad entry"),
        ("KMIN_MAP 1 10 nan", "KMIN_MAP: bad entry"),
        ("PMAX_MAP 1 10 1.5", "PMAX_MAP: bad entry .*a probability"),
        ("KMIN_MAP 1 10 5 KMAX_MAP 1 10 4 PMAX_MAP 1 10 1", "KMIN is above KMAX at 10"),
        ("ENABLE_TRACE on", "ENABLE_TRACE: bad value"),
    ],
)
def test_bad_configurations(text: str, message: str, config: Path) -> None:
    with pytest.raises(InputError, match=message) as error:
        upstream.read_network_config(write(config, text))
    assert str(error.value).startswith(f"{config}: ")


TOKENS = st.one_of(
    st.sampled_from(
        [*KEYS, "KMIN_MAP", "KMAX_MAP", "PMAX_MAP", "LINK_DOWN", "ENABLE_TRACE", "TOPOLOGY_FILE"]
    ),
    st.sampled_from(["0", "1", "-1", "1e400", "nan", "inf", "9" * 5000, "400Gbps", "0x10", "\u0663", "{}"]),
    st.integers().map(str),
    st.floats().map(str),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(TOKENS, max_size=12))
def test_any_configuration_is_read_or_refused(tokens: list[str], config: Path) -> None:
    write(config, " ".join(tokens))
    try:
        values = upstream.read_network_config(config).values
    except InputError:
        values = {}
    for name, value in values.items():
        assert parameters.PARAMETERS[name].check(value) == value


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.dictionaries(
        st.sampled_from(
            [str(p.upstream_key) for p in parameters.PARAMETERS.values() if p.section == "system"]
        ),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just(10**400)
        ),
    )
)
def test_any_system_is_read_or_refused(content: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", content)
    for read in (lambda: upstream.read_system(path).values, lambda: upstream.read_memory(path)):
        try:
            values = read()
        except InputError:
            values = {}
        for name, value in values.items():
            assert parameters.PARAMETERS[name].check(value) == value


def test_packet_traces_are_warned_about(config: Path) -> None:
    assert upstream.read_network_config(write(config, "TRACE_FILE t.txt")).warnings
    assert not upstream.read_network_config(write(config, "TRACE_FILE t.txt ENABLE_TRACE 0")).warnings


def test_a_written_configuration_reads_back(config: Path) -> None:
    values = parameters.complete(parameters.defaults("study", "network"), "network")
    values |= {
        "cc_mode": 7,
        "ewma_gain": 1 / 3,
        "headroom_factor": 2.5,
        "has_window": False,
        "buffer_bytes": 2**21,
    }
    ecn = [(10, 1000, 2000, 0.25), (20, 3000, 9000, 1.0)]
    upstream.write_network_config(config, values, ecn, {"topology": "t.txt", "fct": "a", "pfc": "b"})
    read = upstream.read_network_config(config)
    given = {p.name for p in parameters.PARAMETERS.values() if p.section == "network" and p.upstream_key}
    assert read.values == {name: values[name] for name in given} | {"qlen_monitor_start_ns": 10**18}
    assert read.ecn == ecn
    assert read.files == {"topology": "t.txt", "fct": "a", "pfc": "b"}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("ring", (0, -1, False)),
        ("direct", (1, -1, False)),
        ("direct4", (1, 4, False)),
        ("halvingDoubling", (2, -1, False)),
        ("doubleBinaryTree", (3, -1, False)),
        ("oneRing", (0, -1, True)),
        ("oneDirect12", (1, 12, True)),
        ("oneHalvingDoubling", (2, -1, True)),
    ],
)
def test_algorithm_names(text: str, parsed: tuple[int, int, bool]) -> None:
    assert parse_implementation(text) == parsed
    assert format_implementation(parsed) == text


@pytest.mark.parametrize("text", ["Ring", "direct0", "oneDoubleBinaryTree", "ring4", "", "directx", 3, None])
def test_bad_algorithm_names(text: Any) -> None:
    with pytest.raises(InputError, match="allowed: (ring, direct|direct1)"):
        parse_implementation(text)


def test_sample_system(data: Path) -> None:
    read = upstream.read_system(data / "upstream/system.json")
    study = parameters.defaults("study", "system")
    assert read.values == {name: study[name] for name in read.values}
    assert read.implementations == {
        "all_reduce": [(0, -1, False), (1, -1, False)],
        "all_gather": [(0, -1, False), (1, -1, False)],
        "reduce_scatter": [(0, -1, False), (1, -1, False)],
        "all_to_all": [(1, -1, False), (1, -1, False)],
    }


def test_flags_are_compared_with_the_number_zero(tmp_path: Path) -> None:
    read = upstream.read_system(
        write(tmp_path / "s.json", {"roofline-enabled": False, "replay-only": 0, "model-shared-bus": 1})
    )
    assert read.values == {"roofline_enabled": True, "replay_only": False, "model_shared_bus": True}
    assert "roofline-enabled: only the number 0" in read.warnings[0]


def test_unknown_system_keys_are_ignored(tmp_path: Path) -> None:
    assert upstream.read_system(write(tmp_path / "s.json", {"boost-mode": 0, "x": []})).values == {}


def test_one_dimension_forms_stand_alone(tmp_path: Path) -> None:
    read = upstream.read_system(
        write(tmp_path / "s.json", {"all-reduce-implementation": ["oneRing", "direct"]})
    )
    assert read.implementations == {"all_reduce": [(0, -1, True)]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ({"scheduling-policy": "lifo"}, "scheduling-policy: bad value .*LIFO, FIFO, EXPLICIT"),
        ({"collective-optimization": 1}, "collective-optimization: bad value"),
        ({"preferred-dataset-splits": 0}, "preferred-dataset-splits: bad value"),
        ({"endpoint-delay": "10"}, "endpoint-delay: bad value"),
        ({"all-reduce-implementation": "ring"}, "all-reduce-implementation: not an array"),
        ({"all-to-all-implementation": ["star"]}, "all-to-all-implementation: unknown algorithm"),
        ({"all-reduce-implementation-custom": ["x"]}, "custom collective algorithms"),
        ({"per-node-custom-implementation": "x"}, "custom collective algorithms"),
    ],
)
def test_bad_systems(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_system(write(tmp_path / "s.json", content))


def test_a_written_system_reads_back(tmp_path: Path) -> None:
    values = parameters.complete(parameters.defaults("study", "system"), "system")
    values |= {"scheduling_policy": 1, "bus_gap_per_byte": 0.01, "model_shared_bus": True}
    implementations = {"all_reduce": [(3, -1, False), (1, 4, False)]}
    upstream.write_system(tmp_path / "s.json", values, implementations)
    read = upstream.read_system(tmp_path / "s.json")
    assert read.values == {name: values[name] for name in read.values}
    assert len(read.values) == 15
    assert read.implementations == implementations


def test_logical_dims(data: Path, tmp_path: Path) -> None:
    assert upstream.read_logical_dims(data / "upstream/logical.json") == (2, 16)
    upstream.write_logical_dims(tmp_path / "l.json", (8, 4))
    assert upstream.read_logical_dims(tmp_path / "l.json") == (8, 4)


@pytest.mark.parametrize("dims", [None, [], "2", ["0"], ["x"], [True], ["2.5"], ["-1"]])
def test_bad_logical_dims(dims: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="logical-dims"):
        upstream.read_logical_dims(write(tmp_path / "l.json", {"logical-dims": dims}))


def test_memory(data: Path, tmp_path: Path) -> None:
    assert upstream.read_memory(data / "upstream/memory.json") == {"memory_type": 0}
    content = {
        "memory-type": "PER_NODE_MEMORY_EXPANSION",
        "remote-mem-latency": 12.9,
        "remote-mem-bw": 100,
        "num-npus-per-node": 8,
    }
    values = upstream.read_memory(write(tmp_path / "m.json", content))
    assert values == {
        "memory_type": 2,
        "remote_mem_latency_ns": 12,
        "remote_mem_bw_gbps": 100,
        "memory_npus_per_node": 8,
    }
    upstream.write_memory(tmp_path / "again.json", values)
    assert upstream.read_memory(tmp_path / "again.json") == values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "memory-type: missing"),
        ({"memory-type": "DISK"}, "memory-type: bad value"),
        ({"memory-type": "MEMORY_POOL"}, "remote-mem-bw: MEMORY_POOL needs a bandwidth"),
        ({"memory-type": "MEMORY_POOL", "remote-mem-bw": 0.5}, "needs a bandwidth"),
        ({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1}, "num-npus-per-node"),
        ({"memory-type": "MEMORY_POOL", "remote-mem-bw": "1"}, "remote-mem-bw: bad value"),
    ],
)
def test_bad_memory(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_memory(write(tmp_path / "m.json", content))


def test_groups(tmp_path: Path) -> None:
    assert upstream.read_groups(write(tmp_path / "g.json", {"1": [0, 2], "7": [1]})) == {1: [0, 2], 7: [1]}
    assert upstream.read_groups("empty") == upstream.read_groups("some/empty/file") == {}


@pytest.mark.parametrize(
    "content", [{"0": [1]}, {"a": [1]}, {"1": 3}, {"1": ["0"]}, {"1": [-1]}, {"1": [True]}]
)
def test_bad_groups(content: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"g\.json: (0|a|group 1): "):
        upstream.read_groups(write(tmp_path / "g.json", content))


def test_policy_round_trip(tmp_path: Path) -> None:
    disabled = np.array([[True, True, False], [True, True, False], [False, False, True]])
    upstream.write_cc_policy(disabled, tmp_path / "p.txt")
    lines = (tmp_path / "p.txt").read_text().splitlines()
    assert lines == ["0 1 0", "0 2 1", "1 0 0", "1 2 1", "2 0 1", "2 1 1"]
    read = upstream.read_cc_policy(tmp_path / "p.txt", 3)
    off_diagonal = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(read[off_diagonal], disabled[off_diagonal])


def test_pairs_without_a_policy_have_control(tmp_path: Path) -> None:
    read = upstream.read_cc_policy(write(tmp_path / "p.txt", "0 1 0\n\n0 1 1\n2 0 0\n"), 3)
    assert read.sum() == 1
    assert read[2, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1", "line 1: bad line"),
        ("\n0 1 x", "line 2: bad line"),
        ("0 3 1", "out of range"),
        ("0 1 2", "enable_cc"),
    ],
)
def test_bad_policies(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_cc_policy(write(tmp_path / "p.txt", text), 3)


def test_flow_lists(tmp_path: Path) -> None:
    flows = upstream.read_flows(write(tmp_path / "f.txt", "0 0 2 3000\n\n5 1 2 1\n"), STAR)
    assert flows.dtype == np.int64
    assert flows.tolist() == [[0, 0, 2, 3000], [5, 1, 2, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no flow"),
        ("# t src dst bytes\n", "line 1: bad line"),
        ("5 0 1 1\n4 0 1 1", "line 2: flows are not sorted"),
        ("-1 0 1 1", "not sorted"),
        ("0 0 3 1", "not a host .got 3"),
        ("0 0 9 1", "not a host"),
        ("0 0 0 1", "itself"),
        ("0 0 1 0", "bad size"),
        ("0 0 1 2147483648", "bad size"),
    ],
)
def test_bad_flow_lists(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        upstream.read_flows(write(tmp_path / "f.txt", text), STAR)
