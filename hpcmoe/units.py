"""Rates and times as upstream's files write them, to and from integer bit/s and ns."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal, DecimalException

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)")


def _rate_units() -> dict[str, int]:
    """Every accepted rate suffix with its bit/s. Prefixes are powers of 1000, the 'i' ones of 1024."""
    units = {"": 1, "bps": 1, "b/s": 1, "Bps": 8, "B/s": 8}
    for power, prefixes in ((1, "kK"), (2, "M"), (3, "G")):
        for prefix in prefixes:
            for unit, bits in (("bps", 1), ("b/s", 1), ("Bps", 8), ("B/s", 8)):
                units[prefix + unit] = 1000**power * bits
        units[prefixes[-1] + "ib/s"] = 1024**power
        units[prefixes[-1] + "iB/s"] = 1024**power * 8
    return units


RATE_UNITS: dict[str, int] = _rate_units()

# Time suffixes in seconds; a number alone is seconds.
TIME_UNITS: dict[str, Decimal] = {
    "": Decimal(1),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
    "ps": Decimal("1e-12"),
    "fs": Decimal("1e-15"),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
    "y": Decimal(86400 * 365),
}


def _split(text: str) -> tuple[str, str] | None:
    match = _NUMBER.fullmatch(text.strip())
    return (match.group(1), match.group(2)) if match else None


def parse_rate_bps(text: str) -> int:
    """Bit/s of a rate string such as '400Gbps'; truncated to an integer. ValueError if it is none."""
    parts = _split(text)
    if parts is None or parts[1] not in RATE_UNITS:
        raise ValueError(f"not a rate: {text!r}")
    number = float(parts[0])
    rate = number * RATE_UNITS[parts[1]]
    if not math.isfinite(rate) or rate >= 2**64:
        raise ValueError(f"rate out of range: {text!r}")
    return int(rate)


def parse_time_ns(text: str) -> int:
    """Nanoseconds of a time string such as '0.2us'; rounded to the nearest. ValueError if it is none."""
    parts = _split(text)
    if parts is None or parts[1] not in TIME_UNITS:
        raise ValueError(f"not a time: {text!r}")
    try:
        ns = (Decimal(parts[0]) * TIME_UNITS[parts[1]] * Decimal(10**9)).quantize(Decimal(1), ROUND_HALF_UP)
    except DecimalException as error:
        raise ValueError(f"time out of range: {text!r}") from error
    if ns >= 2**63:
        raise ValueError(f"time out of range: {text!r}")
    return int(ns)


def format_rate(rate_bps: int) -> str:
    """Shortest exact rate string: 400000000000 -> '400Gbps'."""
    for suffix, factor in (("Gbps", 10**9), ("Mbps", 10**6), ("kbps", 10**3)):
        if rate_bps and rate_bps % factor == 0:
            return f"{rate_bps // factor}{suffix}"
    return f"{rate_bps}bps"


def format_time(time_ns: int) -> str:
    """Shortest exact time string: 200 -> '0.2us', 30 -> '30ns'."""
    if time_ns and time_ns % 100 == 0:
        whole, tenths = divmod(time_ns // 100, 10)
        return f"{whole}.{tenths}us" if tenths else f"{whole}us"
    return f"{time_ns}ns"
