"""Every claim of the study: one function each, under the claim's id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hpcmoe import design
from hpcmoe.analysis import metrics, sets
from hpcmoe.analysis.claim_metrics import (
    best_topologies,
    combined,
    configuration,
    largest_remainder,
    negated,
    over_models,
    rising,
    screening,
    spread,
    word,
)
from hpcmoe.analysis.claims import Claim, Entry, Judge, Test
from hpcmoe.analysis.metrics import Metric
from hpcmoe.analysis.sets import Mask, level_mask
from hpcmoe.analysis.study import Study
from hpcmoe.analysis.table import COUNT, FRACTION, NUMBER, RATIO, RELATIVE, SECONDS, TEXT, Quantity
from hpcmoe.analysis.tables_design import RANKS, against
from hpcmoe.analysis.tables_factors import DBT, MODELS, RING
from hpcmoe.analysis.tables_model import Published
from hpcmoe.weights import residency

Given = Any
"""A claim's published figures, as claims.json has them."""
Maker = Callable[[Judge, Given], Iterable[Entry]]
CLAIMS: dict[str, Maker] = {}
MAJORITY: set[str] = set()
EXTERNAL = ("t1", "t2", "t3", "t4", "t5")


def claim(name: str, *, majority: bool = False) -> Callable[[Maker], Maker]:
    """Registers a claim; ``majority``: it names things, and more than half of them make its direction."""

    def register(maker: Maker) -> Maker:
        CLAIMS[name] = maker
        if majority:
            MAJORITY.add(name)
        return maker

    return register


