from itertools import pairwise
from pathlib import Path

import pytest

from hpcmoe import catalog, design
from hpcmoe.design import RunKey
from hpcmoe.errors import InputError


def test_the_study_has_768_distinct_runs_in_order() -> None:
    runs = design.all_runs()
    assert len(set(runs)) == len(runs) == 768
    assert all(a < b for a, b in pairwise(runs))
    assert str(runs[0]) == "flash/t1/tp2ep16/ring_direct/ib_cc0"
    assert str(runs[1]) == "flash/t1/tp2ep16/ring_direct/ib_hpcc"
    assert str(runs[-1]) == "pro/t6/tp16ep2/dbt_direct/roce_dcqcn"


@pytest.mark.parametrize(
    ("subset", "count"),
    [(design.s_full, 768), (design.s_feedback, 576), (design.s_roce, 384), (design.s_network, 640)],
)
def test_subset_sizes(subset: object, count: int) -> None:
    assert callable(subset)
    assert sum(map(subset, design.all_runs())) == count


def test_keys_write_and_read() -> None:
    for key in design.all_runs():
        assert RunKey.parse(str(key)) == key


def test_degrees() -> None:
    key = RunKey.parse("glm/t3/tp16ep2/dbt_direct/roce_dcqcn")
    assert (key.tp, key.ep) == (16, 2)
    assert all(tp * ep == 32 for tp, ep in map(design.parse_strategy, design.STRATEGIES))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("glm/t3/tp16ep2/dbt_direct", "five parts"),
        ("gml/t3/tp16ep2/dbt_direct/ib_cc0", "unknown model .*allowed: glm, "),
        ("glm/t7/tp16ep2/dbt_direct/ib_cc0", "unknown topology"),
        ("glm/t3/tp16ep2/hd_direct/ib_cc0", "unknown collective"),
        ("", "five parts"),
    ],
)
def test_bad_keys(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunKey.parse(text)


def test_selection_is_ordered_and_without_repeats() -> None:
    chosen = design.select(["pro/t6/*", "*/t6/tp2ep16/ring_direct/ib_cc0"])
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 32 + 3


def test_selection_of_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="no run matches"):
        design.select(["*/t9/*"])


def test_extra_collectives_are_for_keys_written_out() -> None:
    text = "k3/t1/tp2ep16/ring_ring/ib_cc0"
    (key,) = design.select([text])
    assert str(key) == text
    assert not design.s_full(key)
    assert len(design.select(["k3/t1/tp2ep16/ring_ring/*"])) == 4
    assert len(design.select(["k3/t1/tp2ep16/*"])) == 8


def test_other_degrees_than_the_studys_are_written_out() -> None:
    keys = design.select(["flash/t1/tp8ep8/*/ib_cc0", "flash/t1/tp4ep4/ring_direct/ib_cc0"])
    assert [str(key) for key in keys] == [
        "flash/t1/tp4ep4/ring_direct/ib_cc0",
        "flash/t1/tp8ep8/ring_direct/ib_cc0",
        "flash/t1/tp8ep8/dbt_direct/ib_cc0",
    ]
    assert (keys[0].tp, keys[0].ep) == (4, 4)
    assert not design.in_study(keys[0])
    with pytest.raises(InputError, match="unknown strategy"):
        RunKey.parse("flash/t1/tp0ep8/ring_direct/ib_cc0")


def test_entries_of_the_user_stand_in_run_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    path = catalog.add("models", "mine", catalog.load("models", "glm"), about="A copy")
    assert path == tmp_path / "models" / "mine.yaml"
    assert path.read_text().startswith("# A copy\n")
    keys = design.select(["mine/t*/tp2ep16/ring_direct/ib_cc0", "pro/t1/tp2ep16/ring_direct/ib_cc0"])
    assert [key.model for key in keys] == ["pro"] + 6 * ["mine"]
    assert len(design.select(["*"])) == 768
    with pytest.raises(InputError, match="exists already"):
        catalog.add("models", "mine", {})
    with pytest.raises(InputError, match="have this name already"):
        catalog.add("models", "glm", {})
    with pytest.raises(InputError, match="not a name"):
        catalog.add("models", "My Model", {})
    catalog.add("models", "mine", {"title": "another"}, replace=True)
    assert catalog.load("models", "mine") == {"title": "another"}


@pytest.mark.parametrize("text", ["[", "- 1\n", "\xff"])
def test_a_broken_entry_of_the_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "bad.yaml").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"bad\.yaml: (line \d+: )?not (YAML|a mapping)"):
        catalog.load("models", "bad")


def test_every_level_has_a_catalog_entry() -> None:
    catalog.define({}, Path())  # a study file of another test lasts as long as the process
    assert set(design.MODELS) <= set(catalog.names("models"))
    assert set(design.TOPOLOGIES) < set(catalog.names("topologies"))
    assert set(design.NETWORKS) == set(catalog.names("networks"))
    assert set(design.COLLECTIVES) < set(catalog.names("collectives"))
    studied = {name for name in catalog.names("collectives") if catalog.load("collectives", name)["study"]}
    assert studied == set(design.COLLECTIVES)


def test_unknown_catalog_names_list_the_known() -> None:
    with pytest.raises(InputError, match="catalog's networks .*allowed: roce_hpcc"):
        catalog.load("networks", "roce_hpc")
