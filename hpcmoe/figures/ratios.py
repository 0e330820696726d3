"""Figures 4-5 to 4-7: conditions against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm, Normalize

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.metrics import Measured
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import Figure
from hpcmoe.analysis.tables_factors import DBT, MODELS, RING
from hpcmoe.figures import style

EXTERNAL = ("t1", "t2", "t3", "t4", "t5")


def surface_figure(study: Study) -> Figure:
    """Figure 4-5: topology by strategy over t6 at TP2EP16, RoCE HPCC with ring."""
    chosen = sets.level_mask("network", "roce_hpcc") & sets.level_mask("collective", RING)
    tables = {model: _surface(study, model, chosen) for model in MODELS}
    everything = np.concatenate([t.ravel() for t in tables.values()])
    norm = _norm(everything, LogNorm)
    with style.canvas(11, 3.9) as figure:
        panels = figure.subplots(1, len(MODELS), sharey=True)
        for axes, (model, values) in zip(panels, tables.items(), strict=True):
            _heat(
                axes,
                values,
                norm,
                design.TOPOLOGIES,
                [s.upper().replace("EP", "\nEP") for s in design.STRATEGIES],
            )
            axes.set_title(f"{model}, n = {np.isfinite(values).sum()} of {values.size}")
        panels[0].set_ylabel("topology")
        _bar(figure, panels, norm, "wall time over t6/TP2EP16 (1)")
        notes = ("Each cell is one run over the model's run at t6/TP2EP16. A cross: no finished run.",)
        return style.finish(
            figure, "4-5", "Topology and strategy, RoCE HPCC with ring, relative to t6/TP2EP16", notes, 56
        )


def _surface(study: Study, model: str, chosen: sets.Mask) -> np.ndarray:
    """Shape (topologies, strategies); NaN where a run or the reference is missing."""
    shape = (len(design.TOPOLOGIES), len(design.STRATEGIES))
    times = study.simulated.of(model)[chosen].reshape(shape)
    return times / times[design.TOPOLOGIES.index("t6"), design.STRATEGIES.index("tp2ep16")]


def collective_figure(study: Study) -> Figure:
    """Figure 4-6: DBT over ring per strategy, the two RoCE modes."""
    with style.canvas(8, 3.7) as figure:
        axes = figure.subplots()
        width, counts = 0.8 / len(MODELS), []
        for place, model in enumerate(MODELS):
            found = [_ratio(study, model, s) for s in design.STRATEGIES]
            counts += found
            values = np.array([np.nan if m.value is None else float(m.value) for m in found])
            at = np.arange(len(values)) + (place - 1.5) * width
            bars = axes.bar(
                at, values, width * 0.94, color=style.MODEL_COLORS[model], hatch=style.MODEL_HATCHES[model],
                label=model, linewidth=0,
            )  # fmt: skip
            labels = [f"{v:.2f}" if np.isfinite(v) else "" for v in values]
            axes.bar_label(bars, labels, fontsize=7, padding=1)
            axes.plot(
                at[np.isnan(values)],
                np.zeros(np.isnan(values).sum()),
                "x",
                color=style.GAP_COLOR,
                clip_on=False,
            )
        axes.axhline(1, color=style.INK, linewidth=0.8)
        axes.set_xticks(range(len(design.STRATEGIES)), [s.upper() for s in design.STRATEGIES])
        axes.set_ylabel("mean wall time, DBT over ring (1)")
        style.grid(axes)
        figure.legend(loc="outside upper center", ncols=4)
        return style.finish(
            figure, "4-6", "DBT over ring by strategy (S_RoCE)", (_sample_note(counts, "Each bar"),)
        )


def _ratio(study: Study, model: str, strategy: str) -> Measured:
    mask = sets.s_roce() & sets.level_mask("strategy", strategy)
    return metrics.ratio(model, mask, "collective", RING, DBT)(study.simulated)


def control_figure(study: Study) -> Figure:
    """Figure 4-7: DCQCN over HPCC per topology, the two RoCE modes."""
    found = [[_control(study, model, t) for t in EXTERNAL] for model in MODELS]
    values = np.array([[np.nan if m.value is None else float(m.value) for m in row] for row in found])
    norm = _norm(values, Normalize)
    with style.canvas(7, 3.3) as figure:
        axes = figure.subplots()
        _heat(axes, values, norm, MODELS, EXTERNAL)
        axes.set_xlabel("topology")
        _bar(figure, [axes], norm, "mean wall time,\nDCQCN over HPCC (1)")
        notes = (
            _sample_note([m for row in found for m in row], "Each cell"),
            "Cells with a cross: no matched runs.",
        )
        return style.finish(figure, "4-7", "RoCE DCQCN over RoCE HPCC by topology", notes)


def _control(study: Study, model: str, topology: str) -> Measured:
    mask = sets.s_network() & sets.level_mask("topology", topology)
    return metrics.ratio(model, mask, "network", "roce_hpcc", "roce_dcqcn")(study.simulated)


def _sample_note(found: Sequence[Measured], what: str) -> str:
    held = sorted({m.present for m in found})
    shown = f"{held[0]}" if len(held) == 1 else f"{held[0]} to {held[-1]}"
    state = "" if all(m.complete for m in found) else " Partial."
    return f"{what} is a ratio of means over n = {shown} of {found[0].expected} matched pairs of runs.{state}"


# --- heat maps -----------------------------------------------------------------------------------


def _norm(values: np.ndarray, kind: Any) -> Any:
    held = values[np.isfinite(values)]
    low, high = (held.min(), held.max()) if held.size else (1.0, 2.0)
    return kind(low, max(high, low * 1.01))  # equal values are no colour scale


def _heat(axes: Any, values: np.ndarray, norm: Any, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Coloured cells with their numbers; a cross where there is none."""
    colors = mpl.colormaps[style.MAP]
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), columns, fontsize=8)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            axes.plot([column], [row], "x", color=style.GAP_COLOR, markersize=7)
            continue
        face = colors(norm(value))
        axes.add_patch(
            mpl.patches.Rectangle((column - 0.49, row - 0.49), 0.98, 0.98, facecolor=face, linewidth=0)
        )
        dark = 0.3 * face[0] + 0.59 * face[1] + 0.11 * face[2] < 0.5
        axes.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=8,
            color="#ffffff" if dark else "#000000",
        )


def _bar(figure: Any, panels: Any, norm: Any, name: str) -> None:
    bar = figure.colorbar(mpl.cm.ScalarMappable(norm, style.MAP), ax=panels, label=name, fraction=0.05)
    bar.outline.set_visible(False)
    if isinstance(norm, LogNorm):
        low, high = float(norm.vmin or 0), float(norm.vmax or 0)
        ticks = [t for t in (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30) if low <= t <= high]
        bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
        bar.ax.minorticks_off()
