"""Tables 4-18 to 4-20: models within matched keys, and the effects that hold across models."""

from collections.abc import Callable, Iterator

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.compare import compare
from hpcmoe.analysis.metrics import Measured, Metric
from hpcmoe.analysis.sets import Mask
from hpcmoe.analysis.study import Cube, Study
from hpcmoe.analysis.table import (
    COUNT,
    RATIO,
    RELATIVE,
    TEXT,
    Cell,
    Column,
    Quantity,
    Table,
    Value,
    label,
    numbered,
)
from hpcmoe.analysis.tables_factors import DBT, MODELS, RING
from hpcmoe.analysis.tables_model import Published, sample_of


def matched_tables(study: Study, published: Published) -> Iterator[Table]:
    """Tables 4-18 to 4-20."""
    yield rank_table(study, published)
    yield pairwise_table(study, published)
    yield effects_table(study, published)


def rank_table(study: Study, published: Published) -> Table:
    """Table 4-18: how often each model is first to fourth among the four at one key."""
    mask, values = sets.s_full(), published["rank_distribution_192"]
    rows = []
    for model in (name for name in values if name in MODELS):
        cells = [
            compare(
                study,
                MODELS,
                COUNT,
                metrics.times_ranked(model, MODELS, mask, rank),
                values[model][rank - 1],
                across=True,
            )
            for rank in range(1, len(MODELS) + 1)
        ]
        mean = compare(
            study, MODELS, RATIO, metrics.mean_rank(model, MODELS, mask), values[model][4], across=True
        )
        rows.append([label(model), *cells, mean])
    columns = (
        Column("model"),
        *(Column(name, COUNT, True) for name in ("first", "second", "third", "fourth")),
        Column("mean rank", RATIO, True),
    )
    notes = (
        (
            "A matched key is one topology, strategy, collective and network where all four models have a "
            "finished run. Equal times share the better rank. Differences of counts are counts."
        ),
    )
    present, expected = sample_of(study, MODELS, mask)
    return numbered(
        "4-18", "Rank of each model within matched keys (S_full)", columns, rows, notes, present, expected
    )


def pairwise_table(study: Study, published: Published) -> Table:
    """Table 4-19, and the same within the subsets of section 4.6.3."""
    rows = [
        _pair_row(study, name, "all keys", sets.s_full(), wins)
        for name, wins in published["pairwise_wins_192"].items()
        if name != "source"
    ]
    masks = {
        "ring_direct_96": ("ring_direct", sets.level_mask("collective", RING)),
        "dbt_direct_96": ("dbt_direct", sets.level_mask("collective", DBT)),
        "tp16ep2_48": ("tp16ep2", sets.level_mask("strategy", "tp16ep2")),
        "no_t6_160": ("without t6", sets.s_network()),
    }
    conditional = published["pairwise_conditional"]
    rows += [
        _pair_row(study, name, shown, mask, wins)
        for subset, (shown, mask) in masks.items()
        for name, wins in conditional[subset].items()
    ]
    columns = (
        Column("pair"),
        Column("keys"),
        Column("first faster", COUNT, True),
        Column("second faster", COUNT, True),
    )
    notes = ("Rows after the first six are the subsets of section 4.6.3. A tie counts for neither.",)
    present, expected = sample_of(study, MODELS, sets.s_full())
    return numbered(
        "4-19", "Pairwise wins over matched keys (S_full)", columns, rows, notes, present, expected
    )


def _pair_row(study: Study, name: str, shown: str, mask: Mask, published: list[int]) -> list[Cell]:
    """``name`` is ``a_vs_b`` or ``a_over_b``; published wins are of a, then of b."""
    first, second = name.replace("_over_", "_vs_").split("_vs_")
    pair = (first, second)
    return [
        label(f"{first} against {second}"),
        label(shown),
        compare(study, pair, COUNT, metrics.wins(first, second, mask), published[0], across=True),
        compare(study, pair, COUNT, metrics.wins(second, first, mask), published[1], across=True),
    ]


# --- 4-20 ---------------------------------------------------------------------------------------

PerModel = Callable[[str], Metric]


def _over_models(per_model: PerModel, pick: Callable[[list[float]], float | str]) -> Metric:
    """A value per model, then one for all; nothing where a model has none."""

    def measure(cube: Cube) -> Measured:
        found = [per_model(model)(cube) for model in MODELS]
        present, expected = sum(m.present for m in found), sum(m.expected for m in found)
        values = [m.value for m in found if isinstance(m.value, float | int)]
        value = pick(values) if len(values) == len(MODELS) else None
        return Measured(value, present if value is not None else 0, expected, found[0].sample)

    return measure


def _held_by(per_model: PerModel) -> Metric:
    """``k of 4 models`` for a yes (1) or no (0) per model."""
    return _over_models(per_model, lambda values: f"{sum(map(bool, values))} of {len(values)} models")


def _test(metric: Metric, holds: Callable[[str], bool]) -> Metric:
    """1 or 0 for a metric whose value is text."""

    def measure(cube: Cube) -> Measured:
        found = metric(cube)
        value = None if found.value is None else int(holds(str(found.value)))
        return Measured(value, found.present, found.expected, found.sample)

    return measure


def _sign(metric: Metric) -> Metric:
    """1 where the value is above 0."""

    def measure(cube: Cube) -> Measured:
        found = metric(cube)
        value = int(found.value > 0) if isinstance(found.value, float | int) else None
        return Measured(value, found.present, found.expected, found.sample)

    return measure