def judge_claims(study: Study, published: Published, claims: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """Every claim with its entries, in the order given."""
    judge = Judge(study, published)
    return [
        Claim(
            given["id"],
            given["section"],
            given["claim"],
            given["set"],
            given["formula"],
            tuple(CLAIMS[given["id"]](judge, given["published"])),
            given["id"] in MAJORITY,
        )
        for given in claims
    ]


def above(bound: float) -> Test:
    return lambda value: bool(value > bound)


def is_name(name: str) -> Test:
    return lambda value: bool(value == name)


def within(bound: float) -> Test:
    return lambda value: bool(abs(value) <= bound)


def _per_model(
    judge: Judge, given: Mapping[str, Any], quantity: Quantity, metric: Callable[[str], Metric], true: Test
) -> Iterator[Entry]:
    """One entry per model that the study gives a number for."""
    for model in (name for name in MODELS if name in given):
        yield judge.entry(model, [model], quantity, metric(model), given[model], true)


def _orders(judge: Judge, given: Mapping[str, list[int]], mask: Mask) -> Iterator[Entry]:
    for model in MODELS:
        for place, topology in enumerate(given[model]):
            metric = metrics.level_order(model, mask, "topology", place)
            yield judge.named(f"{model} {place + 1}.", [model], TEXT, metric, f"t{topology}")


# --- what dominates ------------------------------------------------------------------------------


@claim("comm-dominates")
def comm_dominates(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = sets.s_feedback()
    return _per_model(judge, given, FRACTION, lambda m: metrics.comm_fraction(m, mask), above(0.5))


@claim("tp-order", majority=True)
def tp_order(judge: Judge, given: Given) -> Iterable[Entry]:
    order = " ".join(design.STRATEGIES)
    for model in MODELS:
        yield judge.named(
            model, [model], TEXT, metrics.level_order(model, sets.s_feedback(), "strategy"), order
        )


@claim("tp16-penalty")
def tp16_penalty(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = sets.s_feedback()
    return _per_model(
        judge, given, RATIO, lambda m: metrics.ratio(m, mask, "strategy", "tp2ep16", "tp16ep2"), above(1)
    )


@claim("dbt-slower")
def dbt_slower(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = sets.s_feedback()
    return _per_model(
        judge, given, RELATIVE, lambda m: metrics.overhead(m, mask, "collective", RING, DBT), above(0)
    )


# --- network modes -------------------------------------------------------------------------------


def _against_hpcc(other: str, mask: Mask | None = None) -> Callable[[str], Metric]:
    chosen = sets.s_network() if mask is None else mask
    return lambda model: metrics.overhead(model, chosen, "network", "roce_hpcc", other)


@claim("ib-roce-hpcc-close")
def ib_roce_hpcc_close(judge: Judge, given: Given) -> Iterable[Entry]:
    yield from _per_model(judge, given, RELATIVE, _against_hpcc("ib_hpcc"), within(0.03))
    mean = over_models(_against_hpcc("ib_hpcc"), lambda values: sum(values) / len(values))
    yield judge.entry("equal mean", MODELS, RELATIVE, mean, given["equal_mean"], within(0.03))


@claim("dcqcn-slower")
def dcqcn_slower(judge: Judge, given: Given) -> Iterable[Entry]:
    return _per_model(judge, given, RELATIVE, _against_hpcc("roce_dcqcn"), above(0))


@claim("cc0-faster")
def cc0_faster(judge: Judge, given: Given) -> Iterable[Entry]:
    return _per_model(judge, given, RELATIVE, lambda m: negated(_against_hpcc("ib_cc0")(m)), above(0))


@claim("gpu-unchanged")
def gpu_unchanged(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        metric = spread(model, "gpu_ns", sets.s_full(), ("collective", "network", "topology"))
        yield judge.entry(model, [model], SECONDS, metric, float(given), within(0))


@claim("wall-sum")
def wall_sum(judge: Judge, given: Given) -> Iterable[Entry]:
    """Rounding: the published times have six decimals."""
    for model in MODELS:
        yield judge.entry(model, [model], SECONDS, largest_remainder(model), None, within(1e-6))


@claim("t6-tie")
def t6_tie(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        metric = spread(model, "wall_ns", level_mask("topology", "t6"), ("network",))
        yield judge.entry(model, [model], SECONDS, metric, float(given), within(0))


# --- topologies ----------------------------------------------------------------------------------


@claim("top-three", majority=True)
def top_three(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        yield judge.named(model, [model], TEXT, best_topologies(model, sets.s_feedback(), 3), "t1 t2 t6")


@claim("t6-first", majority=True)
def t6_first(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        metric = metrics.level_order(model, sets.s_feedback(), "topology", 0)
        yield judge.named(f"{model} best", [model], TEXT, metric, f"t{given[model]}")
    second = metrics.level_order("k3", sets.s_feedback(), "topology", 1)
    yield judge.named("k3 second", ["k3"], TEXT, second, "t6")


@claim("topology-order", majority=True)
def topology_order(judge: Judge, given: Given) -> Iterable[Entry]:
    return _orders(judge, given, sets.s_feedback())


def _cc0_ring(strategy: str) -> Mask:
    chosen = level_mask("network", "ib_cc0") & level_mask("collective", RING)
    return chosen & level_mask("strategy", strategy) if strategy else chosen


@claim("t6-low-tp", majority=True)
def t6_low_tp(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        metric = metrics.extreme_level(model, _cc0_ring("tp2ep16"), "topology")
        yield judge.named(model, [model], TEXT, metric, f"t{given}")


@claim("t6-reversal")
def t6_reversal(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = _cc0_ring("tp16ep2")
    return _per_model(judge, given, RATIO, lambda m: metrics.ratio(m, mask, "topology", "t1", "t6"), above(1))


@claim("t6-growth")
def t6_growth(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = _cc0_ring("") & level_mask("topology", "t6")
    return _per_model(
        judge, given, RATIO, lambda m: metrics.ratio(m, mask, "strategy", "tp2ep16", "tp16ep2"), above(1)
    )


@claim("upi-cost")
def upi_cost(judge: Judge, given: Given) -> Iterable[Entry]:
    """Flash is published the other way round: t2 faster than t3, relative to t3."""
    for model, mask in (("k3", sets.s_feedback()), ("glm", sets.s_full())):
        metric = metrics.overhead(model, mask, "topology", "t2", "t3")
        yield judge.entry(model, [model], RELATIVE, metric, given[model], above(0))
    metric = negated(metrics.overhead("flash", sets.s_full(), "topology", "t3", "t2"))
    yield judge.entry("flash, t2 below t3", ["flash"], RELATIVE, metric, given["flash_t2_faster"], above(0))


@claim("nic-count")
def nic_count(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = sets.s_full()
    metric = metrics.overhead("flash", mask, "topology", "t2", "t4")
    yield judge.entry("flash, t4 over t2", ["flash"], RELATIVE, metric, given["flash"], above(0))
    metric = negated(metrics.overhead("glm", mask, "topology", "t4", "t2"))
    yield judge.entry("glm, t2 below t4", ["glm"], RELATIVE, metric, given["glm_t2_faster"], above(0))


@claim("dcqcn-t3")
def dcqcn_t3(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = level_mask("topology", "t3") & level_mask("strategy", "tp16ep2") & level_mask("collective", RING)
    return _per_model(
        judge,
        given,
        RELATIVE,
        lambda m: metrics.overhead(m, mask, "network", "ib_cc0", "roce_dcqcn"),
        above(0),
    )


@claim("dcqcn-t1-flat")
def dcqcn_t1_flat(judge: Judge, given: Given) -> Iterable[Entry]:
    """Barely: by less than 10 %."""
    for mode in ("cc0", "dcqcn"):
        network = {"cc0": "ib_cc0", "dcqcn": "roce_dcqcn"}[mode]
        metric = metrics.single("flash", "t1", "tp16ep2", RING, network)
        yield judge.entry(network, ["flash"], SECONDS, metric, given[mode], above(0))
    mask = level_mask("topology", "t1") & level_mask("strategy", "tp16ep2") & level_mask("collective", RING)
    metric = metrics.overhead("flash", mask, "network", "ib_cc0", "roce_dcqcn")
    yield judge.entry("cost", ["flash"], RELATIVE, metric, given["dcqcn"] / given["cc0"] - 1, within(0.1))


@claim("dcqcn-topology")
def dcqcn_topology(judge: Judge, given: Given) -> Iterable[Entry]:
    """Largest on t3: its lowest ratio is above the highest of any other topology."""
    groups = {"t3": ("t3",), "t4_t5": ("t4", "t5"), "t1_t2": ("t1", "t2")}
    for name, topologies in groups.items():
        ratios = _dcqcn_ratio(topologies)
        for end, pick, published in (("lowest", min, given[name][0]), ("highest", max, given[name][1])):
            yield judge.entry(
                f"{name.replace('_', ', ')} {end}", MODELS, RATIO, ratios(pick), published, above(1)
            )
    largest = over_models(
        largest_dcqcn_topology, lambda found: f"{sum(map(bool, found))} of {len(found)} models"
    )
    yield judge.named("t3 largest", MODELS, TEXT, largest, "4 of 4 models")


def _dcqcn_ratio(topologies: tuple[str, ...]) -> Callable[[Callable[..., float]], Metric]:
    def of(pick: Callable[..., float]) -> Metric:
        metrics_of = [
            metrics.ratio(
                m, sets.s_network() & level_mask("topology", t), "network", "roce_hpcc", "roce_dcqcn"
            )
            for m in MODELS
            for t in topologies
        ]
        return combined(metrics_of, pick)

    return of


def largest_dcqcn_topology(model: str) -> Metric:
    """1 where t3 has the largest DCQCN/HPCC ratio of a model."""
    ratios = [
        metrics.ratio(
            model, sets.s_network() & level_mask("topology", t), "network", "roce_hpcc", "roce_dcqcn"
        )
        for t in EXTERNAL
    ]
    return combined(ratios, lambda values: float(values[2] == max(values)))


# --- collectives ---------------------------------------------------------------------------------


def _dbt_over_ring(model: str, mask: Mask, strategy: str) -> Metric:
    return metrics.ratio(model, mask & level_mask("strategy", strategy), "collective", RING, DBT)


@claim("dbt-grows-with-tp")
def dbt_grows_with_tp(judge: Judge, given: Given) -> Iterable[Entry]:
    three, mask = ("flash", "glm", "pro"), sets.s_roce()
    for name, strategy in (("tp2", "tp2ep16"), ("tp16", "tp16ep2")):
        ratios = [_dbt_over_ring(m, mask, strategy) for m in three]
        for end, pick, published in (("lowest", min, given[name][0]), ("highest", max, given[name][1])):
            yield judge.entry(f"{name} {end}", three, RATIO, combined(ratios, pick), published, above(1))
    for model in three:
        growth = combined([_dbt_over_ring(model, mask, s) for s in design.STRATEGIES], rising)
        yield judge.named(f"{model} rises", [model], TEXT, growth, "yes")
    for strategy, published in zip(("tp2ep16", "tp8ep4", "tp16ep2"), given["k3"], strict=True):
        yield judge.entry(
            f"k3 {strategy}", ["k3"], RATIO, _dbt_over_ring("k3", mask, strategy), published, above(1)
        )


@claim("dbt-grows-t6")
def dbt_grows_t6(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = level_mask("topology", "t6") & level_mask("network", "ib_cc0")
    for model in (m for m in MODELS if m in given):
        ends = ("tp2ep16", "tp16ep2")
        for strategy, published in zip(ends, given[model], strict=True):
            yield judge.entry(
                f"{model} {strategy}",
                [model],
                RATIO,
                _dbt_over_ring(model, mask, strategy),
                published,
                above(1),
            )
        growth = combined([_dbt_over_ring(model, mask, s) for s in ends], rising)
        yield judge.named(f"{model} rises", [model], TEXT, growth, "yes")


@claim("algorithm-over-control")
def algorithm_over_control(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in ("glm", "pro"):
        collective = metrics.gap_seconds(model, sets.s_feedback(), "collective", RING, DBT)
        control = metrics.gap_seconds(model, sets.s_network(), "network", "roce_hpcc", "roce_dcqcn")
        metric = combined([collective, control], lambda gaps: gaps[0] / gaps[1] if gaps[1] else float("inf"))
        yield judge.entry(model, [model], RATIO, metric, given.get(model), above(1))


# --- extremes and models -------------------------------------------------------------------------


@claim("global-minimum", majority=True)
def global_minimum(judge: Judge, given: Given) -> Iterable[Entry]:
    wanted = f"{given}/{metrics.ALL_MODES}"
    for model in MODELS:
        yield judge.named(model, [model], TEXT, configuration(model, sets.s_full()), wanted)


@claim("global-maximum", majority=True)
def global_maximum(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in MODELS:
        yield judge.named(model, [model], TEXT, configuration(model, sets.s_full(), longest=True), given)


@claim("external-minimum", majority=True)
def external_minimum(judge: Judge, given: Given) -> Iterable[Entry]:
    for model in ("flash", "glm", "pro"):
        yield judge.named(model, [model], TEXT, configuration(model, sets.s_network()), given)


@claim("sensitivity")
def sensitivity(judge: Judge, given: Given) -> Iterable[Entry]:
    yield from _per_model(judge, given, RATIO, lambda m: metrics.sensitivity(m, sets.s_full()), above(1))
    of = [metrics.sensitivity(m, sets.s_full()) for m in MODELS]
    for name, pick, published in (("highest", max, "flash"), ("lowest", min, "pro")):
        metric = combined(of, model_with(pick))
        yield judge.named(name, MODELS, TEXT, metric, published)


def model_with(pick: Callable[..., float]) -> Callable[[list[float]], str]:
    """The model whose value is picked."""
    return lambda values: MODELS[values.index(pick(values))]


@claim("model-order", majority=True)
def model_order(judge: Judge, given: Given) -> Iterable[Entry]:
    return _model_places(judge, given, sets.s_feedback())


@claim("model-order-ring", majority=True)
def model_order_ring(judge: Judge, given: Given) -> Iterable[Entry]:
    return _model_places(judge, given, sets.s_feedback() & level_mask("collective", RING))


def _model_places(judge: Judge, given: list[str], mask: Mask) -> Iterator[Entry]:
    """The whole order; its entries are the places."""
    order = metrics.model_order(MODELS, mask)
    for place, model in enumerate(given):
        yield judge.entry(
            f"{place + 1}.",
            MODELS,
            TEXT,
            word(order, place),
            model,
            is_name(model),
            across=True,
        )


@claim("params-do-not-predict")
def params_do_not_predict(judge: Judge, given: Given) -> Iterable[Entry]:
    mask = sets.s_feedback()
    means = [metrics.mean(model, mask) for model in ("glm", "k3")]
    metric = combined(means, lambda values: values[0] / values[1] - 1)
    yield judge.entry("glm over k3", ("glm", "k3"), RELATIVE, metric, given, above(0), across=True)


@claim("flash-always-first")
def flash_always_first(judge: Judge, given: Given) -> Iterable[Entry]:
    metric = metrics.times_ranked("flash", MODELS, sets.s_full(), 1)
    yield judge.entry("keys", MODELS, COUNT, metric, given, lambda value: value == given, across=True)


def _pairs(judge: Judge, given: Mapping[str, list[int]], mask: Mask) -> Iterator[Entry]:
    for name, (first_wins, second_wins) in given.items():
        first, second = name.split("_vs_")
        yield _wins(judge, first, second, mask, first_wins, second_wins)
        yield _wins(judge, second, first, mask, second_wins, first_wins)


def _wins(judge: Judge, first: str, second: str, mask: Mask, wins: int, losses: int, name: str = "") -> Entry:
    """Wins of ``first``; the statement is who wins more."""
    ours, theirs = metrics.wins(first, second, mask), metrics.wins(second, first, mask)
    majority = combined([ours, theirs], lambda values: float(values[0] > values[1]))
    entry = judge.entry(
        name or f"{first} over {second}", (first, second), COUNT, ours, wins, lambda v: True, across=True
    )
    side = judge.entry(
        "", (first, second), RATIO, majority, None, lambda v: bool(v) == (wins > losses), across=True
    )
    return Entry(entry.name, entry.cell, side.true, entry.close)


@claim("pairwise", majority=True)
def pairwise(judge: Judge, given: Given) -> Iterable[Entry]:
    return _pairs(judge, given, sets.s_full())


@claim("directions-without-t6", majority=True)
def directions_without_t6(judge: Judge, given: Given) -> Iterable[Entry]:
    return _pairs(judge, given, sets.s_network())


@claim("k3-pro-reversal", majority=True)
def k3_pro_reversal(judge: Judge, given: Given) -> Iterable[Entry]:
    ring, dbt, tp16 = (
        level_mask("collective", RING),
        level_mask("collective", DBT),
        level_mask("strategy", "tp16ep2"),
    )
    yield _wins(judge, "pro", "k3", ring, given["ring_pro"], 96 - given["ring_pro"], "ring: pro over k3")
    yield _wins(judge, "k3", "pro", dbt, given["dbt_k3"], 96 - given["dbt_k3"], "dbt: k3 over pro")
    wins, losses = given["tp16"]
    yield _wins(judge, "k3", "pro", tp16, wins, losses, "tp16ep2: k3 over pro")


# --- without runs of the study -------------------------------------------------------------------


@claim("residency")
def weights_fit(judge: Judge, given: Given) -> Iterable[Entry]:
    capacity = judge.published["residency"]["criterion_gb_per_accelerator"]
    for model, published in given.items():
        held = residency(judge.published["models"][model]["weights_gb"], RANKS, capacity)
        yield Entry(
            model,
            against(NUMBER, held.per_rank_gb, published),
            held.fits,
            abs(held.per_rank_gb - published) < 0.01,
        )


@claim("ep-direct-screen")
def ep_direct_screen(judge: Judge, given: Given) -> Iterable[Entry]:
    """Over the k3 keys of the file that finished with both EP algorithms."""
    metric = screening(judge.study)
    yield judge.entry("reduction", ["k3"], RELATIVE, metric, given, above(0))
