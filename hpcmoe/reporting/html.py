"""A report as one self-contained HTML page."""

from collections.abc import Iterator
from html import escape

from hpcmoe.analysis import Cell, Column, Notice, Section, Table
from hpcmoe.reporting import text
from hpcmoe.reporting.assets import SCRIPT, STYLE
from hpcmoe.reporting.document import READING, Document

WRAP_LENGTH = 24
"""Longer text may wrap within its cell; keys and numbers stay on one line."""
LONG_LENGTH = 80
"""Longer text gets a wide cell."""
MARKED_STATES = ("failed", "missing")


def render(document: Document) -> str:
    """The page; style and script are inlined, nothing is requested."""
    title = escape(document.title)
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        '<div class="layout">',
        *_contents(document),
        "<main>",
        f"<h1>{title}</h1>",
        _origin(document),
        *(line for notice in document.notices for line in _notice(notice)),
        *_reading(),
        *(line for number, section in enumerate(document.sections) for line in _section(number, section)),
        "</main>",
        "</div>",
        f"<script>{SCRIPT}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _contents(document: Document) -> Iterator[str]:
    yield "<nav><details><summary>Contents</summary>"
    for number, section in enumerate(document.sections):
        yield f'<p class="part"><a href="#section-{number}">{escape(section.title)}</a></p><ul>'
        for table in section.items:
            name = f"{table.number} {table.title}" if table.number else table.title
            yield f'<li><a href="#{table.slug}">{escape(name)}</a></li>'
        yield "</ul>"
    yield "</details></nav>"


def _origin(document: Document) -> str:
    facts = "".join(f"<span>{escape(name)} <b>{escape(value)}</b></span>" for name, value in document.origin)
    return f'<div class="origin">{facts}</div>'


def _notice(notice: Notice) -> Iterator[str]:
    kind = "notice warning" if notice.warning else "notice"
    yield f'<div class="{kind}" role="note"><p>{escape(notice.text)}</p>'
    if notice.details:
        yield "<ul>" + "".join(f"<li>{escape(detail)}</li>" for detail in notice.details) + "</ul>"
    yield "</div>"


def _reading() -> Iterator[str]:
    yield '<details class="reading"><summary>How to read this report</summary><dl>'
    for term, meaning in READING:
        yield f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>"
    yield "</dl></details>"


def _section(number: int, section: Section) -> Iterator[str]:
    yield f'<section id="section-{number}"><h2>{escape(section.title)}</h2>'
    if section.intro:
        yield f"<p>{escape(section.intro)}</p>"
    for table in section.items:
        yield from _table(table)
    yield "</section>"


def _table(table: Table) -> Iterator[str]:
    yield f'<h3 id="{table.slug}">{escape(table.heading)}</h3>'
    sample = text.sample_text(table)
    if sample:
        hole = "" if table.present == table.expected else " hole"
        yield f'<p class="sample{hole}">{escape(sample)}</p>'
    if table.sortable:
        yield (
            f'<p><input type="search" id="{table.slug}-filter" placeholder="filter, e.g. flash/t6" '
            'aria-label="filter rows"></p>'
        )
    yield (
        f'<div class="scroll{" tall" if table.sortable else ""}" tabindex="0" role="region" '
        f'aria-labelledby="{table.slug}">'
    )
    sortable = f' data-sortable="{table.slug}-filter"' if table.sortable else ""
    split, scaled = text.is_split(table), text.has_scaled(table)
    yield f"<table{sortable}><thead>"
    yield from _head(table, split, scaled)
    yield "</thead><tbody>"
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        yield (
            "<tr>"
            + "".join(
                _cells(table, place, column, cell, split, scaled)
                for place, (column, cell) in enumerate(cells)
            )
            + "</tr>"
        )
    yield "</tbody></table></div>"
    for note in (*table.notes, *text.cell_notes(table)):
        yield f'<p class="note">{escape(note)}</p>'


