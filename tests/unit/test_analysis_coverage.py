"""What is compared and what is not: holes, failures, cut runs, other token counts, other models."""

from collections.abc import Callable

import numpy as np
import pytest

from hpcmoe import analysis
from hpcmoe.analysis import Cell, ModelFacts, Study, Table, sets
from hpcmoe.design import RunKey, all_runs
from hpcmoe.errors import InputError
from hpcmoe.published import load_published

FACTS = {
    "flash": ModelFacts("flash", 4096, 43, 43, 256, 6, 2048),
    "k3": ModelFacts("k3", 3584, 93, 92, 896, 16, 3072),
    "glm": ModelFacts("glm", 6144, 78, 75, 256, 8, 2048),
    "pro": ModelFacts("pro", 7168, 61, 61, 384, 6, 3072),
}
PUBLISHED = load_published()
STRATEGY = {"tp2ep16": 1, "tp4ep8": 2, "tp8ep4": 3, "tp16ep2": 4}
TOPOLOGY = {"t1": 2, "t2": 3, "t3": 6, "t4": 5, "t5": 4, "t6": 1}
FACTORS = ("model", "topology", "strategy", "collective", "network")

Row = dict[str, object]


def row(run: RunKey, **changes: object) -> Row:
    """10 ms times strategy and topology factors, a tenth of it compute."""
    wall = 10_000_000 * STRATEGY[run.strategy] * TOPOLOGY[run.topology]
    times = {"wall_ns": wall, "gpu_ns": wall // 10, "comm_ns": wall - wall // 10}
    factors = {factor: getattr(run, factor) for factor in FACTORS}
    return {"key": str(run), "status": "ok", "tokens": 4096, **factors, **times, **changes}


def study_of(rows: list[Row], **attrs: object) -> Study:
    return analysis.build_study(analysis.from_rows(rows, {"tokens": 4096, "layers": -1, **attrs}), FACTS)


def tables_of(study: Study) -> dict[str, Table]:
    sections = analysis.build_sections(study, PUBLISHED, FACTS)
    return {table.number or table.slug: table for section in sections for table in section.items}


def full_rows(change: Callable[[RunKey], Row] = lambda key: {}) -> list[Row]:
    return [row(key, **change(key)) for key in all_runs()]


def cell_at(table: Table, name: str, column: int) -> Cell:
    return next(cells[column] for cells in table.rows if cells[0].ours == name)


def notice_text(study: Study) -> str:
    return "\n".join(" ".join((notice.text, *notice.details)) for notice in analysis.notices(study))


# --- sets ---------------------------------------------------------------------------------------


def test_sets_have_the_published_sizes() -> None:
    sizes = [int(mask.sum()) for mask in (sets.s_full(), sets.s_feedback(), sets.s_roce(), sets.s_network())]
    assert sizes == [192, 144, 96, 160]
    for mode in sets.LEVELS["network"]:
        assert int((sets.s_network() & sets.level_mask("network", mode)).sum()) == 40
    assert int((sets.s_feedback() & sets.level_mask("collective", "ring_direct")).sum()) == 72


# --- holes --------------------------------------------------------------------------------------

LOST = {"flash/t3/tp16ep2/ring_direct/roce_dcqcn": "missing", "flash/t6/tp2ep16/dbt_direct/ib_hpcc": "failed"}


@pytest.fixture(scope="module")
def holed() -> dict[str, Table]:
    def change(key: RunKey) -> Row:
        status = LOST.get(str(key), "missing" if key.model == "pro" else "ok")
        return {"status": status, "error": "stalled at node 41" if status == "failed" else ""}

    return tables_of(study_of(full_rows(change)))


def test_a_mean_over_an_incomplete_set_is_partial_and_not_compared(holed: dict[str, Table]) -> None:
    cell = cell_at(holed["4-1"], "mean wall time (s)", 1)
    complete = 10e6 * 2.5 * 3.5 * 192
    lost = 10e6 * (4 * 6 + 1 * 1)
    assert cell.ours == pytest.approx((complete - lost) / 190 / 1e9)
    assert (cell.present, cell.expected, cell.is_partial, cell.difference) == (190, 192, True, None)
    assert cell.published == 0.550729


def test_complete_models_beside_it_are_compared(holed: dict[str, Table]) -> None:
    assert cell_at(holed["4-3"], "mean wall time (s)", 1).difference is not None
    assert cell_at(holed["4-12"], "k3", 1).difference is not None


def test_a_model_without_runs_is_a_gap(holed: dict[str, Table]) -> None:
    assert (holed["4-7"].present, holed["4-7"].expected) == (0, 192)
    cell = cell_at(holed["4-7"], "mean wall time (s)", 1)
    assert (cell.is_gap, cell.present, cell.published) == (True, 0, 1.362831)
    assert all(cell_at(holed["4-18"], model, column).is_gap for model in FACTS for column in range(1, 6))


def test_a_partial_ratio_uses_runs_with_a_counterpart(holed: dict[str, Table]) -> None:
    """A hole at TP16 alone would pull the plain ratio of means below 4."""
    cell = cell_at(holed["4-13"], "flash", 4)
    assert cell.ours == pytest.approx(4)
    assert (cell.present, cell.expected, cell.sample, cell.difference) == (34, 36, "matched pairs", None)


def test_a_partial_ranking_uses_complete_groups(holed: dict[str, Table]) -> None:
    best = cell_at(holed["4-11"], "flash", 1)
    assert (best.ours, best.present, best.expected, best.difference) == ("t6", 22, 24, None)


def test_the_overview_counts_runs_by_factor(holed: dict[str, Table]) -> None:
    counts = {(r[0].ours, r[1].ours): [cell.ours for cell in r[2:]] for r in holed["inventory"].rows}
    assert counts["all", ""] == [768, 768, 574, 1, 193]
    assert counts["model", "flash"] == [192, 192, 190, 1, 1]
    assert counts["topology", "t6"] == [128, 128, 95, 1, 32]


def test_failed_runs_are_listed_with_their_error(holed: dict[str, Table]) -> None:
    assert [[cell.ours for cell in r] for r in holed["failed"].rows] == [
        ["flash/t6/tp2ep16/dbt_direct/ib_hpcc", "stalled at node 41"]
    ]


def test_a_failed_run_shows_no_times(holed: dict[str, Table]) -> None:
    failed = next(r for r in holed["runs"].rows if r[1].ours == "failed")
    assert {cell.ours for cell in failed[2:]} == {""}


def test_holes_are_announced() -> None:
    rows = full_rows(lambda key: {"status": LOST.get(str(key), "ok")})
    text = notice_text(study_of(rows[:-8]))
    assert "758 of the study's 768 runs present; 8 are not planned" in text
    assert "1 failed and 1 have not run yet" in text


def test_an_empty_plan_gives_gaps_everywhere() -> None:
    tables = tables_of(study_of([]))
    for number in (f"4-{n}" for n in (1, 2, 10, 11, 14, 18, 19)):
        compared = [cell for r in tables[number].rows for cell in r if cell.published is not None]
        assert all(cell.difference is None or cell.ours == 0 for cell in compared), number


# --- cut runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut() -> Study:
    return study_of(full_rows(), layers=1)


def test_alike_layers_are_scaled_and_only_the_estimate_is_compared(cut: Study) -> None:
    cell = cell_at(tables_of(cut)["4-1"], "mean wall time (s)", 1)
    simulated = 10e-3 * 2.5 * 3.5
    assert cell.ours == pytest.approx(simulated)
    assert cell.scaled == pytest.approx(simulated * 43)
    assert cell.difference == pytest.approx(100 * (simulated * 43 / 0.550729 - 1))
    assert cell.note == "flash: 1 of 43 MoE layers; scaled by 43/1, not simulated"


def test_the_estimate_is_per_layer_run() -> None:
    cell = cell_at(tables_of(study_of(full_rows(), layers=2))["4-1"], "longest wall time (s)", 1)
    assert cell.scaled == pytest.approx(0.24 * 43 / 2)
    assert cell.note == "flash: 2 of 43 MoE layers; scaled by 43/2, not simulated"


@pytest.mark.parametrize(("number", "model", "dense"), [("4-3", "k3", 1), ("4-5", "glm", 3)])
def test_models_with_dense_layers_are_not_scaled(cut: Study, number: str, model: str, dense: int) -> None:
    cell = cell_at(tables_of(cut)[number], "mean wall time (s)", 1)
    assert cell.ours == pytest.approx(10e-3 * 2.5 * 3.5)
    assert (cell.scaled, cell.difference) == (None, None)
    assert f"{model}: 1 of" in cell.note
    assert f"plus all {dense} dense: no estimate" in cell.note


def test_cut_models_are_not_ranked_against_each_other(cut: Study) -> None:
    tables = tables_of(cut)
    for number in ("4-18", "4-19"):
        pairs = [r for r in tables[number].rows if "k3" in str(r[0].ours) or "glm" in str(r[0].ours)]
        assert pairs
        assert all(
            cell.ours is None and cell.difference is None for r in pairs for cell in r if cell.published
        )


def test_points_of_cut_runs(cut: Study) -> None:
    cell = cell_at(tables_of(cut)["points"], "pro/t6/tp2ep16/ring_direct/ib_cc0", 2)
    assert [cell.ours, cell.scaled] == pytest.approx([0.01, 0.61])
    assert cell.difference == pytest.approx(100 * (0.61 / 0.342243 - 1))


def test_cut_runs_are_announced_first(cut: Study) -> None:
    first = analysis.notices(cut)[0]
    assert first.warning
    assert "4096 tokens per rank, 1 MoE layer of each model" in first.text
    assert "NOT comparable with the published full-model times" in first.text
    assert len(first.details) == 4


def test_asking_for_all_or_more_layers_is_the_full_model() -> None:
    tables = tables_of(study_of(full_rows(), layers=75))
    full = [cell_at(tables[number], "mean wall time (s)", 1) for number in ("4-1", "4-5", "4-7")]
    assert all(cell.scaled is None and cell.difference is not None for cell in full)
    assert cell_at(tables["4-3"], "mean wall time (s)", 1).difference is None


def test_another_token_count_is_not_compared() -> None:
    study = study_of(full_rows(lambda key: {"tokens": 256}), tokens=256)
    cell = cell_at(tables_of(study)["4-1"], "mean wall time (s)", 1)
    assert (cell.scaled, cell.difference) == (None, None)
    assert cell.note == "flash: 256 tokens per rank, not 4096"
    assert "256 tokens per rank" in analysis.notices(study)[0].text
    assert analysis.notices(study)[0].warning


def test_a_full_study_has_no_warning() -> None:
    assert [notice.warning for notice in analysis.notices(study_of(full_rows()))] == [False]


# --- other models and levels --------------------------------------------------------------------


def other_model(**changes: object) -> list[Row]:
    keys = [key for key in all_runs() if key.model == "flash"]
    return [
        row(key, **{"model": "mine", "key": str(key).replace("flash", "mine"), **changes}) for key in keys
    ]


def test_another_model_has_marked_rows_without_published_values() -> None:
    study = study_of([*full_rows(), *other_model()])
    tables = tables_of(study)
    for number in ("4-10", "4-11", "4-12", "4-13", "4-14", "4-15", "4-16", "4-17"):
        cells = next(r for r in tables[number].rows if r[0].ours == "mine (not in the study)")
        assert all(cell.ours is not None and cell.published is None for cell in cells[1:])
    assert cell_at(tables["4-12"], "mine (not in the study)", 1).ours == pytest.approx(
        10e-3 * 22 / 6, rel=0.1
    )
    assert cell_at(tables["4-18"], "flash", 1).difference is not None
    assert "model: mine" in notice_text(study)


def test_an_unknown_model_that_was_cut_says_so() -> None:
    study = study_of(other_model(), layers=2)
    assert study.scopes["mine"].reason == "mine: 2 MoE layers of an unknown number"
    assert analysis.notices(study)[0].warning


def test_levels_outside_the_study_enter_no_set() -> None:
    key = all_runs()[0]
    extra = row(key, key=str(key).replace("ring_direct", "ring_ring"), collective="ring_ring", wall_ns=10**15)
    plain, with_extra = tables_of(study_of(full_rows())), tables_of(study_of([*full_rows(), extra]))
    assert with_extra["4-1"] == plain["4-1"]
    assert len(with_extra["runs"].rows) == 769
    assert ("collective", "ring_ring (not in the study)") in {
        (r[0].ours, r[1].ours) for r in with_extra["inventory"].rows
    }


def test_changed_parameters_are_announced() -> None:
    study = study_of(full_rows(), design='{"overrides": {"rate_ai_bps": 5}}')
    assert "rate_ai_bps = 5" in notice_text(study)
    assert "cannot be read" in notice_text(study_of(full_rows(), design="{"))


# --- run tables ---------------------------------------------------------------------------------


def structured(rows: list[Row]) -> np.ndarray:
    """Runs as a reader gives them."""
    table = analysis.from_rows(rows)
    dtype = [(name, "U128") for name in table.text] + [
        (name, "<u8") for name in table.numbers if name != "layers"
    ]
    out = np.zeros(len(rows), [*dtype, ("layers", "<i8")])
    for name, values in {**table.text, **table.numbers}.items():
        out[name] = values
    return out


class FakeResults:
    def __init__(self, runs: np.ndarray) -> None:
        self.runs, self.attrs = runs, {"tokens": 4096, "layers": -1}


def test_a_run_table_from_a_reader_equals_the_one_from_rows() -> None:
    rows = full_rows()
    read = analysis.from_results(FakeResults(structured(rows)))
    built = analysis.from_rows(rows)
    assert read.text == built.text
    assert all(np.array_equal(read.numbers[name], built.numbers[name]) for name in built.numbers)


def test_a_reader_without_a_column_is_refused_by_name() -> None:
    runs = structured(full_rows())
    kept = [name for name in runs.dtype.names or () if name != "wall_ns"]
    with pytest.raises(InputError, match="wall_ns"):
        analysis.from_results(FakeResults(runs[kept]))


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(InputError, match=r"status.*'done'.*ok, failed, missing"):
        analysis.from_rows([row(all_runs()[0], status="done")])


def test_a_run_twice_is_refused() -> None:
    twice = [row(all_runs()[3])] * 2
    with pytest.raises(InputError, match=str(all_runs()[3])):
        analysis.from_rows(twice)


def test_a_wall_time_of_zero_gives_no_ratio() -> None:
    tables = tables_of(study_of(full_rows(lambda key: {"wall_ns": 0, "gpu_ns": 0, "comm_ns": 0})))
    cell = cell_at(tables["4-17"], "flash", 5)
    assert (cell.ours, cell.difference, cell.is_gap) == (None, None, True)
