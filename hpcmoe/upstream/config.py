"""The network's config.txt: whitespace-separated ``KEY value...``.

As upstream does, a token that is no known key is skipped alone and a later occurrence overrides an
earlier one, maps accumulate. Unlike upstream, a value that does not parse is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hpcmoe.errors import InputError
from hpcmoe.parameters import CC_MODES, PARAMETERS, Parameter, Value
from hpcmoe.topology_text import read_text

EcnThreshold = tuple[int, int, int, float]  # rate_bps, kmin_bytes, kmax_bytes, pmax

_BY_KEY: dict[str, Parameter] = {
    p.upstream_key: p for p in PARAMETERS.values() if p.section == "network" and p.upstream_key
}
_MAPS = ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP")
_FILES = {
    "TOPOLOGY_FILE": "topology",
    "FCT_OUTPUT_FILE": "fct",
    "PFC_OUTPUT_FILE": "pfc",
    "QLEN_MON_FILE": "qlen",
    "TRACE_FILE": "trace",
    "FLOW_FILE": "flow",
}
# Keys with a value that changes nothing here.
_IGNORED = (
    "USE_DYNAMIC_PFC_THRESHOLD", "TRACE_OUTPUT_FILE", "SIMULATOR_STOP_TIME", "PINT_LOG_BASE",
    "PINT_PROB", "QLEN_MON_END", "DATA_RATE", "LINK_DELAY",
)  # fmt: skip
_KEYS = frozenset([*_BY_KEY, *_MAPS, *_FILES, *_IGNORED, "LINK_DOWN", "ENABLE_TRACE"])
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_PINT = 10
_KB = 1000  # the thresholds' kilobyte


@dataclass
class NetworkConfig:
    """What a config.txt says: our parameters by name (only those given), thresholds and file names."""

    values: dict[str, Value] = field(default_factory=dict)
    ecn: list[EcnThreshold] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=lambda: {"fct": "fct.txt", "pfc": "pfc.txt"})
    warnings: list[str] = field(default_factory=list)


def read_network_config(path: str | Path) -> NetworkConfig:
    """InputError names file, key, value and what is allowed."""
    return _Reader(str(path), read_text(path, "network configuration").split()).read()


class _Reader:
    def __init__(self, file: str, tokens: list[str]) -> None:
        self._file = file
        self._tokens: Iterator[str] = iter(tokens)
        self._config = NetworkConfig()
        self._maps: dict[str, dict[int, float]] = {key: {} for key in _MAPS}
        self._traced = True

    def read(self) -> NetworkConfig:
        for token in self._tokens:
            if token in _BY_KEY:
                self._parameter(token, _BY_KEY[token])
            elif token in _MAPS:
                self._map(token)
            elif token in _FILES:
                self._config.files[_FILES[token]] = self._next(token)
            else:
                self._other(token)
        self._config.ecn = self._thresholds()
        if self._traced and "trace" in self._config.files:
            self._config.warnings.append(f"{self._file}: TRACE_FILE: packet traces (mix.tr) are not written")
        return self._config

    def _other(self, key: str) -> None:
        if key == "LINK_DOWN":
            time = self._number(key, int)
            self._next(key), self._next(key)
            if time > 0:
                raise InputError(
                    "links that go down are not simulated",
                    file=self._file,
                    field=key,
                    value=time,
                    allowed="0 0 0",
                )
        elif key == "ENABLE_TRACE":
            self._traced = self._number(key, int) != 0
        elif key in _IGNORED:
            self._next(key)

    def _next(self, key: str) -> str:
        token = next(self._tokens, None)
        if token is None:
            raise InputError("the file ends before the value", file=self._file, field=key)
        if token in _KEYS:
            raise InputError(
                "a value is missing: the next key follows", file=self._file, field=key, value=token
            )
        return token

    def _number(self, key: str, kind: type[int] | type[float]) -> float:
        token = self._next(key)
        try:
            if not token.isascii() or "_" in token:
                raise ValueError(token)
            return kind(token)
        except ValueError as error:
            noun = "integers" if kind is int else "numbers"
            raise InputError("bad value", file=self._file, field=key, value=token, allowed=noun) from error

    def _parameter(self, key: str, parameter: Parameter) -> None:
        token = self._next(key)
        self._config.values[parameter.name] = self._value(key, token, parameter)

    def _value(self, key: str, token: str, parameter: Parameter) -> Value:
        if key == "CC_MODE":
            return self._cc_mode(token)
        if parameter.kind == "bool":
            return self._flag(key, token, parameter)
        if parameter.unit == "us":
            # Upstream reads a number and drops the fraction.
            return parameter.check(_truncated(token), file=self._file, field=key)
        if parameter.upstream_factor != 1:
            return self._scaled(key, token, parameter)
        return parameter.parse(token, file=self._file, field=key)

    def _scaled(self, key: str, token: str, parameter: Parameter) -> Value:
        value = _integer(token)
        highest = int(parameter.maximum or 0) // parameter.upstream_factor
        if value is None or not 1 <= value <= highest:
            raise InputError(
                "bad value", file=self._file, field=key, value=token, allowed=f"integers from 1 to {highest}"
            )
        return parameter.check(value * parameter.upstream_factor, file=self._file, field=key)

    def _cc_mode(self, token: str) -> int:
        mode = _integer(token)
        if mode is None or mode < 0 or mode == _PINT:
            named = ", ".join(f"{number} ({name})" for name, number in CC_MODES.items())
            text = "HPCC-PINT is not simulated" if mode == _PINT else "bad value"
            raise InputError(
                text, file=self._file, field="CC_MODE", value=token, allowed=f"{named}, any other for none"
            )
        return mode if mode in CC_MODES.values() else CC_MODES["none"]

    def _flag(self, key: str, token: str, parameter: Parameter) -> bool:
        """Upstream's integers: any non-zero is on, but for GLOBAL_T, where only 1 is."""
        value = _integer(token)
        if value is None:
            raise InputError(
                "bad value", file=self._file, field=key, value=token, allowed=parameter.allowed()
            )
        return value == 1 if key == "GLOBAL_T" else value != 0

    def _map(self, key: str) -> None:
        count = int(self._number(key, int))
        if count < 0:
            raise InputError(
                "bad number of entries", file=self._file, field=key, value=count, allowed="integers from 0"
            )
        for _ in range(count):
            rate = int(self._number(key, int))
            value = self._number(key, float)
            if rate <= 0 or not 0 <= value < 2**32 or (key == "PMAX_MAP" and value > 1):
                allowed = "a rate in bit/s and " + ("a probability" if key == "PMAX_MAP" else "kB from 0")
                raise InputError(
                    "bad entry", file=self._file, field=key, value=f"{rate} {value:g}", allowed=allowed
                )
            self._maps[key][rate] = value

    def _thresholds(self) -> list[EcnThreshold]:
        """Rates that have all three values; a port whose rate lacks one is refused later, by name."""
        kmin, kmax, pmax = (self._maps[key] for key in _MAPS)
        rates = sorted(set(kmin) & set(kmax) & set(pmax))
        for rate in rates:
            if kmin[rate] > kmax[rate]:
                raise InputError(
                    f"KMIN is above KMAX at {rate} bit/s",
                    file=self._file,
                    field="KMIN_MAP",
                    value=kmin[rate],
                    allowed=f"up to {kmax[rate]:g}",
                )
        return [(rate, int(kmin[rate] * _KB), int(kmax[rate] * _KB), pmax[rate]) for rate in rates]


