"""A table as CSV: full digits, one column each for ours, scaled, published, difference and sample."""

import csv
import io

from hpcmoe.analysis import Cell, Table
from hpcmoe.reporting import text


def render(table: Table) -> str:
    """The table with a heading row; fractions are fractions, not percent; the last column holds marks
    and notes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [*(head for place in range(len(table.columns)) for head in _heads(table, place)), "remarks"]
    )
    for row in table.rows:
        values = [
            value
            for column, cell in zip(table.columns, row, strict=True)
            for value in (_compared(cell) if column.compared else [_plain(cell.ours)])
        ]
        writer.writerow([*values, _remarks(row)])
    return out.getvalue()


def _heads(table: Table, place: int) -> list[str]:
    column = table.columns[place]
    unit = f" [{column.quantity.unit}]" if column.quantity.unit not in ("", "%") else ""
    if not column.compared:
        return [f"{column.name}{unit}"]
    change = text.difference_unit(row[place] for row in table.rows)
    return [
        f"{column.name}{unit}",
        f"{column.name} scaled, not simulated{unit}",
        f"{column.name} published{unit}",
        f"{column.name} difference" + (f" [{change}]" if change else ""),
        f"{column.name} n",
        f"{column.name} of",
    ]


def _compared(cell: Cell) -> list[str]:
    values = (cell.ours, cell.scaled, cell.published, cell.difference, cell.present, cell.expected)
    return [_plain(value) for value in values]


def _plain(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _remarks(row: tuple[Cell, ...]) -> str:
    found = [remark for cell in row for remark in (text.mark_text(cell), cell.note) if remark]
    return "; ".join(dict.fromkeys(found))
