"""Every table of the study from a planted study whose answers follow by hand.

wall = u * w(model, collective) * s(strategy) * t(topology) * n(network), u = 1 ms, topology 6 with n = 10 in
every mode; gpu = u * w(model, ring) * g(strategy). Means over a set are then products of means.
"""

from collections.abc import Callable, Iterable

import pytest

from hpcmoe import analysis
from hpcmoe.analysis import Cell, ModelFacts, Study, Table
from hpcmoe.design import RunKey, all_runs
from hpcmoe.published import load_published

U_NS = 1_000_000
W = {"flash": (1, 2), "k3": (5, 6), "pro": (4, 8), "glm": (7, 14)}
S = {"tp2ep16": 1, "tp4ep8": 2, "tp8ep4": 3, "tp16ep2": 4}
G = {"tp2ep16": 8, "tp4ep8": 4, "tp8ep4": 3, "tp16ep2": 1}
T = {"t1": 11, "t2": 12, "t3": 16, "t4": 15, "t5": 14, "t6": 10}
N = {"ib_cc0": 10, "ib_hpcc": 11, "roce_hpcc": 12, "roce_dcqcn": 15}

FULL_TN = (68 * 48 + 4 * 100) / 24  # mean of t * n: t1..t5 sum to 68, n to 48
FEEDBACK_TN = (68 * 38 + 3 * 100) / 18
MEAN_W = {"flash": 1.5, "k3": 5.5, "pro": 6.0, "glm": 10.5}
RING_W = {model: pair[0] for model, pair in W.items()}
MODELS = ("flash", "k3", "glm", "pro")

FACTS = {
    "flash": ModelFacts("flash", 4096, 43, 43, 256, 6, 2048),
    "k3": ModelFacts("k3", 3584, 93, 92, 896, 16, 3072),
    "glm": ModelFacts("glm", 6144, 78, 75, 256, 8, 2048),
    "pro": ModelFacts("pro", 7168, 61, 61, 384, 6, 3072),
}
PUBLISHED = load_published()


def wall_ns(key: RunKey) -> int:
    n = 10 if key.topology == "t6" else N[key.network]
    return U_NS * W[key.model][key.collective == "dbt_direct"] * S[key.strategy] * T[key.topology] * n


def planted_row(key: RunKey, **changes: object) -> dict[str, object]:
    wall, gpu = wall_ns(key), U_NS * RING_W[key.model] * G[key.strategy]
    row = {
        "key": str(key),
        "status": "ok",
        "wall_ns": wall,
        "gpu_ns": gpu,
        "comm_ns": wall - gpu,
        "tokens": 4096,
    }
    factors = ("model", "topology", "strategy", "collective", "network")
    return {**row, **{factor: getattr(key, factor) for factor in factors}, **changes}


Change = Callable[[RunKey], dict[str, object]]


def planted(
    change: Change = lambda key: {}, extra: Iterable[dict[str, object]] = (), **attrs: object
) -> Study:
    rows = [planted_row(key, **change(key)) for key in all_runs()]
    table = analysis.from_rows([*rows, *extra], {"tokens": 4096, "layers": -1, **attrs})
    return analysis.build_study(table, FACTS)


def tables_of(study: Study) -> dict[str, Table]:
    sections = analysis.build_sections(study, PUBLISHED, FACTS)
    return {table.number or table.slug: table for section in sections for table in section.items}


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return tables_of(planted())


def row_of(table: Table, *names: str) -> dict[str, Cell]:
    """The row whose leading cells are the names, by column."""
    found = [row for row in table.rows if tuple(cell.ours for cell in row[: len(names)]) == names]
    assert len(found) == 1, names
    return {column.name: cell for column, cell in zip(table.columns, found[0], strict=True)}


def ours(table: Table, *names: str) -> list[object]:
    """Our values of the compared columns of a row."""
    row = row_of(table, *names)
    return [row[column.name].ours for column in table.columns if column.compared]


def cells_of(table: Table) -> Iterable[Cell]:
    return [
        cell for row in table.rows for column, cell in zip(table.columns, row, strict=True) if column.compared
    ]


def close(*values: float) -> object:
    return pytest.approx(list(values), rel=1e-12)


def test_all_numbered_tables_are_there_in_order() -> None:
    sections = analysis.build_sections(planted(), PUBLISHED, FACTS)
    numbers = [table.number for section in sections for table in section.items if table.number]
    chapter_3 = [f"3-{number}" for number in range(1, 10)]
    assert numbers == [*chapter_3, "A-1", *(f"4-{number}" for number in range(1, 21))]


