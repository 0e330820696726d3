import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcmoe.units import RATE_UNITS, format_rate, format_time, parse_rate_bps, parse_time_ns


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("400Gbps", 400_000_000_000),
        ("50Mb/s", 50_000_000),
        ("1000Mb/s", 1_000_000_000),
        ("1.5kbps", 1500),
        ("1KBps", 8000),
        ("1Kib/s", 1024),
        ("2MiB/s", 2 * 1024**2 * 8),
        ("1GiB/s", 1024**3 * 8),
        ("7", 7),
        ("1.9bps", 1),
        ("2B/s", 16),
    ],
)
def test_rate_strings(text: str, bps: int) -> None:
    assert parse_rate_bps(text) == bps


def test_every_documented_rate_suffix_is_known() -> None:
    suffixes = (
        "bps b/s Bps B/s kbps kb/s Kbps Kb/s kBps kB/s KBps KB/s Kib/s KiB/s Mbps Mb/s MBps MB/s Mib/s MiB/s "
        "Gbps Gb/s GBps GB/s Gib/s GiB/s"
    )
    assert set(suffixes.split()) | {""} == set(RATE_UNITS)


@pytest.mark.parametrize("text", ["", "fast", "400Gbit", "-1bps", "1e30Gbps", "nan", "1 2", "gbps"])
def test_bad_rates(text: str) -> None:
    with pytest.raises(ValueError, match="rate"):
        parse_rate_bps(text)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0.2us", 200),
        ("0.7us", 700),
        ("0.0005ms", 500),
        ("1s", 10**9),
        ("2", 2 * 10**9),
        ("0.5ns", 1),
        ("0.4ns", 0),
        ("1500ps", 2),
        ("1000000fs", 1),
        ("1min", 60 * 10**9),
        ("1h", 3600 * 10**9),
        ("1d", 86400 * 10**9),
        ("1y", 365 * 86400 * 10**9),
    ],
)
def test_time_strings(text: str, ns: int) -> None:
    assert parse_time_ns(text) == ns


@pytest.mark.parametrize("text", ["", "soon", "1sec", "-1us", "1e40s", "1e999999999999s"])
def test_bad_times(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        parse_time_ns(text)


@given(st.integers(min_value=1, max_value=10**13))
def test_a_formatted_rate_reads_back(bps: int) -> None:
    assert parse_rate_bps(format_rate(bps)) == bps


@given(st.integers(min_value=0, max_value=10**12))
def test_a_formatted_time_reads_back(ns: int) -> None:
    assert parse_time_ns(format_time(ns)) == ns


def test_formatting_is_the_short_form() -> None:
    assert (format_rate(512_000_000_000), format_time(200), format_time(2000)) == ("512Gbps", "0.2us", "2us")
    assert (format_rate(1500), format_time(30)) == ("1500bps", "30ns")
