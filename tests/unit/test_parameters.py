import re
from pathlib import Path

import pytest

from hpcmoe import parameters
from hpcmoe.errors import InputError
from hpcmoe.overrides import Overrides


def test_system_names_are_those_of_the_simulator(checkout: Path) -> None:
    text = (checkout / "astra-sim/system/parameters.hh").read_text()
    fields = re.findall(r"^  X\([\w:]+, (\w+)\)", text, flags=re.MULTILINE)
    assert sorted(fields) == sorted(parameters.SYSTEM_NAMES)


def test_defaults_are_in_range() -> None:
    for parameter in parameters.PARAMETERS.values():
        assert parameter.check(parameter.default) == parameter.default
        if parameter.upstream_default is not None:
            assert parameter.check(parameter.upstream_default) == parameter.upstream_default


def test_study_defaults_are_complete() -> None:
    for section in ("network", "system"):
        values = parameters.complete(parameters.defaults("study", section), section)
        assert tuple(values) == parameters.section_names(section)


def test_fixed_values_of_the_study() -> None:
    network = parameters.defaults("study", "network")
    system = parameters.defaults("study", "system")
    assert (network["payload_bytes"], network["l2_chunk_bytes"], network["l2_ack_interval_bytes"]) == (
        1000,
        4000,
        1,
    )
    assert (network["buffer_bytes"], network["u_target"], network["headroom_factor"]) == (
        32 * 2**20,
        0.95,
        3.0,
    )
    assert (system["preferred_dataset_splits"], system["endpoint_delay_ns"]) == (4, 10)
    assert (system["local_mem_bw_gbps"], system["peak_perf_tflops"]) == (1600.0, 1000.0)


def test_profiles_differ_only_where_the_study_needs_it() -> None:
    upstream, study = (parameters.defaults(p, "network") for p in parameters.PROFILES)
    differing = {name for name in parameters.PROFILE_SWITCHES if upstream[name] != study[name]}
    assert differing == {
        "int_exact_rates",
        "neighbor_order",
        "ecn_random",
        "restart_counters_when_idle",
        "local_int",
        "local_window",
        "queue_sample_ns",
    }


def test_a_missing_value_names_the_upstream_key() -> None:
    with pytest.raises(InputError, match=r"c\.txt: L2_ACK_INTERVAL: missing"):
        parameters.complete(parameters.defaults("upstream", "network"), "network", file="c.txt")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cc_mode", "hpcc", 3),
        ("cc_mode", "7", 7),
        ("ecn_enabled", "true", True),
        ("ecn_enabled", "0", False),
        ("rate_ai_bps", "50Mb/s", 50_000_000),
        ("buffer_bytes", "4e6", 4_000_000),
        ("u_target", "0.9", 0.9),
        ("neighbor_order", "descending", 0),
        ("scheduling_policy", "FIFO", 1),
    ],
)
def test_parsing(name: str, text: str, value: object) -> None:
    parsed = parameters.find(name).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cc_mode", "10"),
        ("cc_mode", "pint"),
        ("ecn_enabled", "2"),
        ("ecn_enabled", "yes"),
        ("payload_bytes", "0"),
        ("payload_bytes", "1.5"),
        ("payload_bytes", "many"),
        ("u_target", "nan"),
        ("u_target", "1.01"),
        ("local_mem_bw_gbps", "inf"),
        ("rate_ai_bps", "50 apples"),
        ("random_seed", "-1"),
    ],
)
def test_bad_values_say_what_is_allowed(name: str, text: str) -> None:
    with pytest.raises(InputError, match=f"{name}: bad value .*; allowed: "):
        parameters.find(name).parse(text)


def test_unknown_names_list_the_closest_first() -> None:
    with pytest.raises(InputError, match="bufer_bytes: unknown parameter; allowed: buffer_bytes, "):
        parameters.find("bufer_bytes")


def test_every_unsigned_64_bit_value_survives() -> None:
    assert parameters.find("qlen_monitor_start_ns").parse(str(2**64 - 1)) == 2**64 - 1


@pytest.mark.parametrize("text", ["cc_mode", "=3", "cc_mode="])
def test_assignments_need_name_and_value(text: str) -> None:
    with pytest.raises(InputError, match="name=value"):
        parameters.parse_overrides([text])


def test_overrides_apply_to_their_section() -> None:
    changes = Overrides(
        parameters.parse_overrides(["has_window=0", "endpoint_delay_ns=5", "ecn=*:1000:2000:0.5"])
    )
    assert changes.apply("network", {"has_window": True, "u_target": 0.95}) == {
        "has_window": False,
        "u_target": 0.95,
    }
    assert changes.apply("system", {}) == {"endpoint_delay_ns": 5}
    assert changes.ecn([(10, 1, 2, 0.1), (20, 1, 2, 0.1)]) == [(10, 1000, 2000, 0.5), (20, 1000, 2000, 0.5)]


def test_thresholds_of_one_rate() -> None:
    changes = Overrides({"ecn": "20bps:1:2:0.3,5bps:1:1:1"})
    assert changes.ecn([(10, 1, 2, 0.1), (20, 7, 8, 0.1)]) == [
        (5, 1, 1, 1.0),
        (10, 1, 2, 0.1),
        (20, 1, 2, 0.3),
    ]


@pytest.mark.parametrize("text", ["400Gbps", "400Gbps:1:2", "fast:1:2:0.1", "1bps:3:2:0.1", "1bps:1:2:1.1"])
def test_bad_thresholds(text: str) -> None:
    with pytest.raises(InputError, match="ecn: .*RATE:KMIN_BYTES:KMAX_BYTES:PMAX"):
        Overrides({"ecn": text}).ecn([])


def test_external_delay() -> None:
    assert Overrides({"external_delay": "2us"}).external_delay_ns(700) == 2000
    assert Overrides({}).external_delay_ns(700) == 700
    with pytest.raises(InputError, match="external_delay"):
        Overrides({"external_delay": "long"}).external_delay_ns(700)
    with pytest.raises(InputError, match="unknown parameter"):
        Overrides({"external_delay": "2us"}, of_key=False)
