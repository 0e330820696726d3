"""Our value beside the published one, compared only where that is fair."""

from collections.abc import Sequence
from dataclasses import replace

from hpcmoe.analysis.metrics import Measured, Metric
from hpcmoe.analysis.study import Coverage, Study
from hpcmoe.analysis.table import Cell, Quantity, Value, difference


def compare(
    study: Study,
    models: Sequence[str],
    quantity: Quantity,
    metric: Metric,
    published: Value = None,
    *,
    across: bool = False,
) -> Cell:
    """One cell.

    The difference is taken of complete samples only: of our value when the models' runs hold all
    layers, of the scaled value when they can be scaled, and not at all otherwise.  ``across``: the
    metric compares models with each other, which means nothing for cut runs as they are.
    """
    coverage = study.coverage(models)
    measured = metric(study.simulated)
    cell = Cell(
        quantity,
        ours=measured.value,
        published=published,
        present=measured.present,
        expected=measured.expected,
        sample=measured.sample,
    )
    if not measured.present:
        return cell
    if coverage is Coverage.FULL:
        return replace(cell, difference=_difference(quantity, measured, published))
    shown = None if across else measured.value
    cell = replace(cell, ours=shown, note=study.reason(models))
    if coverage is Coverage.NOT_COMPARABLE:
        return cell
    scaled = metric(study.scaled)
    return replace(cell, scaled=scaled.value, difference=_difference(quantity, scaled, published))


def _difference(quantity: Quantity, measured: Measured, published: Value) -> Value:
    return difference(quantity, measured.value, published) if measured.complete else None