def effects_table(study: Study, published: Published) -> Table:
    """Table 4-20: observation, range over the models, condition."""
    rows = [
        *_strategy_rows(study, published),
        *_collective_rows(study, published),
        *_network_rows(study, published),
        *_topology_rows(study, published),
        _ranking_row(study, published),
    ]
    columns = (
        Column("effect"),
        Column("quantity"),
        Column("observed", TEXT, True),
        Column("lowest", RATIO, True),
        Column("highest", RATIO, True),
        Column("condition"),
    )
    present, expected = sample_of(study, MODELS, sets.s_full())
    notes = ("Ranges are over the four models. Published ranges follow from the published per-model values.",)
    return numbered("4-20", "Consistent main effects", columns, rows, notes, present, expected)


def _all_models() -> str:
    return f"{len(MODELS)} of {len(MODELS)} models"


def _range(study: Study, quantity: Quantity, per_model: PerModel, published: list[float]) -> list[Cell]:
    return [
        compare(study, MODELS, quantity, _over_models(per_model, min), min(published)),
        compare(study, MODELS, quantity, _over_models(per_model, max), max(published)),
    ]


def _observed(study: Study, metric: Metric, published: Value, *, across: bool = False) -> Cell:
    return compare(study, MODELS, TEXT, metric, published, across=across)


def _empty() -> list[Cell]:
    return [label(""), label("")]


def _strategy_rows(study: Study, published: Published) -> list[list[Cell]]:
    mask, order = sets.s_feedback(), " ".join(design.STRATEGIES)
    rising = _held_by(lambda m: _test(metrics.level_order(m, mask, "strategy"), lambda found: found == order))
    growth = _range(
        study,
        RATIO,
        lambda m: metrics.ratio(m, mask, "strategy", "tp2ep16", "tp16ep2"),
        [published["tp_ep_normalised"][m][3] for m in MODELS],
    )
    return [
        [
            label("TP/EP"),
            label("mean wall time rises with TP; TP16EP2 / TP2EP16"),
            _observed(study, rising, _all_models()),
            *growth,
            label("S_feedback"),
        ]
    ]


def _collective_rows(study: Study, published: Published) -> list[list[Cell]]:
    mask, means = sets.s_feedback(), published["collective_means_feedback"]

    def cost(model: str) -> Metric:
        return metrics.overhead(model, mask, "collective", RING, DBT)

    published_costs = [(means[m][DBT] - means[m][RING]) / means[m][RING] for m in MODELS]
    return [
        [
            label("TP collective"),
            label("dbt_direct slower than ring_direct, % of ring_direct"),
            _observed(study, _held_by(lambda m: _sign(cost(m))), _all_models()),
            *_range(study, RELATIVE, cost, published_costs),
            label("S_feedback"),
        ]
    ]


def _network_rows(study: Study, published: Published) -> list[list[Cell]]:
    mask, statements = sets.s_network(), published["network_statements"]

    def against(other: str) -> PerModel:
        return lambda model: metrics.overhead(model, mask, "network", "roce_hpcc", other)

    within = _held_by(lambda m: _within(against("ib_hpcc")(m), 0.03))
    slower = _held_by(lambda m: _sign(against("roce_dcqcn")(m)))
    return [
        [
            label("network/control"),
            label("ib_hpcc within 3 % of roce_hpcc, % of roce_hpcc"),
            _observed(study, within, _all_models()),
            *_range(study, RELATIVE, against("ib_hpcc"), [statements["ib_vs_roce_hpcc"][m] for m in MODELS]),
            label("S_network"),
        ],
        [
            label("network/control"),
            label("roce_dcqcn slower than roce_hpcc, % of roce_hpcc"),
            _observed(study, slower, _all_models()),
            *_range(
                study, RELATIVE, against("roce_dcqcn"), [statements["dcqcn_over_hpcc"][m] for m in MODELS]
            ),
            label("S_network"),
        ],
    ]


def _within(metric: Metric, bound: float) -> Metric:
    def measure(cube: Cube) -> Measured:
        found = metric(cube)
        value = int(abs(found.value) <= bound) if isinstance(found.value, float | int) else None
        return Measured(value, found.present, found.expected, found.sample)

    return measure


def _topology_rows(study: Study, published: Published) -> list[list[Cell]]:
    mask, ranking = sets.s_feedback(), published["topology_ranking_feedback"]

    def top_three(model: str) -> Metric:
        return _test(
            metrics.level_order(model, mask, "topology"), lambda o: set(o.split()[:3]) == {"t1", "t2", "t6"}
        )

    def t6_first(model: str) -> Metric:
        return _test(metrics.level_order(model, mask, "topology", 0), lambda best: best == "t6")

    def published_count(holds: Callable[[list[int]], bool]) -> str:
        return f"{sum(holds(ranking[m]) for m in MODELS)} of {len(MODELS)} models"

    return [
        [
            label("topology"),
            label("t1, t2 and t6 are the best three"),
            _observed(study, _held_by(top_three), published_count(lambda r: set(r[:3]) == {1, 2, 6})),
            *_empty(),
            label("S_feedback"),
        ],
        [
            label("topology"),
            label("t6 is the best"),
            _observed(study, _held_by(t6_first), published_count(lambda r: r[0] == 6)),
            *_empty(),
            label("S_feedback"),
        ],
    ]


def _ranking_row(study: Study, published: Published) -> list[Cell]:
    order = " ".join(published["cross_model_statements"]["order_feedback"])
    metric = metrics.model_order(MODELS, sets.s_feedback())
    return [
        label("model ranking"),
        label("models by mean wall time, fastest first"),
        _observed(study, metric, order, across=True),
        *_empty(),
        label("S_feedback"),
    ]
