"""``hpcmoe model`` as typed, and an added model in every place that takes a run key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcmoe import catalog, cli
from hpcmoe.model import load_model, model_from_config
from hpcmoe.scenario import scenario_from_key

Hpcmoe = Callable[..., str]


@pytest.fixture
def hpcmoe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hpcmoe:
    """Runs a command that has to succeed, with an empty catalog of the user's, and gives what it prints."""
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path / "catalog"))
    catalog.forget()

    def run(*arguments: str | Path) -> str:
        assert cli.main([str(a) for a in arguments]) == 0
        return capsys.readouterr().out

    return run


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.main([str(a) for a in arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_an_added_model_is_that_of_its_file(hpcmoe: Hpcmoe, data: Path) -> None:
    file = data / "models" / "deepseek_v3.json"
    out = hpcmoe("model", "add", file, "--name", "v3", "--title", "DeepSeek-V3")
    assert "0 to 2 dense, 3 to 60 MoE" in out
    added, read = load_model("v3"), model_from_config(file)
    assert added.title == "DeepSeek-V3"
    assert (added.mla, added.dense_at, added.shared_intermediate) == (read.mla, read.dense_at, 2048)
    assert "v3 " in hpcmoe("model", "list")
    assert "v3 " in hpcmoe("list", "--models")


def test_names_that_are_taken(hpcmoe: Hpcmoe, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = data / "models" / "mixtral_8x7b.json"
    hpcmoe("model", "add", file, "--name", "mine")
    assert "exists already" in refused(capsys, "model", "add", file, "--name", "mine")
    hpcmoe("model", "add", file, "--name", "mine", "--replace", "--title", "Again")
    assert load_model("mine").title == "Again"
    assert "have this name already" in refused(capsys, "model", "add", file, "--name", "glm")
    assert "not a name" in refused(capsys, "model", "add", file, "--name", "Mine!")
    assert "removed" in hpcmoe("model", "remove", "mine")
    assert "unknown name" in refused(capsys, "model", "remove", "mine")
    assert "package's own" in refused(capsys, "model", "remove", "glm")


def test_a_layout_that_is_refused_leaves_no_entry(
    hpcmoe: Hpcmoe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text('{"n_embd": 768}')
    message = refused(capsys, "model", "add", tmp_path / "config.json", "--name", "gpt")
    assert "keys looked for: hidden_size" in message
    assert "gpt" not in catalog.names("models")


def test_what_is_left_out_is_said_when_adding(hpcmoe: Hpcmoe, data: Path, tmp_path: Path) -> None:
    config = json.loads((data / "models" / "mixtral_8x7b.json").read_text()) | {"sliding_window": 4096}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "note: sliding_window" in hpcmoe("model", "add", tmp_path / "config.json", "--name", "mine")


def test_a_broken_entry_does_not_hide_the_others(hpcmoe: Hpcmoe, tmp_path: Path) -> None:
    folder = tmp_path / "catalog" / "models"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_text("title: x")
    out = hpcmoe("model", "list")
    assert "glm " in out
    assert "not usable" in out


def test_show_by_name_and_by_file(hpcmoe: Hpcmoe, data: Path) -> None:
    file = data / "models" / "mixtral_8x7b.json"
    hpcmoe("model", "add", file, "--name", "mine")
    by_name = hpcmoe("model", "show", "mine", "--tokens", "64", "--json", "-")
    by_file = hpcmoe("model", "show", file, "--tokens", "64", "--json", "-")
    first, second = json.loads(by_name), json.loads(by_file)
    assert {**first, "name": "", "title": ""} == {**second, "name": "", "title": ""}


def test_numbers_of_show(hpcmoe: Hpcmoe, data: Path) -> None:
    """Mixtral at TP 4, EP 8 and 64 tokens: 64 * 4096 * 2 bytes reduced, 64 * 4096 * 2 * 2 / 8 exchanged."""
    shown = json.loads(
        hpcmoe("model", "show", data / "models" / "mixtral_8x7b.json", "--tokens", "64", "--json", "-",
               "--strategy", "tp4ep8", "--weight-bits", "8")
    )  # fmt: skip
    reduce, dispatch = shown["collectives"][0], shown["collectives"][1]
    assert (reduce["bytes"], reduce["bytes_sent"], reduce["count"]) == (524288, 2 * 524288 * 3 // 4, 32)
    assert (dispatch["bytes"], dispatch["bytes_sent"], dispatch["count"]) == (131072, 131072 * 7 // 8, 32)
    assert shown["flop_per_layer"]["MoE"]["experts"] == 6 * 64 * 2 * 4096 * 14336
    row = next(row for row in shown["residency"] if row["strategy"] == "tp4ep8")
    assert row["even_gb"] == pytest.approx(46.7 / 32, rel=1e-3)
    assert shown["layers"] == [{"first": 0, "last": 31, "kind": "MoE"}]


def test_show_of_a_calibrated_and_of_a_dense_model(hpcmoe: Hpcmoe, data: Path) -> None:
    assert "67.964 calibrated" in hpcmoe("model", "show", "flash")
    dense = hpcmoe("model", "show", data / "models" / "llama_3_8b.json")
    assert "no experts" in dense
    assert "all-to-all" not in dense
    assert "none: no group" in hpcmoe(
        "model", "show", data / "models" / "llama_3_8b.json", "--strategy", "tp1ep1"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nemo",), "unknown name in the catalog's models"),
        (("none.json",), "cannot read the model"),
        (("glm", "--tokens", "0"), "--tokens: bad value"),
        (("glm", "--weight-bits", "65"), "--weight-bits: bad value"),
        (("glm", "--strategy", "tp0ep1"), "strategy: not a strategy"),
    ],
)
def test_bad_arguments_of_show(
    hpcmoe: Hpcmoe, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "model", "show", *arguments)


def test_an_added_model_runs_and_is_exported(hpcmoe: Hpcmoe, data: Path, tmp_path: Path) -> None:
    hpcmoe("model", "add", data / "models" / "qwen3_30b_a3b.json", "--name", "qwen")
    key = "qwen/t6/tp2ep16/ring_direct/ib_cc0"
    out = json.loads(hpcmoe("run", key, "--tokens", "64", "--layers", "1", "--json", "-"))
    assert out["wall_ns"] == out["gpu_ns"] + out["comm_ns"]
    hpcmoe("export", key, tmp_path / "out", "--tokens", "64", "--layers", "1")
    assert (tmp_path / "out" / "et.31.et").is_file()
    assert "qwen" in hpcmoe("plan", "--select", "qwen/t*/tp2ep16/*/ib_cc0", "--tokens", "64", "--json", "-")


def test_a_dense_model_talks_over_tp_alone(hpcmoe: Hpcmoe, data: Path) -> None:
    """EP counts replicas: sixteen of them give every rank the traffic that one gives."""
    hpcmoe("model", "add", data / "models" / "llama_3_8b.json", "--name", "llama")
    replicas, alone = (
        scenario_from_key(f"llama/t6/{strategy}/ring_direct/ib_cc0", tokens=64, layers=2)
        for strategy in ("tp2ep16", "tp2ep1")
    )
    assert replicas.trace_digests[0] == alone.trace_digests[0]
    assert (replicas.ranks, alone.ranks) == (32, 2)
    collectives = [name for name in replicas.traces[0].names if ".ar" in name]
    assert len(collectives) == 4


def test_a_dense_run_says_that_its_replicas_do_not_talk(
    hpcmoe: Hpcmoe, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hpcmoe("model", "add", data / "models" / "llama_3_8b.json", "--name", "llama")
    size = ("--tokens", "8", "--layers", "1")
    assert cli.main(["run", "llama/t6/tp2ep16/ring_direct/ib_cc0", *size]) == 0
    shown = capsys.readouterr()
    assert "its 16 groups of 2 ranks are replicas" in shown.err
    assert "(8 tokens, 1 layers)" in shown.out
    assert cli.main(["run", "llama/t6/tp8ep1/ring_direct/ib_cc0", *size]) == 0
    assert capsys.readouterr().err == ""


def test_a_degree_of_one_has_no_collective(hpcmoe: Hpcmoe) -> None:
    traces = [
        scenario_from_key(f"flash/t6/{strategy}/ring_direct/ib_cc0", tokens=64, layers=1).traces[0]
        for strategy in ("tp1ep32", "tp32ep1")
    ]
    assert [name.split(".")[1] for name in traces[0].names] == ["attn", "disp", "exp", "comb", "ffn"]
    assert [name.split(".")[1] for name in traces[1].names] == ["attn", "ar1", "exp", "ffn", "ar2"]


def test_more_ep_ranks_than_experts_are_refused(
    hpcmoe: Hpcmoe, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hpcmoe("model", "add", data / "models" / "mixtral_8x7b.json", "--name", "mixtral")
    message = refused(capsys, "run", "mixtral/t6/tp2ep16/ring_direct/ib_cc0", "--tokens", "64")
    assert "more EP ranks than mixtral has experts" in message
    assert "EP up to 8" in message


def test_a_report_on_an_added_model(hpcmoe: Hpcmoe, data: Path, tmp_path: Path) -> None:
    """Its architecture and its runs are in the report, and another entry's fault is nobody's trouble."""
    hpcmoe("model", "add", data / "models" / "glm_4_5.json", "--name", "mine")
    (tmp_path / "catalog" / "models" / "bad.yaml").write_text("title: x")
    catalog.forget()
    select = ("--select", "mine/t[16]/tp2ep16/ring_direct/ib_cc0")
    hpcmoe("sweep", tmp_path / "r.h5", "--quiet", "--tokens", "64", "--layers", "1", *select)
    hpcmoe("report", tmp_path / "r.h5", "-o", tmp_path / "report", "--no-figures")
    text = (tmp_path / "report" / "report.md").read_text()
    # h, layers, MoE layers, experts, top-k, expert width, h * layers, h * top-k * MoE layers
    facts = "5 120 | 92 | 89 | 160 | 8 | 1 536 | 471 040 | 3 645 440"
    assert f"| mine | {facts} |" in text.replace("\u2009", " ").replace("\xa0", " ")
    assert "| mine/t6/tp2ep16/ring_direct/ib_cc0 | ok |" in text
