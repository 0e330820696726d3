"""Tables 4-1 to 4-9: each model on its own, and the architectures."""

from collections.abc import Iterator, Mapping
from typing import Any

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.compare import compare
from hpcmoe.analysis.facts import ModelFacts
from hpcmoe.analysis.metrics import Metric
from hpcmoe.analysis.sets import Mask
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import (
    FRACTION,
    INTEGER,
    RATIO,
    SECONDS,
    TEXT,
    Cell,
    Column,
    Quantity,
    Table,
    Value,
    difference,
    label,
    numbered,
    plain,
)

Published = Mapping[str, Any]
OUTSIDE = "{model} (not in the study)"

MODEL_TABLES = {"flash": ("4-1", "4-2"), "k3": ("4-3", "4-4"), "glm": ("4-5", "4-6"), "pro": ("4-7", "4-8")}

STATISTICS = (
    ("mean wall time", "s", SECONDS, "wall_avg"),
    ("mean GPU time", "s", SECONDS, "gpu_avg"),
    ("mean communication time", "s", SECONDS, "comm_avg"),
    ("communication fraction", "%", FRACTION, "comm_frac"),
    ("shortest wall time", "s", SECONDS, "wall_min"),
    ("longest wall time", "s", SECONDS, "wall_max"),
)
"""Name, unit, quantity and published name of the statistics of a set."""


def statistic(name: str, model: str, mask: Mask) -> Metric:
    """The metric behind one entry of :data:`STATISTICS`, by its published name."""
    return {
        "wall_avg": lambda: metrics.mean(model, mask),
        "gpu_avg": lambda: metrics.mean(model, mask, "gpu_ns"),
        "comm_avg": lambda: metrics.mean(model, mask, "comm_ns"),
        "comm_frac": lambda: metrics.comm_fraction(model, mask),
        "wall_min": lambda: metrics.minimum(model, mask),
        "wall_max": lambda: metrics.maximum(model, mask),
    }[name]()


def model_tables(study: Study, published: Published) -> Iterator[Table]:
    """Tables 4-1 to 4-8."""
    for model in design.MODELS:
        overall, fastest = MODEL_TABLES[model]
        yield overall_table(study, published, model, overall)
        yield fastest_table(study, published, model, fastest)


def sample_of(study: Study, models: tuple[str, ...], mask: Mask) -> tuple[int, int]:
    """Finished and expected runs of the models in the set."""
    counts = [metrics.count(model, mask)(study.simulated) for model in models]
    return sum(c.present for c in counts), sum(c.expected for c in counts)


def count_cell(study: Study, model: str, mask: Mask, published: Value = None) -> Cell:
    """Finished runs of the set: a fact of the file, the same for cut and full runs."""
    measured = metrics.count(model, mask)(study.simulated)
    change = difference(INTEGER, measured.present, published)
    return Cell(INTEGER, ours=measured.present, published=published, difference=change)


def overall_table(study: Study, published: Published, model: str, number: str) -> Table:
    """Statistics of one model over S_full, one per row."""
    mask, values = sets.s_full(), published["overall_192"][model]
    rows = [(label("runs"), count_cell(study, model, mask, values["n"]))]
    rows += [
        (
            label(f"{name} ({unit})"),
            compare(study, [model], quantity, statistic(key, model, mask), values[key]),
        )
        for name, unit, quantity, key in STATISTICS
    ]
    columns = (Column("statistic"), Column("value", RATIO, compared=True))
    present, expected = sample_of(study, (model,), mask)
    return numbered(
        number, f"Overall statistics of {model} (S_full)", columns, rows, present=present, expected=expected
    )


