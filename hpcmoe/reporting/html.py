"""A report as one self-contained HTML page."""

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from hpcmoe.analysis import Cell, Column, Figure, Notice, Section, Table
from hpcmoe.reporting import text
from hpcmoe.reporting.assets import SCRIPT, STYLE
from hpcmoe.reporting.claims import LINE
from hpcmoe.reporting.document import Document

Pages = Mapping[str, str]
EMPTY: Pages = {}
FIGURES = "figures"
"""Folder of the figures' files, beside the page."""

WRAP_LENGTH = 24
"""Longer text may wrap within its cell; keys and numbers stay on one line."""
LONG_LENGTH = 80
"""Longer text gets a wide cell."""
MARKED_STATES = {
    "failed": "failed",
    "missing": "missing",
    "holds": "holds",
    "holds in direction": "direction",
    "does not hold": "fails",
    "not decided": "open",
}
"""Words of a cell that get a colour of their own, with the end of its class."""


def render(document: Document) -> str:
    """The report as a page; style and script are inlined, nothing is requested."""
    return page(
        document.title,
        _contents(document),
        [
            f"<h1>{escape(document.title)}</h1>",
            _origin(document),
            *(line for notice in document.notices for line in _notice(notice)),
            *_reading(document),
            *(
                line
                for n, section in enumerate(document.sections)
                for line in _section(n, section, document.pages)
            ),
        ],
    )


def page(title: str, navigation: Iterable[str], body: Iterable[str]) -> str:
    """A self-contained page: navigation beside, above on narrow screens, and the body."""
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        '<div class="layout">',
        "<nav>",
        '<button type="button" id="theme">Theme</button>',
        *navigation,
        "</nav>",
        "<main>",
        *body,
        "</main>",
        "</div>",
        f"<script>{SCRIPT}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _contents(document: Document) -> Iterator[str]:
    yield "<details><summary>Contents</summary>"
    for number, section in enumerate(document.sections):
        yield f'<p class="part"><a href="#section-{number}">{escape(section.title)}</a></p><ul>'
        for item in section.items:
            kind = "Figure" if isinstance(item, Figure) else "Table"
            name = f"{kind} {item.number} {item.title}" if item.number else item.title
            yield f'<li><a href="#{item.slug}">{escape(name)}</a></li>'
        yield "</ul>"
    yield "</details>"


def _origin(document: Document) -> str:
    facts = "".join(f"<span>{escape(name)} <b>{escape(value)}</b></span>" for name, value in document.origin)
    return f'<div class="origin">{facts}</div>'


def _notice(notice: Notice) -> Iterator[str]:
    kind = "notice warning" if notice.warning else "notice"
    yield f'<div class="{kind}" role="note"><p>{escape(notice.text)}</p>'
    if notice.details:
        yield "<ul>" + "".join(f"<li>{escape(detail)}</li>" for detail in notice.details) + "</ul>"
    yield "</div>"


def _reading(document: Document) -> Iterator[str]:
    yield '<details class="reading"><summary>How to read this report</summary><dl>'
    for term, meaning in dict(document.reading).items():
        yield f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>"
    yield "</dl></details>"


def _section(number: int, section: Section, pages: Pages) -> Iterator[str]:
    yield f'<section id="section-{number}"><h2>{escape(section.title)}</h2>'
    if section.intro:
        yield f"<p>{escape(section.intro)}</p>"
    for item in section.items:
        yield from figure(item) if isinstance(item, Figure) else table(item, pages)
    yield "</section>"


def figure(item: Figure) -> Iterator[str]:
    """A figure inline, with its caption and links to its files."""
    yield f'<figure id="{item.slug}">'
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(item.heading)}">'
    yield f'<div style="min-width: {item.min_width_rem}rem">{item.svg}</div></div>'
    links = ", ".join(f'<a href="{FIGURES}/{item.slug}.{kind}">{kind.upper()}</a>' for kind in item.files)
    notes = " ".join(map(escape, item.notes))
    yield f"<figcaption><b>{escape(item.heading)}</b> {notes} {links}</figcaption></figure>"