def _head(table: Table, split: bool, scaled: bool) -> Iterator[str]:
    """One heading row, or two where compared columns become several."""
    grouped = split and any(column.compared for column in table.columns)
    width = 4 if scaled else 3
    cells = []
    for column in table.columns:
        name, kind = escape(text.heading(column)), _align(column.quantity.is_number)
        if table.sortable:
            name = f'<button type="button">{name}</button>'
        if grouped and column.compared:
            cells.append(f'<th scope="colgroup" colspan="{width}" class="group">{name}</th>')
        else:
            cells.append(f'<th scope="col"{" rowspan=2" if grouped else ""}{kind}>{name}</th>')
    yield "<tr>" + "".join(cells) + "</tr>"
    if grouped:
        yield (
            "<tr>"
            + "".join(_subheads(column, scaled) for column in table.columns if column.compared)
            + "</tr>"
        )


def _subheads(column: Column, scaled: bool) -> str:
    kind = _align(column.quantity.is_number)
    names = ["ours", *(["scaled, not simulated"] if scaled else []), "published"]
    heads = "".join(f'<th scope="col"{kind}>{name}</th>' for name in names)
    return f'{heads}<th scope="col" class="num">difference</th>'


def _align(number: bool) -> str:
    return ' class="num"' if number else ""


def _cells(table: Table, place: int, column: Column, cell: Cell, split: bool, scaled: bool) -> str:
    words = text.cell_text(cell)
    if column.compared:
        return _split(column, words, scaled) if split else _stacked(column, words)
    content = _breakable(words.ours) + _mark(words)
    if place == 0:
        return f'<th scope="row"{_wrapping(words.ours)}>{content}</th>'
    if column.quantity.is_number:
        raw = (
            f' data-v="{"" if isinstance(cell.ours, str) or cell.ours is None else cell.ours}"'
            if table.sortable
            else ""
        )
        return f'<td class="num"{raw}>{content}</td>'
    if words.ours in MARKED_STATES:
        content = f'<span class="status-{words.ours}">{content}</span>'
    return f"<td{_wrapping(words.ours)}>{content}</td>"


def _breakable(shown: str) -> str:
    """Escaped text that may break after the slashes of a run key."""
    return escape(shown).replace("/", "/<wbr>")


def _wrapping(shown: str) -> str:
    if " " not in shown or len(shown) <= WRAP_LENGTH:
        return ""
    return ' class="wrap long"' if len(shown) > LONG_LENGTH else ' class="wrap"'


def _mark(words: text.CellText) -> str:
    return f'<span class="line mark">{escape(words.mark)}</span>' if words.mark else ""


def _split(column: Column, words: text.CellText, scaled: bool) -> str:
    """Columns of their own for ours, the scaled estimate, the published value and the difference."""
    kind = _align(column.quantity.is_number)
    parts = [f'<td{kind}><span class="ours">{escape(words.ours)}</span>{_mark(words)}</td>']
    if scaled:
        parts.append(f'<td{kind}><span class="scaled">{escape(words.scaled)}</span></td>')
    parts.append(f'<td{kind}><span class="published">{escape(words.published)}</span></td>')
    parts.append(f'<td class="num"><span class="{words.grade}">{escape(words.difference)}</span></td>')
    return "".join(parts)


def _stacked(column: Column, words: text.CellText) -> str:
    """Ours above the scaled estimate, the published value and the difference."""
    lines = []
    if words.ours:
        lines.append(f'<span class="line ours">{escape(words.ours)}</span>')
    if words.mark:
        lines.append(f'<span class="line mark">{escape(words.mark)}</span>')
    if words.scaled:
        lines.append(
            f'<span class="line scaled"><span class="tag small">scaled</span> {escape(words.scaled)}</span>'
        )
    if words.published:
        lines.append(f'<span class="line published small">publ. {escape(words.published)}</span>')
    if words.difference:
        lines.append(f'<span class="line small {words.grade}">{escape(words.difference)}</span>')
    return f"<td{_align(column.quantity.is_number)}>{''.join(lines)}</td>"
