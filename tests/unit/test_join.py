"""hpcmoe join: the file of one sweep out of the files of several."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

from hpcmoe import cli
from hpcmoe.store import open_results, schema
from hpcmoe.store.paths import ResultPaths
from hpcmoe.store.verify import verify
from hpcmoe.sweep import main
from hpcmoe.sweep.lock import exclusive

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi"))
import fake_sweep as fake
import sweep_tools as tools

MODELS = ("k3", "flash", "glm")
RUNS = "t[13]/tp2ep16/*/ib_*"  # 8 of a model


def sweep(path: Path, *arguments: str, select: tuple[str, ...]) -> int:
    line = [str(path), "--quiet", "--select", *select, *arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "orig_argv", line)  # what tells sessions of one second apart
        return main(line, fake.fake_simulator())


def part_of(model: str) -> str:
    return f"{model}/{RUNS}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a part per model (k3.h5 ...), and all of them by one sweep (all.h5)."""
    folder = tmp_path_factory.mktemp("parts")
    for model in MODELS:
        assert sweep(folder / f"{model}.h5", select=(part_of(model),)) == 0
    assert sweep(folder / "all.h5", select=tuple(map(part_of, MODELS))) == 0
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> list[Path]:
    """Copies of the parts, in an order that is not that of the study."""
    return [Path(shutil.copy(made / f"{model}.h5", tmp_path)) for model in MODELS]


def join(out: Path, *parts: Path) -> int:
    return cli.main(["join", str(out), *map(str, parts)])


def design(path: Path) -> dict[str, Any]:
    with open_results(path) as results:
        return results.design


def test_is_the_file_of_one_sweep(
    parts: list[Path], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.h5"
    assert join(out, *parts) == 0
    assert capsys.readouterr().out == f"{out}: 24 runs of 3 file(s), 24 done, 0 failed, 0 missing\n"
    assert tools.datasets(out) == tools.datasets(made / "all.h5")
    verdict = verify(out)
    assert (verdict.checked, verdict.faults) == (24, ())
    assert design(out)["select"] == [part_of(model) for model in ("flash", "k3", "glm")]
    with open_results(out) as results, open_results(made / "all.h5") as expected:
        assert {**results.attrs, "design": ""} == {**expected.attrs, "design": ""}
        assert {**results.design, "select": []} == {**expected.design, "select": []}
        provenance = results.provenance()
        assert len(provenance["sessions"]) == 3
        assert all(provenance["runs"]["finished_unix_s"] > 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*(path.name for path in parts), "out.h5"]
    )


def test_is_continued_by_a_sweep_and_joined_again(parts: list[Path], made: Path, tmp_path: Path) -> None:
    two, out = tmp_path / "two.h5", tmp_path / "out.h5"
    assert join(two, parts[0], parts[2]) == 0
    before = two.read_bytes()
    assert sweep(two, select=(part_of("k3"), part_of("glm"))) == 0
    assert two.read_bytes() == before
    assert join(out, two, parts[1], parts[0]) == 0  # one of them a second time
    assert tools.datasets(out) == tools.datasets(made / "all.h5")
    with open_results(out) as results:
        assert len(results.provenance()["sessions"]) == len(MODELS)


