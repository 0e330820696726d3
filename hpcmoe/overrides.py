"""Parameters changed by name, on the command line (``--set name=value``) or by a caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hpcmoe import parameters
from hpcmoe.errors import InputError
from hpcmoe.parameters import Section, Value
from hpcmoe.units import parse_rate_bps, parse_time_ns
from hpcmoe.upstream.config import EcnThreshold

ECN, EXTERNAL_DELAY, ROUTING = "ecn", "external_delay", "routing"
_ECN_FORM = "RATE:KMIN_BYTES:KMAX_BYTES:PMAX[,...] with * for all rates, such as 400Gbps:100000:400000:0.2"
_DELAY_FORM = "a time such as 0.7us"

# What can be set beside the scalar parameters: allowed values and help.
NOT_SCALAR = {
    ECN: (_ECN_FORM, "network: from where on ports mark, by link rate"),
    EXTERNAL_DELAY: (_DELAY_FORM, "network: one-way delay of links between NIC and switch"),
    ROUTING: ("a file", "workload: measured tokens per expert, as CSV or JSON"),
}


class Overrides:
    """Checked names; values are parsed when they are applied.

    Three names are no scalar parameter: ``ecn`` (thresholds by rate), and of runs that a key names
    ``external_delay`` (a time) and ``routing`` (the path of a routing histogram).
    """

    def __init__(self, values: Mapping[str, Any], *, of_key: bool = True) -> None:
        special = (ECN, EXTERNAL_DELAY, ROUTING) if of_key else (ECN,)
        self._values = dict(values)
        for name in self._values:
            if name not in special:
                parameters.find(name, extra=special)

    def apply(self, section: Section, values: Mapping[str, Value | None]) -> dict[str, Value | None]:
        """``values`` with the overrides of the section."""
        result = dict(values)
        for name, value in self._values.items():
            if name in parameters.section_names(section):
                parameter = parameters.find(name)
                result[name] = parameter.parse(value) if isinstance(value, str) else parameter.check(value)
        return result

    def refuse(self, section: Section, reason: str) -> None:
        """InputError if a parameter of the section is given."""
        for name, value in self._values.items():
            if name in parameters.section_names(section):
                raise InputError(f"a {section} parameter: {reason}", field=name, value=value)

    def external_delay_ns(self, default: int) -> int:
        """One-way delay of links between NIC and ToR switch."""
        if EXTERNAL_DELAY not in self._values:
            return default
        value = self._values[EXTERNAL_DELAY]
        try:
            return parse_time_ns(str(value))
        except ValueError as error:
            raise InputError("bad value", field=EXTERNAL_DELAY, value=value, allowed=_DELAY_FORM) from error

    def routing(self) -> str | None:
        """The path of a routing histogram, if there is one."""
        return str(self._values[ROUTING]) if ROUTING in self._values else None

    def ecn(self, default: list[EcnThreshold], used_bps: Iterable[int] = ()) -> list[EcnThreshold]:
        """Thresholds ascending by rate: those of the given rates replaced or added. '*' stands for the rates
        of ``default`` and for those that the topology has, ``used_bps``."""
        known = dict.fromkeys((*(row[0] for row in default), *used_bps))
        rows = {row[0]: row for row in default}
        for entry in str(self._values.get(ECN, "")).split(","):
            if entry:
                rate, kmin, kmax, pmax = _parse_ecn(entry)
                rates = list(known) if rate is None else [rate]
                rows.update({r: (r, kmin, kmax, pmax) for r in rates})
        return [rows[rate] for rate in sorted(rows)]


def _parse_ecn(entry: str) -> tuple[int | None, int, int, float]:
    try:
        rate, kmin, kmax, pmax = entry.split(":")
        row = (None if rate == "*" else parse_rate_bps(rate), int(kmin), int(kmax), float(pmax))
    except ValueError as error:
        raise InputError("bad thresholds", field=ECN, value=entry, allowed=_ECN_FORM) from error
    if not (0 <= row[1] <= row[2] < 2**32 and 0 <= row[3] <= 1):
        raise InputError("thresholds out of order or range", field=ECN, value=entry, allowed=_ECN_FORM)
    return row
