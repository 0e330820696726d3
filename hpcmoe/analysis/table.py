"""Tables as data: what a report shows, before any decision on how it looks.

A :class:`Table` has columns, rows of :class:`Cell` and notes.  A cell holds our value, the value
scaled from a cut run, the published value, their difference and the sample it rests on; renderers
only lay these out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Value = float | int | str | None
DifferenceRule = Literal["relative", "points", "absolute", "equality", "none"]


@dataclass(frozen=True)
class Quantity:
    """How a kind of value is written and how two of them are compared.

    ``scale`` turns the stored value into the shown one (a fraction 0.956 is shown as 95.6 %).
    ``difference``: ``relative`` percent of the published value; ``points`` percentage points, for
    values that are relative differences themselves; ``absolute`` for counts, where the published
    value may be 0; ``equality`` for text.
    """

    name: str
    unit: str
    scale: float
    decimals: int
    difference: DifferenceRule

    @property
    def is_number(self) -> bool:
        return self.difference != "equality" and self.name != "label"


LABEL = Quantity("label", "", 1, 0, "none")
TEXT = Quantity("text", "", 1, 0, "equality")
SECONDS = Quantity("seconds", "s", 1, 6, "relative")
RATIO = Quantity("ratio", "", 1, 3, "relative")
FRACTION = Quantity("fraction", "%", 100, 1, "relative")
RELATIVE = Quantity("relative", "%", 100, 1, "points")
COUNT = Quantity("count", "", 1, 0, "absolute")
INTEGER = Quantity("integer", "", 1, 0, "relative")
NUMBER = Quantity("number", "", 1, 2, "relative")


@dataclass(frozen=True)
class Cell:
    """One entry.

    ``scaled`` is the value computed from times scaled to the full model ("not simulated"); where
    it is set, ``difference`` compares it, not ``ours``, with ``published``.  ``present`` of
    ``expected`` is the sample (``sample`` says of what); a value over fewer than all is partial and
    carries no difference.
    """

    quantity: Quantity
    ours: Value = None
    scaled: Value = None
    published: Value = None
    difference: Value = None
    present: int | None = None
    expected: int | None = None
    sample: str = "runs"
    note: str = ""

    @property
    def is_gap(self) -> bool:
        """A place where a value belongs and none could be computed."""
        return self.ours is None and self.scaled is None and self.quantity is not LABEL

    @property
    def is_partial(self) -> bool:
        return not self.is_gap and self.present is not None and self.present != self.expected


@dataclass(frozen=True)
class Column:
    """``compared`` columns expand to ours, published and difference."""

    name: str
    quantity: Quantity = LABEL
    compared: bool = False


@dataclass(frozen=True)
class Table:
    """``slug`` is unique in a report and names files and anchors; ``number`` is the study's own
    number (``4-1``) or empty for tables the study does not have."""

    slug: str
    number: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    present: int | None = None
    expected: int | None = None
    sortable: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.slug}: a row has {len(row)} cells, not {len(self.columns)}")

    @property
    def heading(self) -> str:
        return f"Table {self.number}. {self.title}" if self.number else self.title


@dataclass(frozen=True)
class Figure:
    """A drawn figure: ``svg`` stands inline in a page and takes its text colour from it; ``files`` are
    the same picture by file suffix (``png``, ``pdf``)."""

    slug: str
    number: str
    title: str
    svg: str
    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    min_width_rem: int = 40
    """Narrower than this its text would be too small; a page scrolls it instead."""

    @property
    def heading(self) -> str:
        return f"Figure {self.number}. {self.title}"


@dataclass(frozen=True)
class Section:
    """A titled run of tables and figures."""

    title: str
    items: tuple[Table | Figure, ...]
    intro: str = ""


@dataclass(frozen=True)
class Notice:
    """A statement on the whole report. ``warning`` when it restricts what may be compared."""

    text: str
    warning: bool = False
    details: tuple[str, ...] = field(default=())


def label(text: object) -> Cell:
    """A cell that only names its row."""
    return Cell(LABEL, ours=str(text))


def plain(quantity: Quantity, value: Value) -> Cell:
    """A cell with a value that has no published counterpart."""
    return Cell(quantity, ours=value)


def difference(quantity: Quantity, ours: Value, published: Value) -> Value:
    """Ours against published by the quantity's rule; None where either is missing or the rule
    has no answer (relative to zero).  Relative differences and points are in percent."""
    if ours is None or published is None or quantity.difference == "none":
        return None
    if isinstance(ours, str) or isinstance(published, str):
        return "same" if ours == published else "differs"
    if quantity.difference == "relative":
        return 100.0 * (ours - published) / published if published else None
    return quantity.scale * (ours - published)


def numbered(
    number: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
    present: int | None = None,
    expected: int | None = None,
) -> Table:
    """A table of the study: slug from its number, sample as given."""
    return Table(
        slug=f"table-{number}",
        number=number,
        title=title,
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
        notes=tuple(notes),
        present=present,
        expected=expected,
    )
