"""Tables 4-10 to 4-17: the effect of each factor, over all models."""

from collections.abc import Callable, Iterator

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.compare import compare
from hpcmoe.analysis.metrics import Metric
from hpcmoe.analysis.sets import Mask
from hpcmoe.analysis.study import Coverage, Study
from hpcmoe.analysis.table import RATIO, RELATIVE, SECONDS, TEXT, Cell, Column, Table, Value, label, numbered
from hpcmoe.analysis.tables_model import (
    OUTSIDE,
    STATISTICS,
    Published,
    parse_configuration,
    sample_of,
    statistic,
)

MODELS = tuple(design.MODELS)
RING, DBT = "ring_direct", "dbt_direct"


def factor_tables(study: Study, published: Published) -> Iterator[Table]:
    """Tables 4-10 to 4-17."""
    yield statistics_table(
        study,
        "4-10",
        "Overall statistics, feedback modes (S_feedback)",
        sets.s_feedback(),
        published["overall_feedback_144"],
    )
    yield topology_table(study, published)
    yield strategy_table(study, published)
    yield normalised_table(study, published)
    yield network_table(study, published)
    yield collective_table(study, published)
    ring = sets.s_feedback() & sets.level_mask("collective", RING)
    yield statistics_table(
        study, "4-16", "Ring subset of S_feedback", ring, published["ring_subset_feedback"]
    )
    yield sensitivity_table(study, published)


RowMaker = Callable[[str, bool], list[Cell]]


def _per_model(study: Study, make: RowMaker, order: tuple[str, ...] = MODELS) -> list[list[Cell]]:
    """One row per model: the study's, then others in the file, marked and without published values.
    ``make(model, known)`` returns the cells after the name."""
    rows = [[label(model), *make(model, True)] for model in order]
    return rows + [[label(OUTSIDE.format(model=m)), *make(m, False)] for m in study.other_models]


def _table(
    study: Study,
    number: str,
    title: str,
    columns: tuple[Column, ...],
    rows: list[list[Cell]],
    mask: Mask,
    notes: tuple[str, ...] = (),
) -> Table:
    present, expected = sample_of(study, MODELS, mask)
    return numbered(number, title, (Column("model"), *columns), rows, notes, present, expected)


def ordered_models(study: Study, mask: Mask, default: tuple[str, ...]) -> tuple[str, ...]:
    """The study's models by mean wall time where all are complete and comparable, else as published."""
    coverage = study.coverage(MODELS)
    if coverage is Coverage.NOT_COMPARABLE:
        return default
    cube = study.simulated if coverage is Coverage.FULL else study.scaled
    measured = metrics.model_order(MODELS, mask)(cube)
    return tuple(str(measured.value).split()) if measured.complete else default


def statistics_table(study: Study, number: str, title: str, mask: Mask, values: Published) -> Table:
    """Tables 4-10 and 4-16: statistics of a set, models ordered by mean wall time."""
    kept = [entry for entry in STATISTICS if entry[3] in values["flash"]]
    published_order = tuple(model for model in values if model in MODELS)

    def make(model: str, known: bool) -> list[Cell]:
        theirs = values[model] if known else {}
        return [
            compare(study, [model], quantity, statistic(key, model, mask), theirs.get(key))
            for _, _, quantity, key in kept
        ]

    order = ordered_models(study, mask, published_order)
    columns = tuple(Column(name, quantity, compared=True) for name, _, quantity, _ in kept)
    order_note = (
        f"Published order by mean wall time: {' < '.join(published_order)}; rows are in "
        + ("our" if order_is_ours(study, mask) else "the published")
        + " order."
    )
    return _table(study, number, title, columns, _per_model(study, make, order), mask, (order_note,))


def order_is_ours(study: Study, mask: Mask) -> bool:
    """Whether :func:`ordered_models` can order by our own times."""
    return bool(ordered_models(study, mask, ()))


