"""Cells as words: the one place where numbers get their digits, signs and marks."""

from collections.abc import Iterable
from dataclasses import dataclass

from hpcmoe.analysis.table import Cell, Column, Quantity, Table, Value

MINUS = "\N{MINUS SIGN}"
SPLIT_LIMIT = 2
"""Tables with at most this many compared columns show ours, published and difference in columns
of their own; wider tables stack them within a cell."""

DIFFERENCE_UNITS = {
    "relative": "%",
    "points": "percentage points",
    "absolute": "count",
    "equality": "",
    "none": "",
}


@dataclass(frozen=True)
class CellText:
    """A cell in words; empty strings are not shown.  ``mark`` tells gap, partial or not compared;
    ``grade`` is near, mid or far by the size of the difference."""

    ours: str
    scaled: str
    published: str
    difference: str
    mark: str
    grade: str


def cell_text(cell: Cell) -> CellText:
    return CellText(
        ours="" if cell.ours is None else value_text(cell.quantity, cell.ours),
        scaled=_scaled_text(cell),
        published="" if cell.published is None else published_text(cell.quantity, cell.published),
        difference=difference_text(cell.quantity, cell.difference),
        mark=mark_text(cell),
        grade=grade(cell.quantity, cell.difference),
    )


def _scaled_text(cell: Cell) -> str:
    """The scaled value; a name that scaling does not change is not repeated."""
    if cell.scaled is None or (isinstance(cell.scaled, str) and cell.scaled == cell.ours):
        return ""
    return value_text(cell.quantity, cell.scaled)


def value_text(quantity: Quantity, value: Value) -> str:
    """Our value with the quantity's digits; percent carry their sign, other units are in headings."""
    if isinstance(value, str) or value is None:
        return value or ""
    shown = f"{value * quantity.scale:z,.{quantity.decimals}f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return _signed(shown) + _percent(quantity)


def published_text(quantity: Quantity, value: Value) -> str:
    """The published value with the digits it was published with."""
    if isinstance(value, float) and quantity.scale == 1:
        return _signed(repr(value))
    return value_text(quantity, value)


def difference_text(quantity: Quantity, value: Value) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if quantity.difference == "absolute":
        return _signed(f"{value:+.0f}") if value else "0"
    unit = "%" if quantity.difference == "relative" else "pp"
    return f"{_signed(_plus(value))} {unit}"


def _plus(value: float | int) -> str:
    """One decimal with its sign; what rounds to zero has none."""
    shown = f"{value:+.1f}"
    return "0.0" if float(shown) == 0 else shown


def _percent(quantity: Quantity) -> str:
    return " %" if quantity.unit == "%" else ""


def _signed(shown: str) -> str:
    return shown.replace("-", MINUS)


def mark_text(cell: Cell) -> str:
    """Why a cell is not a plain complete value; empty when it is."""
    if cell.is_gap:
        if cell.present:
            return (
                "not compared"
                if cell.note
                else f"undefined over {cell.present} of {cell.expected} {cell.sample}"
            )
        return f"gap: 0 of {cell.expected} {cell.sample}" if (cell.expected or 0) > 1 else "gap: no run"
    marks = []
    if cell.is_partial:
        marks.append(f"partial, n = {cell.present} of {cell.expected} {cell.sample}")
    if cell.note and cell.scaled is None:
        marks.append("not comparable")
    return "; ".join(marks)


def grade(quantity: Quantity, value: Value) -> str:
    """near within 5 % (2 points, equal), mid within 20 % (10 points), else far."""
    if value is None:
        return ""
    if isinstance(value, str):
        return "near" if value == "same" else "far"
    limits = {"relative": (5, 20), "points": (2, 10), "absolute": (0, 10)}[quantity.difference]
    return "near" if abs(value) <= limits[0] else "mid" if abs(value) <= limits[1] else "far"


def is_split(table: Table) -> bool:
    """Whether the table's compared columns become columns of their own."""
    return sum(column.compared for column in table.columns) <= SPLIT_LIMIT


def has_scaled(table: Table) -> bool:
    return any(cell.scaled is not None for row in table.rows for cell in row)


def heading(column: Column) -> str:
    """Column name with its unit; percent stand in the cells."""
    unit = column.quantity.unit
    return f"{column.name} ({unit})" if unit and unit != "%" else column.name


def sample_text(table: Table) -> str:
    """``n of N runs present`` for tables that rest on a set."""
    if table.expected is None:
        return ""
    state = "" if table.present == table.expected else ("Gap: " if not table.present else "Partial: ")
    return f"{state}{table.present} of {table.expected} runs present."


def cell_notes(table: Table) -> list[str]:
    """Distinct notes of the cells, in order: why something is scaled or not comparable."""
    return list(dict.fromkeys(cell.note for row in table.rows for cell in row if cell.note))


def difference_unit(cells: Iterable[Cell]) -> str:
    """Unit of the differences of a column; every unit that occurs where its cells are mixed."""
    units = dict.fromkeys(
        DIFFERENCE_UNITS[c.quantity.difference] for c in cells if c.quantity.difference != "none"
    )
    return " or ".join(unit for unit in units if unit)
