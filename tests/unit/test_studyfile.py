"""Study files: reading, expansion to runs, and one clear line for each thing that can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcmoe import catalog, design
from hpcmoe.errors import InputError
from hpcmoe.scenario import scenario_from_key
from hpcmoe.studyfile import RunSettings, StudyDesign, from_json, read_study, write_example
from hpcmoe.studyfile.example import example

BASE: dict[str, Any] = {
    "models": ["flash"],
    "topologies": ["t1", "t6"],
    "strategies": ["tp2ep16", "tp8ep4"],
    "collectives": ["ring_direct"],
    "networks": ["ib_cc0"],
    "tokens": 64,
    "layers": 1,
}


@pytest.fixture(autouse=True)
def clean_catalog() -> Any:
    """What a study defines lasts as long as the process."""
    yield
    catalog.define({}, Path())


def study_of(folder: Path, **changes: Any) -> StudyDesign:
    """The study of BASE with other fields; None takes a field out."""
    content = {name: value for name, value in {**BASE, **changes}.items() if value is not None}
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return read_study(path)


class TestRuns:
    def test_are_the_cross_product_in_the_order_of_the_file(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, topologies=["t6", "t1"])
        assert [str(key) for key in study.keys] == [
            "flash/t6/tp2ep16/ring_direct/ib_cc0",
            "flash/t6/tp8ep4/ring_direct/ib_cc0",
            "flash/t1/tp2ep16/ring_direct/ib_cc0",
            "flash/t1/tp8ep4/ring_direct/ib_cc0",
        ]

    def test_the_published_study_is_a_study_file(self, tmp_path: Path) -> None:
        fields = ("models", "topologies", "strategies", "collectives", "networks")
        study = study_of(tmp_path, **dict.fromkeys(fields, "all"), tokens=4096, layers=None)
        assert list(study.keys) == design.all_runs()
        assert study.of_run(study.keys[0]) == RunSettings(4096, None, {})

    def test_include_and_exclude(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, include=["*/t6/*", "*/tp2ep16/*"], exclude=["*/t6/tp8ep4/*"])
        assert [(key.topology, key.strategy) for key in study.keys] == [("t1", "tp2ep16"), ("t6", "tp2ep16")]

    def test_variants_are_a_sixth_part_with_settings_of_their_own(self, tmp_path: Path) -> None:
        study = study_of(
            tmp_path,
            topologies=["t1"],
            strategies=["tp2ep16"],
            tokens=None,
            set={"u_target": 0.9},
            variants={"tokens": [256, 64], "buffer_bytes": ["4e6"]},
        )
        first, second = study.keys
        assert str(first) == "flash/t1/tp2ep16/ring_direct/ib_cc0/tokens=256,buffer_bytes=4000000"
        assert design.RunKey.parse(str(first)) == first
        assert study.of_run(first).tokens == 256
        assert study.of_run(second).tokens == 64
        assert study.of_run(second).overrides == {"u_target": "0.9", "buffer_bytes": "4000000"}

    def test_a_variant_may_name_levels_that_set_several_things(self, tmp_path: Path) -> None:
        levels = [
            {"name": "gentle", "set": {"ecn": "*:100000:400000:0.1", "layers": 2}},
            {"name": "plain", "set": {}},
        ]
        study = study_of(tmp_path, variants={"marking": levels})
        gentle, plain = (study.of_variant(text) for text in ("marking=gentle", "marking=plain"))
        assert gentle.overrides == {"ecn": "*:100000:400000:0.1"}
        assert (gentle.layers, plain.layers, plain.overrides) == (2, 1, {})

    def test_batch_times_sequence_length_is_the_number_of_tokens(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, tokens=None, sequence_length=16, variants={"batch": [2, 8]})
        assert [study.of_variant(text).tokens for text in study.variant_texts] == [32, 128]

    def test_one_form_for_each_way_to_write_a_value(self, tmp_path: Path) -> None:
        texts = study_of(tmp_path, variants={"ecn_enabled": [True, "0"]}).variant_texts
        assert texts == ["ecn_enabled=true", "ecn_enabled=false"]
        texts = study_of(tmp_path, variants={"cc_mode": ["hpcc", 1]}).variant_texts
        assert texts == ["cc_mode=hpcc", "cc_mode=dcqcn"]

    def test_placement_is_a_setting_and_a_variant(self, tmp_path: Path) -> None:
        (tmp_path / "turned.txt").write_text("".join(f"{31 - rank}\n" for rank in range(32)))
        study = study_of(tmp_path, variants={"placement": ["contiguous", "round_robin", "turned.txt"]})
        assert study.variant_texts[1:] == ["placement=round_robin", "placement=turned.txt"]
        again = from_json(json.loads(json.dumps(study.to_json())))
        placed = [again.of_variant(text).placement for text in again.variant_texts]
        assert [placement.to_json() for placement in placed[:2]] == ["contiguous", "round_robin"]
        assert placed[2].hosts == tuple(range(31, -1, -1))
        scenario = scenario_from_key(study.keys[2], **vars(study.of_run(study.keys[2])))
        assert scenario.topology.node_names[:2] == ("gpu31", "gpu30")

    def test_a_routing_histogram_lies_beside_the_study(self, tmp_path: Path) -> None:
        (tmp_path / "even.csv").write_text("x")
        study = study_of(tmp_path, variants={"routing": ["even.csv"]})
        assert study.variant_texts == ["routing=even.csv"]
        assert study.of_variant("routing=even.csv").overrides == {"routing": str(tmp_path / "even.csv")}

    def test_survives_json(self, tmp_path: Path) -> None:
        path = tmp_path / "study.yaml"
        write_example(path)
        study = read_study(path)
        again = from_json(json.loads(json.dumps(study.to_json())))
        assert again == study
        assert again.keys == study.keys

    def test_selection_is_of_the_studys_own_keys(self, tmp_path: Path) -> None:
        study = study_of(tmp_path)
        assert [key.topology for key in study.select(["*/t6/*"])] == ["t6", "t6"]
        with pytest.raises(InputError, match="no run of the study matches .*allowed: flash/t1"):
            study.select(["flash/t2/*"])
        with pytest.raises(InputError, match="no such run in the study"):
            study.key("flash/t2/tp2ep16/ring_direct/ib_cc0")


class TestDefinitions:
    def test_a_network_mode_on_a_base(self, tmp_path: Path) -> None:
        tight = {
            "name": "tight",
            "base": "roce_dcqcn",
            "set": {"buffer_bytes": 4_000_000, "external_delay": "3us"},
        }
        study = study_of(tmp_path, networks=["roce_dcqcn", tight])
        base, own = (scenario_from_key(key, tokens=64, layers=1) for key in study.keys[:2])
        assert own.network["buffer_bytes"] == 4_000_000
        assert {n: v for n, v in own.network.items() if n != "buffer_bytes"} == {
            n: v for n, v in base.network.items() if n != "buffer_bytes"
        }
        assert {link.delay_ns for link in own.topology.links} - {
            link.delay_ns for link in base.topology.links
        } == {3000}

    def test_an_algorithm_per_dimension(self, tmp_path: Path) -> None:
        mine = {"name": "mine", "all_reduce": ["halvingDoubling", "ring"], "all_to_all": ["direct", "ring"]}
        (key, *_) = study_of(tmp_path, collectives=[mine]).keys
        made = scenario_from_key(key, tokens=64, layers=1).implementations
        assert [
            [entry[0] for entry in made[name]] for name in ("all_reduce", "reduce_scatter", "all_to_all")
        ] == [
            [2, 0],
            [2, 0],
            [1, 0],
        ]

    def test_a_model_from_a_config_beside_the_study(self, tmp_path: Path) -> None:
        config = {**catalog.load("models", "glm")["config"], "num_hidden_layers": 7}
        (tmp_path / "config.json").write_text(json.dumps(config))
        study = study_of(tmp_path, models=[{"name": "small", "config": "config.json"}], layers=None)
        scenario = scenario_from_key(study.keys[0], tokens=64)
        assert scenario.traces[0].layer.max() == 6

    def test_a_topology_file_beside_the_study(self, tmp_path: Path) -> None:
        text = yaml.safe_dump({**catalog.load("topologies", "t2"), "title": "mine"}, sort_keys=False)
        (tmp_path / "mine.yaml").write_text(text)
        study = study_of(tmp_path, topologies=["t2", {"name": "t2_own", "file": "mine.yaml"}])
        own, known = (scenario_from_key(study.keys[i], tokens=64, layers=1).topology for i in (2, 0))
        assert own == known

    def test_a_broken_file_beside_the_study_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "mine.yaml").write_text("servers: 2\nblok: {}\n")
        with pytest.raises(InputError, match=r"mine.yaml: "):
            study_of(tmp_path, topologies=[{"name": "mine", "file": "mine.yaml"}])
        (tmp_path / "config.json").write_text('{"hidden_size": 8}')
        with pytest.raises(InputError, match=r"config.json: no num_hidden_layers"):
            study_of(tmp_path, models=[{"name": "small", "config": "config.json"}])

    def test_are_those_of_the_last_study_only(self, tmp_path: Path) -> None:
        mine = {"name": "mine", "all_reduce": ["ring", "ring"], "all_to_all": ["ring", "ring"]}
        study_of(tmp_path, collectives=[mine])
        study_of(tmp_path, collectives=[mine])
        assert "mine" in catalog.names("collectives")
        study_of(tmp_path)
        assert "mine" not in catalog.names("collectives")


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"modles": ["flash"]}, r"line 15: modles: unknown field \(got 'modles'\); allowed: models, "),
    ({"models": None}, r"models: missing; allowed: a list of names, or 'all'"),
    ({"models": []}, r"line 1: models: the list is empty; allowed: at least one entry"),
    ({"models": "flash"}, r"line 1: models: not a list \(got 'flash'\)"),
    ({"models": ["flahs"]}, r"line 2: models: unknown model \(got 'flahs'\); allowed: flash, "),
    ({"strategies": ["tp2ep16", "tp2pe16"]}, r"line 8: strategies: unknown strategy \(got 'tp2pe16'\)"),
    ({"strategies": ["tp2ep16", "tp2ep16dp1"]}, r"line 8: strategies: given twice \(got 'tp2ep16dp1'\)"),
    ({"strategies": ["tp8ep8"]}, r"line 6: strategies: tp8ep8 needs 64 GPUs and t1 has 32 .*exclude: "),
    ({"strategies": [{"name": "tp2ep16"}]}, r"line 7: strategies: a strategy is a name"),
    ({"topologies": ["t1", 6]}, r"line 5: topologies: unknown topology \(got 6\); allowed: "),
    ({"exclude": ["*/t7/*"]}, r"exclude: matches no run \(got '\*/t7/\*'\); allowed: patterns on"),
    ({"exclude": [7]}, r"exclude: not a shell pattern \(got 7\)"),
    ({"exclude": ["*"]}, r"exclude: no run is left"),
    ({"tokens": 0}, r"line 13: tokens: bad value \(got 0\); allowed: integers from 1"),
    ({"tokens": "many"}, r"line 13: tokens: bad value \(got 'many'\)"),
    ({"tokens": None}, r"tokens: tokens is missing; allowed: .*batch and sequence_length"),
    ({"batch": 4}, r"line 15: batch: given beside tokens"),
    ({"tokens": None, "batch": 4}, r"batch: sequence_length is missing beside batch"),
    ({"layers": 99}, r"line 14: layers: flash has 43 MoE layers \(got 99\); allowed: 1 to 43"),
    ({"set": {"u_targte": 1}}, r"line 16: set.u_targte: unknown parameter; allowed: u_target, "),
    ({"set": {"u_target": 7}}, r"line 16: set.u_target: bad value \(got 7\); allowed: numbers from 0 to 1"),
    ({"set": ["u_target"]}, r"line 15: set: not a mapping"),
    ({"strategies": ["tp2ep2pp2"]}, r"strategies: tp2ep2pp2 has 2 stages and flash runs 1 layers"),
    ({"set": {"routing": "none.csv"}}, r"set.routing: no such file"),
    ({"placement": "rond_robin"}, r"placement: no such placement, .*allowed: round_robin, contiguous"),
    ({"placement": [0, 1]}, r"placement: not a placement"),
    ({"variants": {"placement": ["a/b.txt"]}}, r"variants.placement: .*a/b.txt"),
    ({"title": 5}, r"line 15: title: not a text \(got 5\)"),
    ({"variants": {"u_target": []}}, r"variants.u_target: not a list with at least one level"),
    ({"variants": {"u_target": [0.9, "0.90"]}}, r"variants.u_target: given twice \(got '0.9'\)"),
    ({"variants": {"u_targte": [0.9]}}, r"variants.u_targte: unknown parameter .*allowed: u_target, "),
    ({"variants": {"ecn": ["*:1:2:0.5"]}}, r"variants.ecn: cannot stand in a run key; name the level"),
    ({"variants": {"model": ["flash"]}}, r"variants.model: not a name for a variant"),
    ({"variants": {"tokens": [64, 128]}}, r"variants.tokens: tokens is also set for all runs"),
    ({"variants": {"a": [{"name": "b"}]}}, r"variants.a: not a level .*allowed: a value, or \{name: text"),
    (
        {"variants": {"u_target": [0.9], "a": [{"name": "b", "set": {"u_target": 0.8}}]}},
        r"variants.a: u_target is set by u_target already",
    ),
    ({"networks": [{"name": "ib_cc0"}]}, r"networks: the catalog's networks have this name already"),
    ({"networks": [{"name": "x", "base": "ib"}]}, r"line 12: networks.set: missing; allowed: name, "),
    ({"networks": [{"name": "x", "base": "ib", "set": {}}]}, r"line 13: networks.base: unknown network"),
    (
        {"networks": [{"name": "x", "base": "ib_cc0", "set": {"peak_perf_tflops": 1}}]},
        r"networks.set.peak_perf_tflops: no network parameter",
    ),
    ({"collectives": [{"name": "Mine!"}]}, r"collectives.name: not a name \(got 'Mine!'\)"),
    (
        {"collectives": [{"name": "x", "all_reduce": ["ring", "rign"], "all_to_all": ["ring", "ring"]}]},
        r"collectives.all_reduce: unknown algorithm \(got 'rign'\)",
    ),
    (
        {"collectives": [{"name": "x", "all_reduce": ["ring"], "all_to_all": ["ring", "ring"]}]},
        r"all_reduce: not a list with an algorithm per logical dimension .*2 to 4 of them",
    ),
    ({"models": [{"name": "x", "config": "none.json"}]}, r"models.config: no such file"),
    (
        {"variants": {name: list(range(1, 201)) for name in ("batch", "mi_thresh", "buffer_bytes")}},
        r"too many runs \(got 32000000\); allowed: up to 100000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=[str(changes)[:60] for changes, _ in FAULTS])
def test_what_is_wrong_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        study_of(tmp_path, **changes)
    assert str(caught.value).startswith(f"{tmp_path / 'study.yaml'}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [flash\ntokens: 4\n", r"line 2: not YAML: expected ',' or ']'"),
        ("models: [flash]\nmodels: [glm]\n", r"line 2: given twice: models"),
        ("- flash\n", r"not a mapping of names to values"),
        ("", r"not a mapping of names to values"),
        ("1: 2\n", r"line 1: a name has to be text"),
        ("title: !!python/name:os.system\n", r"line 1: not a value"),
        ("a: &a [*a]\n", r"line 1: nested too deeply"),
        ("title: \xff\n", r"not UTF-8 text: invalid start byte at byte 7"),
    ],
)
def test_what_is_no_yaml_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=message):
        read_study(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: No such file"):
        read_study(tmp_path / "study.yaml")
    with pytest.raises(InputError, match="cannot read: Is a directory"):
        read_study(tmp_path)
    write_example(tmp_path / "study.yaml")
    with pytest.raises(InputError, match="exists already"):
        write_example(tmp_path / "study.yaml")
    with pytest.raises(InputError, match="cannot write: No such file"):
        write_example(tmp_path / "none" / "study.yaml")


def test_the_example_explains_every_field() -> None:
    from hpcmoe.studyfile.reading import FIELDS

    assert [name for name in FIELDS if name not in example()] == []


def test_the_study_of_the_documentation_is_one(tmp_path: Path, checkout: Path) -> None:
    page = (checkout / "docs" / "your-study.md").read_text(encoding="utf-8")
    whole, variants = (block.split("```")[0] for block in page.split("```yaml\n")[1:])
    path = tmp_path / "study.yaml"
    path.write_text(whole)
    assert len(read_study(path).keys) == 2 * 3 * 4 * 3  # t6 has one network mode
    path.write_text(whole[: whole.index("variants:")] + "batch: 1\n" + variants)
    assert read_study(path).variant_texts[0] == "u_target=0.9,marking=early"
