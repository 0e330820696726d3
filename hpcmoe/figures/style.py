"""How every figure looks, and its way from matplotlib to SVG, PNG and PDF."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from hpcmoe.analysis.table import Figure

INK = "#1c2024"
"""Text and axes. In the inline SVG it becomes the page's own text colour, light or dark."""
SOFT = "#8a949e"
GPU_COLOR, COMM_COLOR, GAP_COLOR = "#b84a00", "#56b4e9", "#cc79a7"
MODEL_COLORS = {"flash": "#0072b2", "k3": "#d55e00", "pro": "#009e73", "glm": "#e69f00"}
"""Okabe and Ito's palette: told apart with every common colour blindness, and on both backgrounds."""
MODEL_HATCHES = {"flash": "", "k3": "///", "pro": "...", "glm": "xxx"}
OTHER_COLOR = "#cc79a7"
MAP = "cividis"
PNG_DPI = 144
_PX_PER_PT = 1.4
"""Widest that a figure is shown on a page: text of 9 pt at 12.6 px."""

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "hatch.color": "#ffffff",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "legend.frameon": False,
}


@contextmanager
def canvas(width_in: float, height_in: float, *, constrained: bool = True) -> Iterator[Canvas]:
    """A figure of that size in the house style. Without ``constrained`` its panels are placed by hand, which
    is much faster where there are many."""
    with mpl.rc_context(_RC):
        figure = Canvas(figsize=(width_in, height_in), layout="constrained" if constrained else None)
        FigureCanvasAgg(figure)
        yield figure


def finish(
    figure: Canvas, number: str, title: str, notes: tuple[str, ...] = (), min_width_rem: int = 40
) -> Figure:
    """The drawn figure in all its formats; equal input gives equal bytes."""
    slug = f"figure-{number}"
    if figure.get_layout_engine() is not None:  # solved once, for all formats
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    files = {
        "png": _saved(figure, "png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None}),
        "pdf": _saved(figure, "pdf", facecolor="white", metadata={"CreationDate": None}),
    }
    with mpl.rc_context({"svg.hashsalt": slug}):
        svg = _saved(figure, "svg", transparent=True, metadata={"Date": None}).decode("utf-8")
    return Figure(
        slug, number, title, inline(svg, slug, f"Figure {number}. {title}"), files, notes, min_width_rem
    )


def document(figure: Canvas) -> str:
    """The drawn figure as an SVG document of its own; equal input gives equal bytes."""
    with mpl.rc_context({"svg.hashsalt": "figure"}):
        return _saved(figure, "svg", facecolor="white", metadata={"Date": None}).decode("utf-8")


def _saved(figure: Canvas, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=kind, **options)
    return out.getvalue()


def inline(svg: str, prefix: str, name: str) -> str:
    """An SVG document as an element of a page: no prologue, ids of its own, colours of the page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    head, rest = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None, "an SVG without a size"
    width_px = float(box.group().split()[2]) * _PX_PER_PT
    rest = rest.replace("xlink:href", "href").replace(INK, "currentColor")
    rest = re.sub(r'\bid="', f'id="{prefix}-', rest)
    rest = re.sub(r'href="#', f'href="#{prefix}-', rest)
    rest = re.sub(r"url\(#", f"url(#{prefix}-", rest)
    rest = re.sub(r"\n\s*", "\n", rest)
    size = f'{box.group()} style="max-width: {width_px:.0f}px"'
    return f'<svg {size} role="img" aria-label="{name}">{rest}'.strip()


def grid(axes: Any, axis: str = "y") -> None:
    axes.grid(axis=axis, color=SOFT, linewidth=0.4, alpha=0.5)
