"""Two runs side by side: what differs between their inputs, and which part of the time explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpcmoe.design import FACTORS, RunKey
from hpcmoe.inspect_run.critical import PARTS
from hpcmoe.inspect_run.inspection import Inspection

_NOT_INPUTS = ("key", "trace_of_rank", "node_names", "node_count", "switch_ids", "server_of_host",
               "fabric_ids", "links")  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """An input that differs: its name and both values in words."""

    name: str
    first: str
    second: str


@dataclass(frozen=True)
class Comparison:
    """``parts``: second minus first per part of the critical path of a layer, in ns; they add up to the
    difference of the layers' times exactly."""

    first: Inspection
    second: Inspection
    differences: tuple[Difference, ...]
    parts: dict[str, int]

    @property
    def layer_gap_ns(self) -> int:
        return self.second.path.total_ns - self.first.path.total_ns

    @property
    def explaining_part(self) -> str:
        """The part that differs most in the direction of the whole difference."""
        sign = -1 if self.layer_gap_ns < 0 else 1
        return max(PARTS, key=lambda part: sign * self.parts[part])


def compare_runs(first: Inspection, second: Inspection) -> Comparison:
    """Compares the layers that the two inspections look at."""
    one, two = first.path.parts, second.path.parts
    return Comparison(
        first, second, tuple(_differences(first, second)), {part: two[part] - one[part] for part in PARTS}
    )


def _differences(first: Inspection, second: Inspection) -> Iterator[Difference]:
    keys = RunKey.parse(first.key), RunKey.parse(second.key)
    for factor in FACTORS:
        levels = [str(getattr(key, factor)) for key in keys]
        if levels[0] != levels[1]:
            yield Difference(factor, *levels)
    yield from _config_differences("", first.record.config, second.record.config)
    yield from _link_differences(first, second)


def _config_differences(prefix: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted(one.keys() | two.keys()):
        if not prefix and name in _NOT_INPUTS:
            continue
        first, second = one.get(name), two.get(name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from _config_differences(f"{prefix}{name}.", first, second)
        elif first != second:
            yield Difference(prefix + name, _words(first), _words(second))


def _words(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _link_differences(first: Inspection, second: Inspection) -> Iterator[Difference]:
    """Number of nodes and, per kind of link, how many there are with which rate and delay."""
    tables = [_link_table(inspection) for inspection in (first, second)]
    for kind in sorted(tables[0].keys() | tables[1].keys()):
        rows = [table.get(kind, "none") for table in tables]
        if rows[0] != rows[1]:
            yield Difference(f"{kind}s", *rows)


def _link_table(inspection: Inspection) -> dict[str, str]:
    counts: dict[str, dict[tuple[int, int], int]] = {}
    for index, link in enumerate(inspection.record.topology.links):
        kinds = counts.setdefault(inspection.traffic.kind(2 * index), {})
        kinds[link.rate_bps, link.delay_ns] = kinds.get((link.rate_bps, link.delay_ns), 0) + 1
    return {
        kind: ", ".join(
            f"{count} x {rate / 1e9:g} Gbps {delay / 1e3:g} us"
            for (rate, delay), count in sorted(rows.items())
        )
        for kind, rows in counts.items()
    }