def table(item: Table, pages: Pages = EMPTY) -> Iterator[str]:
    """A table with heading, sample, notes and, for long ones, a filter. ``pages``: first-column text to
    the page it links to."""
    yield f'<h3 id="{item.slug}">{escape(item.heading)}</h3>'
    sample = text.sample_text(item)
    if sample:
        hole = "" if item.present == item.expected else " hole"
        yield f'<p class="sample{hole}">{escape(sample)}</p>'
    if item.sortable:
        yield (
            f'<p><input type="search" id="{item.slug}-filter" placeholder="filter the rows" '
            'aria-label="filter rows"></p>'
        )
    yield (
        f'<div class="scroll{" tall" if item.sortable else ""}" tabindex="0" role="region" '
        f'aria-labelledby="{item.slug}">'
    )
    filtered = f' data-filter="{item.slug}-filter"' if item.sortable else ""
    split, scaled = text.is_split(item), text.has_scaled(item)
    yield f"<table{filtered}><thead>"
    yield from _head(item, split, scaled)
    yield "</thead><tbody>"
    for row in item.rows:
        cells = enumerate(zip(item.columns, row, strict=True))
        shown = (_cells(place, column, cell, split, scaled, pages) for place, (column, cell) in cells)
        yield f"<tr>{''.join(shown)}</tr>"
    yield "</tbody></table></div>"
    for note in (*item.notes, *text.cell_notes(item)):
        yield f'<p class="note">{escape(note)}</p>'


def _head(table: Table, split: bool, scaled: bool) -> Iterator[str]:
    """One heading row, or two where compared columns become several."""
    grouped = split and any(column.compared for column in table.columns)
    width = 4 if scaled else 3
    cells = []
    for column in table.columns:
        name, kind = escape(text.heading(column)), _align(column.quantity.is_number)
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


def _cells(place: int, column: Column, cell: Cell, split: bool, scaled: bool, pages: Pages) -> str:
    words = text.cell_text(cell)
    if column.compared:
        return _split(column, cell, words, scaled) if split else _stacked(column, cell, words)
    content = _breakable(words.ours) + _mark(words)
    if place == 0 and not column.quantity.is_number:
        if words.ours in pages:
            content = f'<a href="{escape(pages[words.ours])}">{content}</a>'
        return f'<th scope="row"{_wrapping(words.ours)}>{content}</th>'
    if column.quantity.is_number:
        return f'<td class="num"{_value(cell.ours)}>{content}</td>'
    if words.ours in MARKED_STATES:
        content = f'<span class="status-{MARKED_STATES[words.ours]}">{content}</span>'
    return f"<td{_wrapping(words.ours)}>{content}</td>"


def _value(value: object) -> str:
    """What a number sorts by."""
    return "" if value is None or isinstance(value, str) else f' data-v="{value}"'


def _breakable(shown: str) -> str:
    """Escaped text that may break after the slashes of a run key."""
    return escape(shown).replace("/", "/<wbr>").replace(escape(LINE), "<br>")


def _wrapping(shown: str) -> str:
    if LINE in shown:
        return ""
    if " " not in shown or len(shown) <= WRAP_LENGTH:
        return ""
    return ' class="wrap long"' if len(shown) > LONG_LENGTH else ' class="wrap"'


def _mark(words: text.CellText) -> str:
    return f'<span class="line mark">{escape(words.mark)}</span>' if words.mark else ""


def _split(column: Column, cell: Cell, words: text.CellText, scaled: bool) -> str:
    """Columns of their own for ours, the scaled estimate, the published value and the difference."""
    kind = _align(column.quantity.is_number)
    parts = [
        f'<td{kind}{_value(cell.ours)}><span class="ours">{escape(words.ours)}</span>{_mark(words)}</td>'
    ]
    if scaled:
        parts.append(
            f'<td{kind}{_value(cell.scaled)}><span class="scaled">{escape(words.scaled)}</span></td>'
        )
    parts.append(
        f'<td{kind}{_value(cell.published)}><span class="published">{escape(words.published)}</span></td>'
    )
    shown = f'<span class="{words.grade}">{escape(words.difference)}</span>'
    parts.append(f'<td class="num"{_value(cell.difference)}>{shown}</td>')
    return "".join(parts)


def _stacked(column: Column, cell: Cell, words: text.CellText) -> str:
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
    value = _value(cell.ours if cell.scaled is None else cell.scaled)
    return f"<td{_align(column.quantity.is_number)}{value}>{''.join(lines)}</td>"