@pytest.mark.parametrize(
    ("model", "number"), [("flash", "4-1"), ("k3", "4-3"), ("glm", "4-5"), ("pro", "4-7")]
)
def test_overall_statistics(tables: dict[str, Table], model: str, number: str) -> None:
    wall = MEAN_W[model] * 2.5 * FULL_TN / 1e3
    gpu = RING_W[model] * 4 / 1e3
    values = [row[1].ours for row in tables[number].rows]
    shortest, longest = RING_W[model] * 0.1, W[model][1] * 4 * 16 * 15 / 1e3
    assert values == close(192, wall, gpu, wall - gpu, (wall - gpu) / wall, shortest, longest)


def test_overall_statistics_of_flash_as_numbers(tables: dict[str, Table]) -> None:
    values = [row[1].ours for row in tables["4-1"].rows]
    assert values == close(192, 0.5725, 0.004, 0.5685, 0.5685 / 0.5725, 0.1, 1.92)


def test_differences_are_relative_to_the_published_value(tables: dict[str, Table]) -> None:
    cell = row_of(tables["4-1"], "mean wall time (s)")["value"]
    assert cell.published == 0.550729
    assert cell.difference == pytest.approx(100 * (0.5725 - 0.550729) / 0.550729)


@pytest.mark.parametrize(
    ("model", "number"), [("flash", "4-2"), ("k3", "4-4"), ("glm", "4-6"), ("pro", "4-8")]
)
def test_fastest_configurations(tables: dict[str, Table], model: str, number: str) -> None:
    all_modes = "all four modes (tied)"
    first = ours(tables[number], "all runs")
    assert first == ["t6", "tp2ep16", "ring_direct", all_modes, pytest.approx(RING_W[model] * 0.1)]
    assert [cell.difference for cell in tables[number].rows[0][1:5]] == ["same"] * 4
    if model == "k3":
        expected = ["t1", "tp2ep16", "ring_direct", "roce_hpcc", pytest.approx(5 * 11 * 12 / 1e3)]
        assert ours(tables[number], "external network, RoCE only") == expected
    else:
        expected = ["t1", "tp2ep16", "ring_direct", "ib_cc0", pytest.approx(RING_W[model] * 0.11)]
        assert ours(tables[number], "external network") == expected
    assert [cell.difference for cell in tables[number].rows[1][1:5]] == ["same"] * 4


def test_architecture_proxies(tables: dict[str, Table]) -> None:
    assert ours(tables["4-9"], "k3")[-2:] == [333312, 5275648]
    assert all(cell.difference == 0 for cell in cells_of(tables["4-9"]))


def test_feedback_statistics_are_ordered_by_wall(tables: dict[str, Table]) -> None:
    table = tables["4-10"]
    assert [row[0].ours for row in table.rows] == ["flash", "k3", "pro", "glm"]
    for model in MODELS:
        wall, gpu = MEAN_W[model] * 2.5 * FEEDBACK_TN / 1e3, RING_W[model] * 4 / 1e3
        expected = close(wall, gpu, wall - gpu, (wall - gpu) / wall, RING_W[model] * 0.1, W[model][1] * 0.96)
        assert ours(table, model) == expected
    assert (table.present, table.expected) == (576, 576)


def test_topology_ranking(tables: dict[str, Table]) -> None:
    for model in MODELS:
        assert ours(tables["4-11"], model) == ["t6", "t1", "t2", "t5", "t4", "t3"]
    assert [cell.difference for cell in tables["4-11"].rows[0][1:]] == ["same"] * 6
    k3 = row_of(tables["4-11"], "k3")
    assert [k3[name].difference for name in ("best", "second", "third")] == ["differs", "differs", "same"]


def test_strategies(tables: dict[str, Table]) -> None:
    for model in MODELS:
        unit = MEAN_W[model] * FEEDBACK_TN / 1e3
        assert ours(tables["4-12"], model) == close(unit, 2 * unit, 3 * unit, 4 * unit)
        assert ours(tables["4-13"], model) == close(1, 2, 3, 4)


def test_networks(tables: dict[str, Table]) -> None:
    table = tables["4-14"]
    assert ours(table, "flash") == close(0.561, 0.612, -1 / 12, 0.765, 0.25, 0.510)
    row = row_of(table, "flash")
    assert row["ib_hpcc against roce_hpcc"].difference == pytest.approx(100 * (-1 / 12 + 0.001))
    assert row_of(table, "k3")["ib_cc0"].published is None
    assert (table.present, table.expected) == (640, 640)


