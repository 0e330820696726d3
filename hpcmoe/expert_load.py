"""How unevenly tokens choose experts, and what that makes of an all-to-all.

Every MoE layer has a popularity: one count per expert, in the same proportion wherever a token comes
from. It follows Zipf's law with an exponent, or is a routing histogram that was measured. EP rank r holds the
experts r E / EP to (r + 1) E / EP (rounded down) in the order of the list. What a rank sends to rank r is
its all-to-all volume times the popularity of the experts there; the parts add up to the volume.

A histogram file is CSV or JSON (by its extension) with whole numbers from 0: one row of as many counts as the
model has experts for all layers, or one such row per MoE layer. CSV may also have one count per line, and
comment lines that begin with #. JSON holds a list, or a list of lists.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcmoe.errors import InputError
from hpcmoe.model import Model

_ZIPF_SCALE = 10**9  # popularity in whole numbers, so that every machine divides alike
_MOST = 2**53


@dataclass(frozen=True)
class ExpertLoad:
    """``popularity`` has one row of counts per MoE layer, or one row for all of them."""

    popularity: tuple[tuple[int, ...], ...]

    def of_layer(self, moe_layer: int) -> tuple[int, ...]:
        """Counts by expert; ``moe_layer`` counts the layers with experts from 0."""
        return self.popularity[moe_layer if len(self.popularity) > 1 else 0]


def zipf(model: Model, exponent: float, seed: int) -> ExpertLoad:
    """The i-th most popular expert has weight i^-exponent. Seed 0 puts them in that order, the most popular
    on the first EP rank; any other draws an order for each MoE layer."""
    weights = [max(1, round(_ZIPF_SCALE * i**-exponent)) for i in range(1, model.routed_experts + 1)]
    if not seed:
        return ExpertLoad((tuple(weights),))
    draw = random.Random(seed)
    return ExpertLoad(tuple(tuple(draw.sample(weights, len(weights))) for _ in range(model.moe_layers)))


def placed(popularity: Sequence[int], ep: int) -> list[Sequence[int]]:
    """The counts of the experts on each EP rank."""
    experts = len(popularity)
    return [popularity[rank * experts // ep : (rank + 1) * experts // ep] for rank in range(ep)]


def loads(popularity: Sequence[int], ep: int) -> list[int]:
    """The sum of the counts on each EP rank."""
    return [sum(counts) for counts in placed(popularity, ep)]


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """``total`` in whole parts in proportion to the weights; the largest remainders round up, the first of
    equal ones first."""
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts


def read_histogram(path: str, model: Model) -> ExpertLoad:
    """A routing histogram; InputError names file, row and value."""
    rows = _json_rows(path) if path.lower().endswith(".json") else _csv_rows(path)
    experts = model.routed_experts
    if len(rows) == experts and all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]
    if len(rows) not in (1, model.moe_layers):
        allowed = f"1 row, or {model.moe_layers}: one per MoE layer of {model.name}"
        raise InputError("bad number of rows", file=path, value=len(rows), allowed=allowed)
    return ExpertLoad(tuple(_checked(row, number, path, model) for number, row in enumerate(rows, 1)))


def _checked(row: Sequence[Any], number: int, path: str, model: Model) -> tuple[int, ...]:
    if len(row) != model.routed_experts:
        raise InputError(
            "bad number of counts",
            file=path,
            field=f"row {number}",
            value=len(row),
            allowed=f"{model.routed_experts}, one per expert of {model.name}",
        )
    for expert, count in enumerate(row):
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
            field, allowed = f"row {number}, expert {expert}", "integers from 0 to 2^53"
            raise InputError("bad count", file=path, field=field, value=count, allowed=allowed)
    if not any(row):
        raise InputError("no expert gets a token", file=path, field=f"row {number}", value="all 0")
    return tuple(row)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the routing histogram: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise InputError("cannot read the routing histogram: not text", file=path) from error


def _csv_rows(path: str) -> list[list[int]]:
    lines = [
        (number, line.strip())
        for number, line in enumerate(_text(path).splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise InputError("the routing histogram has no row", file=path)
    return [[_count(text, number, path) for text in line.split(",")] for number, line in lines]


def _count(text: str, line: int, path: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(_MOST))):
        allowed = "integers from 0 to 2^53, separated by commas"
        raise InputError("bad count", file=path, field=f"line {line}", value=digits, allowed=allowed)
    return int(digits)


def _json_rows(path: str) -> list[Any]:
    try:
        data = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=path) from error
    if not isinstance(data, list) or not data:
        raise InputError("the routing histogram is a list of counts, or a list of such lists", file=path)
    rows = data if all(isinstance(row, list) for row in data) else [data]
    return rows
