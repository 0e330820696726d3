"""The report on a study of the user's own: factors, matched pairs, best runs, bars."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hpcmoe import analysis, report
from hpcmoe.analysis import Table, own_study
from hpcmoe.analysis.own import OwnStudy

LEVELS = {
    "model": ["flash"],
    "topology": ["t1", "t6"],
    "strategy": ["tp8ep4", "tp2ep16"],
    "collective": ["ring_direct"],
    "network": ["ib_cc0"],
}
VARIANTS = {
    "tokens": [{"name": "64", "settings": {"tokens": 64}}, {"name": "128", "settings": {"tokens": 128}}],
    "mode": [{"name": "a", "settings": {}}, {"name": "b", "settings": {"u_target": "0.9"}}],
}
# Wall time is a product, so that the ratio of two levels is the same wherever it is taken.
TIMES = {
    "t1": 1,
    "t6": 2,
    "tp8ep4": 3,
    "tp2ep16": 1,
    "tokens=64": 10,
    "tokens=128": 40,
    "mode=a": 5,
    "mode=b": 4,
}


def rows() -> list[dict[str, Any]]:
    texts = [f"tokens={tokens},mode={mode}" for tokens in ("64", "128") for mode in "ab"]
    found = []
    for levels in itertools.product(*LEVELS.values(), texts):
        *fixed, variant = levels
        wall = 1000
        for level in (*fixed, *variant.split(",")):
            wall *= TIMES.get(level, 1)
        found.append(
            {
                "key": "/".join(levels),
                **dict(zip(LEVELS, fixed, strict=True)),
                "status": "ok",
                "wall_ns": wall,
                "gpu_ns": wall // 4,
                "comm_ns": wall - wall // 4,
                "tokens": int(variant[7:].split(",")[0]),
            }
        )
    return found


def attrs(**study: Any) -> dict[str, Any]:
    made = {"title": "Mine", "levels": LEVELS, "settings": {"layers": 1}, "variants": VARIANTS, **study}
    return {"tokens": 0, "layers": 1, "design": json.dumps({"study": made, "overrides": {}})}


def study_of(found: list[dict[str, Any]]) -> OwnStudy:
    return own_study(analysis.from_rows(found, attrs()))


def table(study: OwnStudy, slug: str) -> Table:
    tables = [item for section in analysis.own_sections(study, {}) for item in section.items]
    return next(item for item in tables if isinstance(item, Table) and item.slug == slug)


def values(row: Any) -> list[Any]:
    return [cell.ours for cell in row]


def test_factors_are_those_of_the_file_in_its_order() -> None:
    study = study_of(rows())
    assert [factor.name for factor in study.varying] == ["topology", "strategy", "tokens", "mode"]
    assert study.varying[1].held == ("tp8ep4", "tp2ep16")
    assert [factor.name for factor in study.workloads] == ["model", "tokens"]
    assert [row[1].ours for row in table(study, "own-levels").rows if row[0].ours == "tokens"] == [
        "64",
        "128",
    ]


@pytest.mark.parametrize(
    ("factor", "ratio"), [("topology", 2), ("strategy", 1 / 3), ("tokens", 4), ("mode", 4 / 5)]
)
def test_levels_are_compared_over_matched_pairs(factor: str, ratio: float) -> None:
    first, second = table(study_of(rows()), f"own-effect-{factor}").rows
    assert values(first)[1:5] == [8, 1, 1, 1]
    assert values(second)[1] == 8
    assert values(second)[2:6] == pytest.approx([ratio] * 4)


def test_a_run_without_its_counterpart_is_in_no_pair() -> None:
    found = rows()
    found[0]["status"] = "failed"
    slow = next(
        row for row in found if row["key"].endswith("t6/tp2ep16/ring_direct/ib_cc0/tokens=128,mode=b")
    )
    slow["wall_ns"] *= 3
    _, second = table(study_of(found), "own-effect-topology").rows
    level, pairs, mean, smallest, largest, _, where = values(second)
    assert (level, pairs, smallest, largest) == ("t6", 7, 2, 6)
    assert mean == pytest.approx(2 * 3 ** (1 / 7))
    assert where == "tp2ep16 tokens=128 mode=b"


def test_levels_that_share_no_pair_are_a_gap() -> None:
    found = [
        row for row in rows() if (row["topology"], row["strategy"]) in (("t1", "tp8ep4"), ("t6", "tp2ep16"))
    ]
    _, second = table(study_of(found), "own-effect-topology").rows
    assert values(second) == ["t6", 0, None, None, None, None, ""]
    assert second[2].is_gap


def test_the_best_run_of_each_workload_and_topology() -> None:
    best = [values(row) for row in table(study_of(rows()), "own-best").rows]
    assert [row[:3] for row in best] == [
        ["flash", "64", "t1"],
        ["flash", "128", "t1"],
        ["flash", "64", "t6"],
        ["flash", "128", "t6"],
    ]
    assert best[1][3:5] == ["tp2ep16 mode=b", 40 * 4 * 1000 / 1e6]
    assert best[1][5] == pytest.approx(0.75)
    assert best[1][6:] == ["tp8ep4 mode=a", pytest.approx(3 * 5 / 4), 4]


def test_a_file_of_the_published_study_has_no_part_of_its_own() -> None:
    key = "flash/t1/tp2ep16/ring_direct/ib_cc0"
    plain = dict(zip(("key", *LEVELS), (key, *key.split("/")), strict=True)) | {"status": "missing"}
    study = own_study(analysis.from_rows([plain], {"tokens": 64}))
    assert (analysis.is_own(study), analysis.holds_published(study)) == (False, True)
    mine = {**plain, "key": key.replace("flash", "mine"), "model": "mine"}
    study = own_study(analysis.from_rows([mine], {"tokens": 64}))
    assert (analysis.is_own(study), analysis.holds_published(study)) == (True, False)


@pytest.mark.parametrize(
    ("tokens", "overrides", "held"), [(4096, {}, True), (64, {}, False), (4096, {"u": 1}, False)]
)
def test_a_study_file_holds_published_runs_at_their_size_only(
    tokens: int, overrides: Any, held: bool
) -> None:
    key = "flash/t1/tp2ep16/ring_direct/ib_cc0"
    row = dict(zip(("key", *LEVELS), (key, *key.split("/")), strict=True)) | {
        "status": "ok",
        "tokens": tokens,
    }
    made = {"study": {"title": "", "levels": LEVELS, "settings": {}, "variants": {}}, "overrides": overrides}
    study = own_study(analysis.from_rows([row], {"tokens": tokens, "design": json.dumps(made)}))
    assert analysis.is_own(study)
    assert analysis.holds_published(study) is held


def test_the_document_has_bars_and_no_published_tables() -> None:
    document = report.build_document(analysis.from_rows(rows(), attrs()), "own.h5", with_figures=True)
    assert document.title == "Mine"
    assert [section.title for section in document.sections] == [
        "What was run",
        "Best configurations",
        "Levels against each other",
        "Time of every run",
        "All runs",
    ]
    (figure,) = document.figures()
    assert figure.title == "Time of every run of flash"
    assert figure.svg.count("tokens=64 mode=b") == 4
    assert "n = 16 finished runs" in figure.notes[0]
    assert not [table for table in document.tables() if table.number]


def test_an_incomplete_file_says_so_first() -> None:
    found = rows()
    found[3]["status"], found[4]["status"] = "failed", "missing"
    (notice,) = analysis.own_notices(study_of(found))
    assert notice.warning
    assert "14 of 16 runs finished; 1 failed, 1 have not run yet" in notice.text


def test_many_runs_are_split_by_topology_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from hpcmoe.figures import stacks

    monkeypatch.setattr(stacks, "MOST_BARS", 5)
    first, second = stacks.stack_figures(study_of(rows()))
    assert (first.title, second.title) == (
        "Time of every run of flash on t1",
        "Time of every run of flash on t6",
    )
    assert "Only the 5 fastest are drawn" in first.notes[0]


def test_replicas_count_in_the_time_per_token() -> None:
    found = rows()
    for row in found:
        if row["strategy"] == "tp8ep4":
            row["strategy"] = "tp2ep4dp4"
            row["key"] = row["key"].replace("tp8ep4", "tp2ep4dp4")
    levels = {**LEVELS, "strategy": ["tp2ep16", "tp2ep4dp4"]}
    study = own_study(analysis.from_rows(found, attrs(levels=levels)))
    effect = table(study, "own-effect-strategy")
    assert [column.name for column in effect.columns][5:] == [
        "communication, mean",
        "per token, mean",
        "at the largest",
    ]
    assert values(effect.rows[1])[2:7] == pytest.approx([3, 3, 3, 3, 3 / 4])
    best = [values(row) for row in table(study, "own-throughput").rows]
    assert best[0] == ["flash", "64", "t1", "tp2ep4dp4 mode=b", pytest.approx(120 / 256), 8 // 2]
    assert values(table(study, "own-best").rows[0])[3] == "tp2ep16 mode=b"