def test_collectives(tables: dict[str, Table]) -> None:
    for model in MODELS:
        ring, dbt = (w * 2.5 * FEEDBACK_TN / 1e3 for w in W[model])
        assert ours(tables["4-15"], model) == close(ring, dbt, dbt - ring, dbt / ring - 1)
    published = row_of(tables["4-15"], "flash")
    assert published["difference"].published == 0.340082
    assert published["relative"].published == pytest.approx(0.832, abs=5e-4)


def test_ring_subset(tables: dict[str, Table]) -> None:
    table = tables["4-16"]
    assert [row[0].ours for row in table.rows] == ["flash", "pro", "k3", "glm"]
    wall = 2.5 * FEEDBACK_TN / 1e3
    assert ours(table, "flash") == close(wall, 0.004, wall - 0.004, 0.1, 0.96)
    assert (table.present, table.expected) == (288, 288)


def test_sensitivity(tables: dict[str, Table]) -> None:
    shortest = "t6/tp2ep16/ring_direct/all four modes (tied)"
    longest = "t3/tp16ep2/dbt_direct/roce_dcqcn"
    for model, expected in {"flash": 19.2, "k3": 11.52, "glm": 19.2, "pro": 19.2}.items():
        row = row_of(tables["4-17"], model)
        assert (row["shortest run"].ours, row["longest run"].ours) == (shortest, longest)
        assert (row["shortest run"].difference, row["longest run"].difference) == ("same", "same")
        assert row["longest / shortest"].ours == pytest.approx(expected)


def test_ranks_within_matched_keys(tables: dict[str, Table]) -> None:
    expected = {"flash": [192, 0, 0, 0, 1.0], "k3": [0, 96, 96, 0, 2.5], "pro": [0, 96, 96, 0, 2.5],
                "glm": [0, 0, 0, 192, 4.0]}  # fmt: skip
    assert {model: ours(tables["4-18"], model) for model in expected} == expected
    assert row_of(tables["4-18"], "k3")["second"].difference == 96 - 120


def test_pairwise_wins(tables: dict[str, Table]) -> None:
    table = tables["4-19"]
    assert ours(table, "flash against k3", "all keys") == [192, 0]
    assert ours(table, "k3 against pro", "all keys") == [96, 96]
    assert ours(table, "pro against glm", "all keys") == [192, 0]
    assert ours(table, "pro against k3", "ring_direct") == [96, 0]
    assert ours(table, "k3 against pro", "dbt_direct") == [96, 0]
    assert ours(table, "k3 against pro", "tp16ep2") == [24, 24]
    assert ours(table, "k3 against pro", "without t6") == [80, 80]
    assert [cell.expected for cell in cells_of(table)] == [192] * 12 + [96] * 4 + [48] * 2 + [160] * 6


def test_wins_at_tp16ep2_count_that_strategy_alone() -> None:
    slow = tables_of(planted(lambda key: {"wall_ns": 10**12} if (key.model, key.tp) == ("k3", 16) else {}))
    assert ours(slow["4-19"], "k3 against pro", "tp16ep2") == [0, 48]
    assert ours(slow["4-19"], "k3 against pro", "all keys") == [72, 120]


def test_a_tie_is_a_win_of_neither_and_shares_the_rank() -> None:
    def as_flash(key: RunKey) -> dict[str, object]:
        twin = RunKey("flash", key.topology, key.strategy, key.collective, key.network)
        return {"wall_ns": wall_ns(twin)} if key.model == "k3" else {}

    tables = tables_of(planted(as_flash))
    assert ours(tables["4-19"], "flash against k3", "all keys") == [0, 0]
    assert ours(tables["4-18"], "k3") == [192, 0, 0, 0, 1.0]
    assert ours(tables["4-18"], "pro") == [0, 0, 192, 0, 3.0]


