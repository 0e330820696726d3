"""The claims of the study, each computed by one small function, with a verdict.

A claim is a list of :class:`Entry`: a number or name of ours beside the published one, and whether the
claim's own statement is true of it. The verdict follows from the entries alone:

* **holds**: the statement is true of every entry, and every entry agrees with the published value:
  numbers within 10 % (relative differences within 5 percentage points, counts within 5 % of the keys),
  names equal;
* **holds in direction**: the statement is true of every entry (of more than half of them where the
  claim names configurations or orders), and some entry agrees less well;
* **does not hold**: otherwise;
* **not decided**: a run that the claim needs is missing, or cut runs cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hpcmoe.analysis.compare import compare
from hpcmoe.analysis.metrics import Metric
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import RATIO, Cell, Column, Quantity, Table, Value, label
from hpcmoe.analysis.tables_model import Published

HOLDS, DIRECTION, FAILS, OPEN = "holds", "holds in direction", "does not hold", "not decided"
VERDICTS = (HOLDS, DIRECTION, FAILS, OPEN)
RELATIVE_LIMIT, POINT_LIMIT, COUNT_LIMIT = 10.0, 5.0, 0.05

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Entry:
    """One number of a claim: ``cell`` as in a table, ``true`` whether the statement is true of our
    value (None: no comparable value), ``close`` whether it agrees with the published one."""

    name: str
    cell: Cell
    true: bool | None
    close: bool | None


@dataclass(frozen=True)
class Claim:
    """A published claim with what this file says about it."""

    id: str
    section: str
    statement: str
    set_name: str
    formula: str
    entries: tuple[Entry, ...]
    majority: bool = False
    remark: str = ""

    @property
    def verdict(self) -> str:
        if not self.entries or any(entry.true is None for entry in self.entries):
            return OPEN
        true = sum(bool(entry.true) for entry in self.entries)
        everywhere = true == len(self.entries)
        if everywhere and all(entry.close is not False for entry in self.entries):
            return HOLDS
        enough = 2 * true > len(self.entries) if self.majority else everywhere
        return DIRECTION if enough else FAILS


class Judge:
    """Makes entries from metrics on one study."""

    def __init__(self, study: Study, published: Published) -> None:
        self.study = study
        self.published = published

    def entry(
        self,
        name: str,
        models: Sequence[str],
        quantity: Quantity,
        metric: Metric,
        published: Value,
        true: Test,
        *,
        across: bool = False,
    ) -> Entry:
        """``true`` is asked of our value: of full runs as simulated, of cut ones as scaled."""
        cell = compare(self.study, models, quantity, metric, published, across=across)
        value = comparable_value(cell)
        if value is None:
            return Entry(name, cell, None, None)
        return Entry(name, cell, true(value), is_close(cell, value))

    def named(
        self, name: str, models: Sequence[str], quantity: Quantity, metric: Metric, published: Value
    ) -> Entry:
        """An entry whose statement is the published name itself."""
        return self.entry(name, models, quantity, metric, published, lambda value: value == published)


def comparable_value(cell: Cell) -> Value:
    """Our value where it may be compared: complete, and of full or scaled runs."""
    if cell.is_gap or cell.is_partial or (cell.note and cell.scaled is None):
        return None
    return cell.scaled if cell.scaled is not None else cell.ours


def is_close(cell: Cell, value: Value) -> bool | None:
    """Whether the value agrees with the published one; None where none is published."""
    published, rule = cell.published, cell.quantity.difference
    if published is None or value is None:
        return None
    if isinstance(value, str) or isinstance(published, str):
        return value == published
    gap = abs(value - published)
    if rule == "points":
        return cell.quantity.scale * gap <= POINT_LIMIT
    if rule == "absolute":
        return gap <= COUNT_LIMIT * (cell.expected or 1)
    return gap <= RELATIVE_LIMIT / 100 * abs(published) if published else gap == 0


NOTE = (
    "holds: the statement is true of every number, and every number agrees with the published one: within "
    "10 %, relative differences within 5 percentage points, counts within 5 % of the keys, names equal. "
    "holds in direction: the statement is true throughout (in more than half of the entries where it names "
    "configurations or orders), the numbers agree less well. not decided: a run is missing or cannot be "
    "compared."
)


def claims_table(claims: Sequence[Claim], numbers: Callable[[Claim], str]) -> Table:
    """One row per claim; ``numbers`` writes its entries, one a line."""
    counts = ", ".join(f"{sum(c.verdict == verdict for c in claims)} {verdict}" for verdict in VERDICTS)
    columns = tuple(
        map(
            Column,
            (
                "claim",
                "statement",
                "verdict",
                "numbers, ours (published, difference)",
                "set",
                "computed as",
                "section",
            ),
        )
    )
    rows = tuple(
        tuple(map(label, (c.id, c.statement, c.verdict, numbers(c), c.set_name, c.formula, c.section)))
        for c in claims
    )
    notes = (f"{len(claims)} claims: {counts}.", NOTE)
    return Table("claims", "", "Claims of the study", columns, rows, notes, sortable=True)


def numbers_table(claims: Sequence[Claim]) -> Table:
    """One row per entry of every claim."""
    columns = (
        Column("claim"),
        Column("entry"),
        Column("value", RATIO, True),
        Column("statement true"),
        Column("agrees"),
    )
    words = {True: "yes", False: "no", None: ""}
    rows = tuple(
        (label(claim.id), label(entry.name), entry.cell, label(words[entry.true]), label(words[entry.close]))
        for claim in claims
        for entry in claim.entries
    )
    note = "Fractions and relative differences in percent, times in seconds, counts of keys and ratios as is."
    return Table("claim-numbers", "", "Numbers behind the claims", columns, rows, (note,), sortable=True)
