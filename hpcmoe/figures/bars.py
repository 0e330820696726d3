"""Figures 3-1 and 4-1 to 4-4: bars."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Patch

from hpcmoe import design
from hpcmoe.analysis.sets import FACTORS, LEVELS
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import Figure
from hpcmoe.analysis.tables_design import ORDER_3
from hpcmoe.analysis.tables_model import Published
from hpcmoe.figures import style

MODES = ("ib_cc0", "ib_hpcc", "roce_dcqcn", "roce_hpcc")
"""Panels of a row, in published order."""
_NS_PER_S = 1e9


def architecture_figure(published: Published) -> Figure:
    """Figure 3-1: five parameters of the models, each over its largest."""
    fields = (
        ("total_params_b", "parameters\n(10⁹)"),
        ("h", "h"),
        ("layers", "layers"),
        ("routed_experts", "routed\nexperts"),
        ("top_k", "experts\nper token"),
    )
    with style.canvas(8, 3.6) as figure:
        axes = figure.subplots()
        width = 0.8 / len(ORDER_3)
        for place, model in enumerate(ORDER_3):
            values = np.array([published["models"][model][key] for key, _ in fields], dtype=float)
            largest = np.array([max(published["models"][m][key] for m in ORDER_3) for key, _ in fields])
            at = np.arange(len(fields)) + (place - 1.5) * width
            bars = axes.bar(
                at,
                values / largest,
                width * 0.94,
                color=style.MODEL_COLORS[model],
                hatch=style.MODEL_HATCHES[model],
                label=published["models"][model]["name"],
                linewidth=0,
            )
            axes.bar_label(bars, [f"{value:g}" for value in values], fontsize=7, padding=1)
        axes.set_xticks(range(len(fields)), [name for _, name in fields])
        axes.set_ylabel("over the largest of the four (1)")
        axes.set_ylim(0, 1.12)
        style.grid(axes)
        figure.legend(loc="outside upper center", ncols=4, fontsize=8)
        return style.finish(
            figure,
            "3-1",
            "Architecture parameters of the four models",
            ("n = 4 models. Numbers are the parameters.",),
        )


def model_figure(study: Study, model: str, number: str) -> Figure:
    """Figures 4-1 to 4-4: the 192 runs of one model, GPU under communication time."""
    with style.canvas(13, 6.4, constrained=False) as figure:
        panels = figure.subplots(2, 4, sharey=True, sharex=True)
        figure.subplots_adjust(0.05, 0.1, 0.995, 0.91, wspace=0.05, hspace=0.16)
        gaps = 0
        for row, collective in enumerate(design.COLLECTIVES):
            for column, network in enumerate(MODES):
                gaps += _panel(panels[row][column], study, model, collective, network)
        for row in panels:
            row[0].set_ylabel("wall time (s)")
        for axes in panels[1]:
            _name_bars(axes)
        _key(figure, panels[0][0], gaps)
        notes = (
            "Bars of a group are topologies 1 to 6, from left to right. n: finished runs. One scale.",
            *_scope_notes(study, model, gaps),
        )  # fmt: skip
        title = f"Wall time of the 192 configurations of {model}"
        return style.finish(figure, number, title, notes, min_width_rem=64)


def _panel(axes: Any, study: Study, model: str, collective: str, network: str) -> int:
    """One collective pair and network mode: 24 bars. Returns how many runs are missing."""
    gpu, comm = (_times(study, model, field, collective, network) for field in ("gpu_ns", "comm_ns"))
    strategies, topologies = gpu.shape
    at = np.arange(strategies)[:, None] + (np.arange(topologies) - 2.5) * 0.14
    there = np.isfinite(gpu)
    axes.bar(at[there], gpu[there], 0.125, color=style.GPU_COLOR, linewidth=0)
    axes.bar(at[there], comm[there], 0.125, bottom=gpu[there], color=style.COMM_COLOR, linewidth=0)
    axes.plot(at[~there], np.zeros((~there).sum()), "x", color=style.GAP_COLOR, markersize=4, clip_on=False)
    axes.set_xticks(range(strategies))
    axes.tick_params(axis="x", length=0, pad=11)
    axes.set_title(f"{collective}, {network}, n = {there.sum()} of {there.size}")
    style.grid(axes)
    return int((~there).sum())


def _name_bars(axes: Any) -> None:
    """Strategies, and above them the topology of every bar."""
    axes.set_xticks(
        range(len(design.STRATEGIES)), [n.replace("ep", "\nep").upper() for n in design.STRATEGIES]
    )
    for place in range(len(design.STRATEGIES)):
        for number in range(6):
            axes.text(
                place + (number - 2.5) * 0.14, -0.015, str(number + 1), transform=axes.get_xaxis_transform(),
                ha="center", va="top", fontsize=6.5,
            )  # fmt: skip


def _times(study: Study, model: str, field: str, collective: str, network: str) -> np.ndarray:
    """Seconds, shape (strategies, topologies)."""
    times = study.simulated.of(model, field)
    for factor, level in (("network", network), ("collective", collective)):
        times = np.take(times, LEVELS[factor].index(level), FACTORS.index(factor))
    return times.T / _NS_PER_S


def _key(figure: Any, axes: Any, gaps: int) -> None:
    """The legend, by hand so that it is the same whatever runs are there."""
    handles: list[Any] = [
        Patch(color=color, label=name)
        for name, color in (("communication", style.COMM_COLOR), ("GPU", style.GPU_COLOR))
    ]
    if gaps:
        handles += axes.plot([], [], "x", color=style.GAP_COLOR, label="no finished run")
    figure.legend(handles=handles, loc="upper center", ncols=3)


def _scope_notes(study: Study, model: str, gaps: int) -> tuple[str, ...]:
    notes = []
    if gaps:
        notes.append(f"Gap: {gaps} of 192 runs have no result and are marked with a cross.")
    if study.scopes[model].reason:
        notes.append(f"As simulated, not scaled. {study.scopes[model].reason}.")
    return tuple(notes)