def test_what_is_missing_stays_missing_until_a_sweep_does_it(
    parts: list[Path], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_rows(parts[1], 2)
    out = tmp_path / "out.h5"
    assert join(out, *parts) == 0
    assert "23 done, 0 failed, 1 missing" in capsys.readouterr().out
    assert verify(out).faults == ()
    assert tools.datasets(out) != tools.datasets(made / "all.h5")
    assert sweep(out, select=tuple(map(part_of, MODELS))) == 0
    assert tools.datasets(out) == tools.datasets(made / "all.h5")


def forget_rows(path: Path, run: int) -> None:
    with h5py.File(path, "r+") as file:
        rows = file["/runs"][...]
        rows["status"][run] = schema.STATUS["missing"]
        file["/runs"][...] = rows


def test_failed_runs_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAIL", "*/t3/*/ib_cc0")
    parts = [tmp_path / f"{model}.h5" for model in MODELS]
    for model, path in zip(MODELS, parts, strict=True):
        assert sweep(path, select=(part_of(model),)) == 1
    assert sweep(tmp_path / "all.h5", select=tuple(map(part_of, MODELS))) == 1
    assert join(tmp_path / "out.h5", *parts) == 0
    assert tools.datasets(tmp_path / "out.h5") == tools.datasets(tmp_path / "all.h5")


def test_parts_may_share_runs_with_the_same_results(made: Path, parts: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "t1.h5"
    assert sweep(other, select=("*/t1/tp2ep16/*/ib_cc0",)) == 0
    expected, out = tmp_path / "expected.h5", tmp_path / "out.h5"
    assert sweep(expected, select=(part_of("k3"), "*/t1/tp2ep16/*/ib_cc0")) == 0
    forget_rows(parts[0], 0)
    assert join(out, parts[0], other) == 0
    assert tools.datasets(out) == tools.datasets(expected)


STUDY = """\
title: {title}
models: [flash, k3]
topologies: [t1]
strategies: [tp2ep16]
collectives: [ring_direct]
networks: [{{name: shallow, base: roce_dcqcn, set: {{buffer_bytes: {buffer}}}}}]
layers: 2
variants: {{tokens: [64, 32]}}
"""


def own_study(folder: Path, buffer: str = "4e6", title: str = "mine") -> Path:
    path = folder / f"{title}.yaml"
    path.write_text(STUDY.format(buffer=buffer, title=title))
    return path


def study_part(path: Path, study: Path, select: str) -> Path:
    assert sweep(path, "--study", str(study), select=(select,)) == 0
    return path


def test_parts_of_a_study_of_ones_own(tmp_path: Path) -> None:
    study, out = own_study(tmp_path), tmp_path / "out.h5"
    parts = [study_part(tmp_path / f"{model}.h5", study, f"{model}/*") for model in ("k3", "flash")]
    whole = study_part(tmp_path / "all.h5", study, "*")
    assert join(out, *parts) == 0
    assert tools.datasets(out) == tools.datasets(whole)
    assert {**design(out), "select": ["*"]} == design(whole)


def test_studies_that_differ_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flash = study_part(tmp_path / "flash.h5", own_study(tmp_path), "flash/*")
    changed = own_study(tmp_path, buffer="8e6", title="renamed")
    k3 = study_part(tmp_path / "k3.h5", changed, "k3/*")
    plain = tmp_path / "plain.h5"
    assert sweep(plain, select=("k3/t1/tp2ep16/*/ib_cc0",)) == 0
    for other, field in ((k3, "study: "), (plain, "study: ")):
        assert join(tmp_path / "out.h5", flash, other) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"hpcmoe: error: {other}: {field}"), error
        assert f"not as in {flash}" in error
        assert error.count("\n") == 1


Change = Callable[[list[Path], Path], None]


def again(*arguments: str) -> Change:
    """The first part made otherwise."""

    def change(parts: list[Path], out: Path) -> None:
        parts[0].unlink()
        assert sweep(parts[0], *arguments, select=(part_of("k3"),)) == 0

    return change


def attribute(name: str, value: Any) -> Change:
    def change(parts: list[Path], out: Path) -> None:
        with h5py.File(parts[0], "r+") as file:
            file.attrs[name] = value

    return change


def design_of(name: str, value: Any) -> Change:
    def change(parts: list[Path], out: Path) -> None:
        attribute("design", json.dumps({**design(parts[0]), name: value}))(parts, out)

    return change


def damaged(table: str, column: str) -> Change:
    """A value in the rows of run 1 is another one."""

    def change(parts: list[Path], out: Path) -> None:
        with h5py.File(parts[0], "r+") as file:
            rows, last = file[table][...], file["/traces/index"][0]["fct_count"]
            rows[column][int(last) + 1 if table == "/traces/fct" else 1] += 1
            file[table][...] = rows

    return change


def other_results(parts: list[Path], out: Path) -> None:
    """Both parts have a run, done by two versions of the program."""
    parts[0].unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_VERSION", "2")
        assert sweep(parts[0], select=(part_of("flash"),)) == 0


def unmerged(parts: list[Path], out: Path) -> None:
    """As a sweep leaves it that was stopped before its end."""
    parts[0].unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hpcmoe.sweep.app.needs_merge", lambda _: False)
        patch.setattr("hpcmoe.sweep.app.remove_spool", lambda _: None)
        assert sweep(parts[0], select=(part_of("k3"),)) == 0


def without_spool(parts: list[Path], out: Path) -> None:
    unmerged(parts, out)
    shutil.rmtree(ResultPaths(parts[0]).spool)


def imported(parts: list[Path], out: Path) -> None:
    with h5py.File(parts[0], "r+") as file:
        del file["/provenance/sessions"]
        text = json.dumps([{"import": {"run": "x", "program": "other"}}])
        file["/provenance/sessions"] = text.encode()