def topology_table(study: Study, published: Published) -> Table:
    """Table 4-11: topologies from the lowest mean wall time to the highest."""
    mask, ranking = sets.s_feedback(), published["topology_ranking_feedback"]
    places = range(len(design.TOPOLOGIES))

    def make(model: str, known: bool) -> list[Cell]:
        return [
            compare(
                study,
                [model],
                TEXT,
                metrics.level_order(model, mask, "topology", place),
                f"t{ranking[model][place]}" if known else None,
            )
            for place in places
        ]

    columns = tuple(
        Column(name, TEXT, compared=True) for name in ("best", "second", "third", "fourth", "fifth", "worst")
    )
    return _table(
        study,
        "4-11",
        "Topology ranking by mean wall time (S_feedback)",
        columns,
        _per_model(study, make),
        mask,
    )


def _by_strategy(
    study: Study, values: Published, cell: Callable[[str, str, Value], Cell]
) -> list[list[Cell]]:
    strategies = tuple(values["strategies"])

    def make(model: str, known: bool) -> list[Cell]:
        theirs = values[model] if known else [None] * len(strategies)
        return [cell(model, strategy, value) for strategy, value in zip(strategies, theirs, strict=True)]

    return _per_model(study, make)


def strategy_table(study: Study, published: Published) -> Table:
    """Table 4-12: mean wall time by strategy."""
    mask, values = sets.s_feedback(), published["tp_ep_wall_feedback"]

    def cell(model: str, strategy: str, value: Value) -> Cell:
        return compare(
            study, [model], SECONDS, metrics.mean(model, mask & sets.level_mask("strategy", strategy)), value
        )

    columns = tuple(Column(strategy, SECONDS, compared=True) for strategy in values["strategies"])
    return _table(
        study,
        "4-12",
        "Mean wall time by strategy (S_feedback)",
        columns,
        _by_strategy(study, values, cell),
        mask,
    )


def normalised_table(study: Study, published: Published) -> Table:
    """Table 4-13: mean wall time by strategy over that of the first strategy."""
    mask = sets.s_feedback()
    values = {"strategies": published["tp_ep_wall_feedback"]["strategies"], **published["tp_ep_normalised"]}
    base = values["strategies"][0]

    def cell(model: str, strategy: str, value: Value) -> Cell:
        return compare(study, [model], RATIO, metrics.ratio(model, mask, "strategy", base, strategy), value)

    columns = tuple(Column(strategy, RATIO, compared=True) for strategy in values["strategies"])
    return _table(
        study,
        "4-13",
        f"Mean wall time by strategy, divided by {base} (S_feedback)",
        columns,
        _by_strategy(study, values, cell),
        mask,
    )


def network_table(study: Study, published: Published) -> Table:
    """Table 4-14: means per network mode, topologies with an external network."""
    mask, values = sets.s_network(), published["network_means_no_t6"]
    statements = published["network_statements"]

    def mode_mean(model: str, mode: str) -> Metric:
        return metrics.mean(model, mask & sets.level_mask("network", mode))

    def make(model: str, known: bool) -> list[Cell]:
        means = dict(zip(values["modes"], values[model], strict=True)) if known else {}
        against_ib = statements["ib_vs_roce_hpcc"].get(model) if known else None
        against_dcqcn = statements["dcqcn_over_hpcc"].get(model) if known else None
        overhead = metrics.overhead
        return [
            compare(study, [model], SECONDS, mode_mean(model, "ib_hpcc"), means.get("ib_hpcc")),
            compare(study, [model], SECONDS, mode_mean(model, "roce_hpcc"), means.get("roce_hpcc")),
            compare(
                study, [model], RELATIVE, overhead(model, mask, "network", "roce_hpcc", "ib_hpcc"), against_ib
            ),
            compare(study, [model], SECONDS, mode_mean(model, "roce_dcqcn"), means.get("roce_dcqcn")),
            compare(
                study,
                [model],
                RELATIVE,
                overhead(model, mask, "network", "roce_hpcc", "roce_dcqcn"),
                against_dcqcn,
            ),
            compare(study, [model], SECONDS, mode_mean(model, "ib_cc0"), means.get("ib_cc0")),
        ]

    columns = (
        Column("ib_hpcc", SECONDS, True),
        Column("roce_hpcc", SECONDS, True),
        Column("ib_hpcc against roce_hpcc", RELATIVE, True),
        Column("roce_dcqcn", SECONDS, True),
        Column("roce_dcqcn over roce_hpcc", RELATIVE, True),
        Column("ib_cc0", SECONDS, True),
    )
    note = (
        "ib_cc0 is not in the published table; its values are from sections 4.1.4, 4.3.4, 4.4.4; k3 has none."
    )
    return _table(
        study,
        "4-14",
        "Mean wall time by network mode (S_network)",
        columns,
        _per_model(study, make),
        mask,
        (note,),
    )