def _integer(token: str) -> int | None:
    return int(token) if _INTEGER.fullmatch(token) else None


def _truncated(token: str) -> int | str:
    try:
        return int(float(token))
    except (ValueError, OverflowError):
        return token


def write_network_config(
    path: str | Path, values: Mapping[str, Value], ecn: list[EcnThreshold], files: Mapping[str, str]
) -> None:
    """Upstream's config.txt; parameters that upstream has no key for are left out."""
    lines = [f"{key} {_text(values[p.name], p)}" for key, p in _BY_KEY.items()]
    for key, column in (("KMIN_MAP", 1), ("KMAX_MAP", 2)):
        entries = [f"{row[0]} {row[column] // _KB}" for row in ecn]
        lines.append(" ".join([key, str(len(ecn)), *entries]))
    lines.append(" ".join(["PMAX_MAP", str(len(ecn)), *(f"{row[0]} {row[3]:g}" for row in ecn)]))
    lines += ["USE_DYNAMIC_PFC_THRESHOLD 1", "ENABLE_TRACE 0", "LINK_DOWN 0 0 0", "TRACE_OUTPUT_FILE mix.tr"]
    lines += [f"{key} {files[name]}" for key, name in _FILES.items() if name in files]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(value: Value, parameter: Parameter) -> str:
    if parameter.unit == "bit/s":
        return f"{value}bps"
    if parameter.kind == "float":
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    number = int(value) // parameter.upstream_factor
    # Upstream's integer is signed 64-bit: "off" is a start that no run gets to.
    return str(min(number, 10**18)) if parameter.name == "qlen_monitor_start_ns" else str(number)
