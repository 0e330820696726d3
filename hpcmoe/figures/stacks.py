"""Bars of a study of the user's own: compute and communication time of every run of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.patches import Patch

from hpcmoe.analysis.own import OwnStudy
from hpcmoe.analysis.table import Figure
from hpcmoe.figures import style

MOST_BARS = 80
"""More runs than this of one model on one topology are not all drawn."""
_NS_PER_MS = 1e6
_BAR_IN, _HEAD_IN = 0.2, 0.75
_IN_PER_CHARACTER = 0.075
_REM_PER_IN = 5


def stack_figures(study: OwnStudy) -> Iterator[Figure]:
    """A figure per model; one per model and topology where there are many runs."""
    model, topology = study.factors[:2]
    number = 0
    for (name,), runs in study.grouped([model]).items():
        groups = [(name, runs)]
        if len(runs) > MOST_BARS:
            by_topology = study.grouped([model, topology])
            groups = [(" on ".join(key), found) for key, found in by_topology.items() if key[0] == name]
        for title, members in groups:
            number += 1
            yield _figure(study, str(number), title, members)


def _figure(study: OwnStudy, number: str, title: str, runs: Sequence[int]) -> Figure:
    shown = sorted(runs, key=study.wall_ns)[:MOST_BARS] if len(runs) > MOST_BARS else list(runs)
    names = [study.name(run, ["model"]) for run in shown]
    left_in = 0.3 + _IN_PER_CHARACTER * max(map(len, names))
    width_in, height_in = left_in + 6.5, _HEAD_IN + _BAR_IN * len(shown)
    with style.canvas(width_in, height_in, constrained=False) as figure:
        axes = figure.subplots()
        figure.subplots_adjust(left_in / width_in, 0.45 / height_in, 0.99, 1 - 0.3 / height_in)
        times = {
            name: study.runs.numbers[f"{name}_ns"][shown] / _NS_PER_MS for name in ("gpu", "comm", "wall")
        }
        places = range(len(shown))
        axes.barh(places, times["gpu"], 0.75, color=style.GPU_COLOR, linewidth=0)
        axes.barh(places, times["comm"], 0.75, left=times["gpu"], color=style.COMM_COLOR, linewidth=0)
        for place, wall, comm in zip(places, times["wall"], times["comm"], strict=True):
            share = f" {comm / wall:.0%}" if wall else ""
            axes.text(wall, place, f" {wall:.3g} ms,{share}", va="center", fontsize=7)
        axes.set_yticks(places, names, fontsize=8)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(0, 1.18 * max(times["wall"].max(), 1e-6))
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("wall time (ms)")
        style.grid(axes, "x")
        handles = [
            Patch(color=color, label=name)
            for name, color in (("GPU", style.GPU_COLOR), ("communication", style.COMM_COLOR))
        ]
        figure.legend(handles=handles, loc="upper right", ncols=2)
        notes, wide = _notes(len(shown), len(runs)), round(_REM_PER_IN * width_in)
        return style.finish(figure, number, f"Time of every run of {title}", notes, min_width_rem=wide)


def _notes(shown: int, runs: int) -> tuple[str, ...]:
    note = f"n = {runs} finished runs. Percent: share of communication."
    if shown < runs:
        note += f" Only the {shown} fastest are drawn; the list of runs has all."
    return (note,)
