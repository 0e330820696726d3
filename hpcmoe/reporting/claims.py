"""A claim's numbers in words."""

from hpcmoe.analysis import Claim
from hpcmoe.analysis.claims import Entry
from hpcmoe.reporting import text

LINE = ";\n"
"""Between the numbers of a claim; pages break the line here."""


def numbers(claim: Claim) -> str:
    """Every entry of a claim, one a line."""
    return LINE.join(map(_entry, claim.entries)) or "nothing to compute it from"


def _entry(entry: Entry) -> str:
    words = text.cell_text(entry.cell)
    unit = " s" if entry.cell.quantity.unit == "s" else ""
    ours = words.scaled or words.ours
    shown = f"{ours}{unit}{' (scaled, not simulated)' if words.scaled else ''}" if ours else words.mark
    if words.published and words.difference == "same":
        return f"{entry.name}: {shown} (as published)"
    published = f"published {words.published}{unit}" if words.published else ""
    rest = ", ".join(part for part in (published, words.difference, words.mark if ours else "") if part)
    return f"{entry.name}: {shown}" + (f" ({rest})" if rest else "")
