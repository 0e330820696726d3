"""All figures of a report."""

from __future__ import annotations

from collections.abc import Iterator

from hpcmoe import design
from hpcmoe.analysis.own import OwnStudy
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import Figure
from hpcmoe.analysis.tables_model import Published
from hpcmoe.analysis.tables_own import BARS
from hpcmoe.figures import bars, ratios, stacks, topologies

MODEL_FIGURES = {"flash": "4-1", "k3": "4-2", "glm": "4-3", "pro": "4-4"}


def draw_figures(study: Study, published: Published) -> Iterator[tuple[str, Figure]]:
    """Figures with the title of the section that shows them."""
    yield "Design of the study", bars.architecture_figure(published)
    for name in design.TOPOLOGIES:
        yield "Design of the study", topologies.topology_figure(name)
    for model, number in MODEL_FIGURES.items():
        yield "Each model", bars.model_figure(study, model, number)
    for draw in (ratios.surface_figure, ratios.collective_figure, ratios.control_figure):
        yield "Effect of each factor", draw(study)


def draw_own_figures(study: OwnStudy) -> Iterator[tuple[str, Figure]]:
    """Figures of a study of the user's own, alike."""
    for figure in stacks.stack_figures(study):
        yield BARS, figure