def collective_table(study: Study, published: Published) -> Table:
    """Table 4-15: means per collective pair.  The published difference and ratio follow from the
    published means."""
    mask, values = sets.s_feedback(), published["collective_means_feedback"]

    def mean(model: str, collective: str) -> Metric:
        return metrics.mean(model, mask & sets.level_mask("collective", collective))

    def make(model: str, known: bool) -> list[Cell]:
        theirs = _published_pair(values[model][RING], values[model][DBT]) if known else {}
        seconds = metrics.gap_seconds(model, mask, "collective", RING, DBT)
        relative = metrics.overhead(model, mask, "collective", RING, DBT)
        return [
            compare(study, [model], SECONDS, mean(model, RING), theirs.get(RING)),
            compare(study, [model], SECONDS, mean(model, DBT), theirs.get(DBT)),
            compare(study, [model], SECONDS, seconds, theirs.get("difference")),
            compare(study, [model], RELATIVE, relative, theirs.get("relative")),
        ]

    columns = (
        Column(RING, SECONDS, True),
        Column(DBT, SECONDS, True),
        Column("difference", SECONDS, True),
        Column("relative", RELATIVE, True),
    )
    return _table(
        study,
        "4-15",
        "Mean wall time by collective pair (S_feedback)",
        columns,
        _per_model(study, make),
        mask,
    )


def _published_pair(ring: float, dbt: float) -> dict[str, float]:
    """The two published means with their difference, to their own digits, and relative difference."""
    return {RING: ring, DBT: dbt, "difference": round(dbt - ring, 6), "relative": (dbt - ring) / ring}


def sensitivity_table(study: Study, published: Published) -> Table:
    """Table 4-17: shortest and longest run of each model and their ratio."""
    mask, values = sets.s_full(), published["sensitivity"]
    ends = [
        (_joined(parse_configuration(values["min_combo"])), False),
        (_joined(parse_configuration(values["max_combo"])), True),
    ]

    def make(model: str, known: bool) -> list[Cell]:
        overall = published["overall_192"][model] if known else {}
        shortest, longest = (
            compare(study, [model], TEXT, _configuration(model, mask, far_end), levels if known else None)
            for levels, far_end in ends
        )
        ratio = compare(
            study, [model], RATIO, metrics.sensitivity(model, mask), values[model] if known else None
        )
        return [
            shortest,
            compare(study, [model], SECONDS, metrics.minimum(model, mask), overall.get("wall_min")),
            longest,
            compare(study, [model], SECONDS, metrics.maximum(model, mask), overall.get("wall_max")),
            ratio,
        ]

    columns = (
        Column("shortest run", TEXT, True),
        Column("shortest", SECONDS, True),
        Column("longest run", TEXT, True),
        Column("longest", SECONDS, True),
        Column("longest / shortest", RATIO, True),
    )
    return _table(
        study, "4-17", "Sensitivity to configuration (S_full)", columns, _per_model(study, make), mask
    )


def _joined(levels: Published) -> str:
    return "/".join(str(levels[factor]) for factor in sets.FACTORS)


def _configuration(model: str, mask: Mask, longest: bool) -> Metric:
    def measure(cube: metrics.Cube) -> metrics.Measured:
        sample = metrics.count(model, mask)(cube)
        found = metrics.extreme(cube, model, mask, longest)
        value = _joined({**found.levels, "network": found.network}) if found else None
        return metrics.Measured(value, sample.present, sample.expected)

    return measure