def test_main_effects(tables: dict[str, Table]) -> None:
    values = [[cell.ours for cell in row[2:5]] for row in tables["4-20"].rows]
    assert values == [
        ["4 of 4 models", pytest.approx(4), pytest.approx(4)],
        ["4 of 4 models", pytest.approx(0.2), pytest.approx(1)],
        ["0 of 4 models", pytest.approx(-1 / 12), pytest.approx(-1 / 12)],
        ["4 of 4 models", pytest.approx(0.25), pytest.approx(0.25)],
        ["4 of 4 models", "", ""],
        ["4 of 4 models", "", ""],
        ["flash k3 pro glm", "", ""],
    ]
    observed = [(row[2].published, row[2].difference) for row in tables["4-20"].rows]
    assert observed[2] == ("4 of 4 models", "differs")
    assert observed[5] == ("3 of 4 models", "differs")
    assert observed[6] == ("flash k3 pro glm", "same")
    ranges = [(row[3].published, row[4].published) for row in tables["4-20"].rows[:2]]
    assert ranges[0] == (3.68, 4.35)
    assert list(ranges[1]) == pytest.approx([0.283, 0.832], abs=5e-4)


def test_published_points(tables: dict[str, Table]) -> None:
    table = tables["points"]
    assert len(table.rows) == len(PUBLISHED["points"]) == 42
    cell = row_of(table, "glm/t3/tp16ep2/ring_direct/roce_dcqcn")["wall"]
    assert cell.ours == pytest.approx(7 * 4 * 16 * 15 / 1e3)
    assert cell.published == 2.1021
    assert cell.difference == pytest.approx(100 * (6.72 - 2.1021) / 2.1021)


def test_every_compared_cell_of_a_complete_study_is_compared(tables: dict[str, Table]) -> None:
    for table in (t for number, t in tables.items() if not number.startswith(("3-", "A-"))):
        for cell in cells_of(table):
            assert not cell.is_gap
            assert not cell.is_partial
            assert (cell.difference is not None) == (cell.published is not None) or cell.published == 0


def test_order_of_runs_in_the_file_does_not_matter(tables: dict[str, Table]) -> None:
    rows = [planted_row(key) for key in all_runs()]
    shuffled = rows[1::2] + rows[-2::-2]
    study = analysis.build_study(analysis.from_rows(shuffled, {"tokens": 4096, "layers": -1}), FACTS)
    again = tables_of(study)
    assert {n: t for n, t in again.items() if n != "runs"} == {n: t for n, t in tables.items() if n != "runs"}


def test_a_study_with_the_published_values_differs_by_nothing() -> None:
    """The comparison is with the right entries: planted on the published points, all differences vanish."""
    factors = ("model", "topology", "tp", "ep", "collective", "network")
    points = {
        "{}/t{}/tp{}ep{}/{}/{}".format(*(p[f] for f in factors)): p["wall"] for p in PUBLISHED["points"]
    }

    def at_point(key: RunKey) -> dict[str, object]:
        wall = points.get(str(key))
        return {} if wall is None else {"wall_ns": round(wall * 1e9)}

    found = cells_of(tables_of(planted(at_point))["points"])
    assert [cell.difference for cell in found] == pytest.approx([0] * 42, abs=1e-9)


@pytest.mark.parametrize(
    ("number", "names", "published"),
    [
        ("4-5", ("communication fraction (%)",), [0.944]),
        ("4-6", ("external network",), ["t1", "tp2ep16", "ring_direct", "ib_cc0", 0.412796]),
        ("4-10", ("glm",), [1.663011, 0.090173, 1.572838, 0.946, 0.339574, 5.102144]),
        ("4-11", ("pro",), ["t6", "t1", "t2", "t5", "t3", "t4"]),
        ("4-12", ("k3",), [0.596076, 0.982192, 1.532131, 2.324843]),
        ("4-13", ("pro",), [1.0, 1.72, 2.69, 3.68]),
        ("4-14", ("pro",), [1.361341, 1.360284, 0.001, 1.690913, 0.243, 1.207237]),
        ("4-15", ("k3",), [1.190384, 1.527237, 0.336853, 0.336853 / 1.190384]),
        ("4-16", ("k3",), [1.190384, 0.137182, 1.053202, 0.227998, 3.332118]),
        ("4-18", ("k3",), [0, 120, 42, 30, 2.531]),
        ("4-19", ("k3 against glm", "all keys"), [161, 31]),
        ("4-19", ("pro against k3", "ring_direct"), [60, 36]),
        ("4-19", ("pro against glm", "without t6"), [157, 3]),
    ],
)
def test_published_values_stand_beside_ours(
    tables: dict[str, Table], number: str, names: tuple[str, ...], published: list[object]
) -> None:
    row = row_of(tables[number], *names)
    found = [row[column.name].published for column in tables[number].columns if column.compared]
    assert found == [pytest.approx(value) if isinstance(value, float) else value for value in published]