def fastest_table(study: Study, published: Published, model: str, number: str) -> Table:
    """The fastest run of all, and the fastest that uses an external network."""
    everywhere, external = sets.s_full(), sets.s_network()
    second = "external network"
    point = next(p for p in published["points"] if p["source"] == f"Table {number}")
    if point["network"] != "ib_cc0":
        external, second = external & sets.s_roce(), "external network, RoCE only"
    overall = parse_configuration(published["sensitivity"]["min_combo"])
    overall["wall"] = published["overall_192"][model]["wall_min"]
    rows = [
        _configuration_row(study, model, "all runs", everywhere, overall),
        _configuration_row(study, model, second, external, point_levels(point)),
    ]
    columns = (
        Column("minimum over"),
        *(Column(factor, TEXT, compared=True) for factor in sets.FACTORS),
        Column("wall", SECONDS, compared=True),
    )
    present, expected = sample_of(study, (model,), everywhere)
    return numbered(
        number, f"Fastest configurations of {model}", columns, rows, present=present, expected=expected
    )


def _configuration_row(
    study: Study, model: str, name: str, mask: Mask, published: Mapping[str, Any]
) -> list[Cell]:
    levels = [
        compare(study, [model], TEXT, metrics.extreme_level(model, mask, factor), published[factor])
        for factor in sets.FACTORS
    ]
    return [
        label(name),
        *levels,
        compare(study, [model], SECONDS, metrics.minimum(model, mask), published["wall"]),
    ]


def parse_configuration(text: str) -> dict[str, Any]:
    """Levels in a published configuration, ``topology 6 + TP2EP16 + ring_direct (all four modes
    tied)`` or with a network as fourth part."""
    parts = [part.strip() for part in text.partition("(")[0].split("+")]
    network = parts[3] if len(parts) > 3 else metrics.ALL_MODES
    return {
        "topology": f"t{parts[0].split()[-1]}",
        "strategy": parts[1].lower(),
        "collective": parts[2],
        "network": network,
    }


def point_levels(point: Mapping[str, Any]) -> dict[str, Any]:
    """Levels and wall time (seconds) of one published point."""
    return {
        "topology": f"t{point['topology']}",
        "strategy": f"tp{point['tp']}ep{point['ep']}",
        "collective": point["collective"],
        "network": point["network"],
        "wall": point["wall"],
    }


ARCHITECTURE: tuple[tuple[str, Quantity, str, str], ...] = (
    ("h", INTEGER, "hidden", "h"),
    ("layers", INTEGER, "layers", "layers"),
    ("MoE layers", INTEGER, "moe_layers", "moe_layers"),
    ("experts", INTEGER, "routed_experts", "routed_experts"),
    ("top-k", INTEGER, "top_k", "top_k"),
    ("MoE hidden", INTEGER, "moe_intermediate", "moe_intermediate"),
    ("TP proxy", INTEGER, "tp_proxy", "tp_proxy"),
    ("EP proxy", INTEGER, "ep_proxy", "ep_proxy"),
)
"""Column, quantity, field of :class:`ModelFacts`, published name."""


ARCHITECTURE_NOTE = (
    "TP proxy = h x layers; EP proxy = h x top-k x MoE layers. h is the width that is communicated."
)


def architecture_table(facts: Mapping[str, ModelFacts], published: Published) -> Table:
    """Table 4-9, from the model catalog; needs no runs.  The catalog holds no parameter counts."""
    compared = (Column(name, quantity, compared=True) for name, quantity, *_ in ARCHITECTURE)
    columns = (Column("model"), Column("published parameters (10^9)", INTEGER), *compared)
    rows = [_architecture_row(model, facts.get(model), published["models"][model]) for model in design.MODELS]
    rows += [
        [label(OUTSIDE.format(model=model)), *_own_row(facts[model])]
        for model in facts
        if model not in design.MODELS
    ]
    return numbered("4-9", "Architectures and communication proxies", columns, rows, (ARCHITECTURE_NOTE,))


def _own_row(facts: ModelFacts) -> list[Cell]:
    """A model that the published study lacks: its facts alone."""
    return [label(""), *(plain(quantity, getattr(facts, name)) for _, quantity, name, _ in ARCHITECTURE)]


def _architecture_row(model: str, facts: ModelFacts | None, published: Mapping[str, Any]) -> list[Cell]:
    row = [label(model), plain(INTEGER, published["total_params_b"])]
    for _, quantity, name, key in ARCHITECTURE:
        ours, theirs = getattr(facts, name, None), published.get(key)
        row.append(Cell(quantity, ours=ours, published=theirs, difference=difference(quantity, ours, theirs)))
    return row