REFUSED: dict[str, tuple[Change, str]] = {
    "out exists": (lambda parts, out: out.write_text("mine") and None, "out.h5: exists already"),
    "out is a part": (lambda parts, out: parts[0].rename(out) and None, "out.h5: exists already"),
    "spool of out": (lambda parts, out: ResultPaths(out).spool.mkdir(), "out.h5.spool: is left from an"),
    "twice": (lambda parts, out: parts.append(parts[0]), "k3.h5: is named twice"),
    "not there": (lambda parts, out: parts[0].unlink(), "k3.h5: no such results file"),
    "no HDF5": (lambda parts, out: parts[0].write_text("x") and None, "k3.h5: not an HDF5 file"),
    "tokens": (again("--tokens", "64"), "k3.h5: tokens: not as in .*got '64'.*allowed: 4096"),
    "layers": (again("--layers", "1"), "k3.h5: layers: not as in .*got '1'.*allowed: all"),
    "parameter": (again("--set", "u_target=0.9"), "k3.h5: overrides: .*got 'u_target=0.9'.*allowed: none"),
    "traces": (again("--no-traces"), "k3.h5: traces: .*got 'off'.*allowed: on"),
    "placement": (design_of("placement", "round_robin"), "k3.h5: placement: .*'round_robin'.*contiguous"),
    "version": (attribute("hpcmoe_version", "0.0.1"), "k3.h5: hpcmoe_version: .*got '0.0.1'"),
    "commit": (attribute("git_sha", "abc"), "k3.h5: git_sha: .*parts are made by one program.*got 'abc'"),
    "format": (
        attribute("format_version", [2, 0]),
        "k3.h5: format_version: only the hpcmoe .*'2.0'.*2.1",
    ),
    "new format": (attribute("format_version", [3, 0]), "format_version: results file of another format"),
    "selection": (design_of("select", ["k3/t1/tp2ep16/*/ib_cc0"]), "k3.h5: select: this hpcmoe takes other"),
    "own catalog": (design_of("select", ["mine/t1/tp2ep16/ring_direct/ib_cc0"]), "no meaning here: .*model"),
    "not merged": (unmerged, "k3.h5: traces .* still in its spool: 'hpcmoe merge .*k3.h5' takes them in"),
    "no spool": (without_spool, "its traces are neither in the file nor in the spool; 'hpcmoe verify"),
    "imported": (imported, "k3.h5: holds imported runs"),
    "rows": (damaged("/runs", "events"), "k3.h5: k3/t1/.*the checksum of its rows is wrong; 'hpcmoe verify"),
    "traces damaged": (damaged("/traces/fct", "fct_ns"), "k3.h5: k3/t1/.*the checksum of its traces is wro"),
    "two results": (other_results, "flash.h5: flash/t1/.*k3.h5 has other results of this run; remove one"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(
    change: Change, message: str, parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.h5"
    change(parts, out)
    parts.append(parts.pop(0))  # the first is compared with, here with a sound one
    if message.startswith("flash"):
        parts.sort(reverse=True)
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    assert join(out, *parts) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert error.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_part_that_a_sweep_is_writing_is_refused(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hpcmoe.sweep.join.holder", lambda paths: {} if paths.file == parts[1] else None)
    with exclusive(ResultPaths(parts[1])):
        assert join(tmp_path / "out.h5", *parts) == 2
    assert f"{parts[1]}: a sweep is writing this file" in capsys.readouterr().err


def test_a_place_that_cannot_be_written(parts: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert join(Path(), *parts) == 2
    assert "error: .: exists already" in capsys.readouterr().err
    assert join(parts[0].parent / "no" / "out.h5", *parts) == 4
    assert "nothing was changed" in capsys.readouterr().err


def test_real_runs(tmp_path: Path) -> None:
    """Traces with repeats, from the real simulator."""
    selected = {"flash": "flash/t[36]/tp2ep16/ring_direct/ib_cc0", "k3": "k3/t3/tp2ep16/ring_direct/ib_cc0"}
    options = ("--quiet", "--tokens", "64", "--layers", "3", "--select")
    for name, globs in (*((name, [glob]) for name, glob in selected.items()), ("all", selected.values())):
        assert main([str(tmp_path / f"{name}.h5"), *options, *globs]) == 0
    assert join(tmp_path / "out.h5", tmp_path / "k3.h5", tmp_path / "flash.h5") == 0
    with open_results(tmp_path / "out.h5") as results:
        assert all(len(results.traces(number).repeats) for number in range(3))
    assert tools.datasets(tmp_path / "out.h5") == tools.datasets(tmp_path / "all.h5")
