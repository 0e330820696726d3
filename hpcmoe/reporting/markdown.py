"""A report as Markdown."""

from collections.abc import Iterator, Sequence

from hpcmoe.analysis import Cell, Column, Figure, Notice, Section, Table
from hpcmoe.reporting import text
from hpcmoe.reporting.document import Document


def render(document: Document) -> str:
    """The whole report, tables in the layout :func:`text.is_split` decides."""
    lines = [f"# {_escape(document.title)}", ""]
    lines += [f"* {name}: {_escape(value)}" for name, value in document.origin]
    for notice in document.notices:
        lines += ["", *_notice(notice)]
    lines += [
        "",
        "## How to read",
        "",
        *(f"* **{term}** {meaning}" for term, meaning in dict(document.reading).items()),
    ]
    for section in document.sections:
        lines += ["", *_section(section)]
    return "\n".join(lines) + "\n"


def _notice(notice: Notice) -> Iterator[str]:
    yield (
        f"> **{'Warning. ' if notice.warning else ''}**{_escape(notice.text)}"
        if notice.warning
        else (f"> {_escape(notice.text)}")
    )
    for detail in notice.details:
        yield f"> * {_escape(detail)}"


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    if section.intro:
        yield ""
        yield section.intro
    for item in section.items:
        yield ""
        yield from _figure(item) if isinstance(item, Figure) else _table(item)


def _figure(item: Figure) -> Iterator[str]:
    yield f"![{_escape(item.heading)}](figures/{item.slug}.png)"
    yield ""
    yield f"**{_escape(item.heading)}.** " + " ".join(map(_escape, item.notes))


def _table(table: Table) -> Iterator[str]:
    yield f"### {_escape(table.heading)}"
    yield ""
    sample = text.sample_text(table)
    if sample:
        yield sample
        yield ""
    split, scaled = text.is_split(table), text.has_scaled(table)
    heads = [head for column in table.columns for head in _heads(column, split, scaled)]
    yield _row([name for name, _ in heads])
    yield _row(["---:" if number else "---" for _, number in heads])
    for row in table.rows:
        yield _row(
            [
                part
                for column, cell in zip(table.columns, row, strict=True)
                for part in _parts(column, cell, split, scaled)
            ]
        )
    for note in (*table.notes, *text.cell_notes(table)):
        yield ""
        yield _escape(note)


def _heads(column: Column, split: bool, scaled: bool) -> list[tuple[str, bool]]:
    """Heading and whether it is right-aligned, of each column that this one becomes."""
    name, number = text.heading(column), column.quantity.is_number
    if not column.compared or not split:
        return [(name, number)]
    middle = [(f"{name}, scaled, not simulated", number)] if scaled else []
    return [(f"{name}, ours", number), *middle, (f"{name}, published", number), ("difference", True)]


def _parts(column: Column, cell: Cell, split: bool, scaled: bool) -> list[str]:
    words = text.cell_text(cell)
    ours = " ".join(part for part in (_escape(words.ours), f"**{words.mark}**" if words.mark else "") if part)
    if not column.compared:
        return [ours]
    if split:
        return [ours, *([words.scaled] if scaled else []), _escape(words.published), words.difference]
    return [_stacked(ours, words)]


def _stacked(ours: str, words: text.CellText) -> str:
    estimate = f"; scaled, not simulated: {_escape(words.scaled)}" if words.scaled else ""
    if not words.published:
        return ours + estimate
    compared = f", {words.difference}" if words.difference else ""
    return f"{ours}{estimate} (published {_escape(words.published)}{compared})"


def _row(parts: Sequence[str]) -> str:
    return "| " + " | ".join(parts) + " |"


def _escape(value: str) -> str:
    """Text that cannot end a table cell, open a tag or start a new line."""
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return " ".join(value.split())
