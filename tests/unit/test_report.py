"""The report on disk: a real results file in, HTML, Markdown and CSV out."""

import csv
import importlib
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest

from hpcmoe import analysis, cli, report
from hpcmoe.analysis.table import COUNT, FRACTION, INTEGER, RATIO, RELATIVE, SECONDS, TEXT, Cell, difference
from hpcmoe.design import FACTORS, all_runs, select
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.reporting import Document, csv_tables, html, markdown, text
from hpcmoe.store import layout

VOID = {"meta", "input", "wbr", "br"}
OUTWARD = r"https?:|@import|url\((?!#)|<link|<img|<iframe"
"""What would make a page ask for something."""
FIGURES = [
    "3-1", *(f"A-{n}" for n in range(1, 7)), *(f"4-{n}" for n in range(1, 5)), "4-5", "4-6", "4-7"
]  # fmt: skip
HOSTILE = '<script>alert("x")</script> | a\nb'


@pytest.fixture
def results_file(tmp_path: Path) -> Path:
    """All 768 runs planned; flash finished but for one failed run, the rest missing."""
    path = tmp_path / "study.h5"
    keys = [str(key) for key in all_runs()]
    runs = [layout.RunSpec(key, 1, 2) for key in keys]
    layout.create(path, layout.FileSpec(runs, FACTORS, tokens=4096, layers=1))
    with h5py.File(path, "r+") as file:
        rows = file["/runs"][...]
        done = slice(0, 192)
        rows["status"][done], rows["tokens"][done], rows["layers_simulated"][done] = 1, 4096, 1
        rows["wall_ns"][done] = 3_000_000 + np.arange(192) * 1000
        rows["gpu_ns"][done] = 500_000
        rows["comm_ns"][done] = rows["wall_ns"][done] - 500_000
        rows["status"][7], rows["error"][7] = 2, HOSTILE.encode()
        file["/runs"][...] = rows
    return path


def document_of(rows: list[dict[str, object]], **attrs: object) -> Document:
    table = analysis.from_rows(rows, {"tokens": 4096, "layers": -1, **attrs})
    return report.build_document(table, "study.h5")


def rows_of(pattern: str, **changes: object) -> list[dict[str, object]]:
    return [
        {
            "key": str(key),
            "status": "ok",
            "tokens": 4096,
            "wall_ns": 10**8,
            "gpu_ns": 10**7,
            "comm_ns": 9 * 10**7,
        }
        | {factor: getattr(key, factor) for factor in FACTORS}
        | changes
        for key in select([pattern])
    ]


class Page(HTMLParser):
    """Checks nesting while collecting ids, links, attributes and text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.names |= set(found)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if "href" in found else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


# --- files --------------------------------------------------------------------------------------


def test_write_report_makes_one_page_one_text_and_a_csv_per_table(results_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report"
    written = report.write_report(results_file, out)  # the one test here that draws the figures
    assert written[:2] == [out / "index.html", out / "report.md"]
    names = {path.name for path in written[2:]}
    tables = [*(f"4-{n}" for n in range(1, 21)), *(f"3-{n}" for n in range(1, 10)), "A-1"]
    assert {f"table-{number}.csv" for number in tables} <= names
    assert {"points.csv", "runs.csv", "failed.csv", "claims.csv", "claim-numbers.csv"} <= names
    assert {f"figure-{number}.{kind}" for number in FIGURES for kind in ("png", "pdf")} <= names
    assert sorted(written) == sorted(path for path in out.rglob("*") if path.is_file())
    page = Page((out / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {f"figure-{number}" for number in FIGURES} <= set(page.ids)
    assert not re.search(OUTWARD, (out / "index.html").read_text(encoding="utf-8"))
    files = {link for link in page.links if not link.startswith(("#", "data:"))}
    assert [link for link in sorted(files) if not (out / link).is_file()] == []
    assert f"![Figure {FIGURES[0]}." in (out / "report.md").read_text(encoding="utf-8")


def write_report(results: Path, out: Path) -> list[Path]:
    """A report without figures, which take seconds to draw."""
    return report.write_report(results, out, with_figures=False)


def test_the_report_of_a_real_file(results_file: Path, tmp_path: Path) -> None:
    write_report(results_file, tmp_path / "report")
    shown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "* tokens per rank: 4096" in shown
    assert "1 MoE layer of each model" in shown
    assert "NOT comparable with the published full-model times" in shown
    assert "flash: 1 of 43 MoE layers; scaled by 43/1, not simulated" in shown
    assert "* **scaled** marks" in shown
    assert "191 of the study's 768 runs present; 0 are not planned" in shown
    assert "Partial: 191 of 192 runs present." in shown
    assert "Gap: 0 of 192 runs present." in shown
    assert "partial, n = 191 of 192 runs" in shown
    point = next(
        line for line in shown.splitlines() if line.startswith("| flash/t1/tp2ep16/ring_direct/ib_cc0 |")
    )
    estimate = 3e-3 * 43
    change = 100 * (estimate / 0.131895 - 1)
    expected = f"| 0.003000 | {estimate:.6f} | 0.131895 | {change:+.1f} % |".replace("-", "\N{MINUS SIGN}")
    assert point.endswith(expected)


def test_a_report_on_whole_models_does_not_speak_of_scaling() -> None:
    shown = markdown.render(document_of(rows_of("flash/*/*/*/*")))
    assert "all layers. Times stand for the full models" in shown
    assert "scaled" not in shown
    assert "gap: 0 of 20 matched runs with EP ring (ring_ring), outside the study's 768" in shown


def test_two_reports_on_one_file_are_equal(results_file: Path, tmp_path: Path) -> None:
    first = write_report(results_file, tmp_path / "a")
    second = write_report(results_file, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    again = write_report(results_file, tmp_path / "a")
    assert again == first


def test_a_new_report_replaces_the_list_of_failed_runs(results_file: Path, tmp_path: Path) -> None:
    write_report(results_file, tmp_path / "out")
    failed = tmp_path / "out" / "tables" / "failed.csv"
    assert len(failed.read_text(encoding="utf-8").splitlines()) == 2
    with h5py.File(results_file, "r+") as file:
        rows = file["/runs"][...]
        rows["status"][7] = 1
        file["/runs"][...] = rows
    write_report(results_file, tmp_path / "out")
    assert failed.read_text(encoding="utf-8") == "run,error,remarks\n"


def test_a_missing_or_foreign_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.h5"):
        write_report(tmp_path / "none.h5", tmp_path / "out")
    (tmp_path / "text.h5").write_text("no")
    with pytest.raises(InputError, match=r"text\.h5"):
        write_report(tmp_path / "text.h5", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(results_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match=r"cannot make the report's folder"):
        write_report(results_file, tmp_path / "out")


def test_catalog_facts_agree_with_the_published_proxies() -> None:
    facts = report.catalog_facts()
    assert (facts["k3"].tp_proxy, facts["k3"].ep_proxy, facts["k3"].dense_layers) == (333312, 5275648, 1)
    assert (facts["glm"].tp_proxy, facts["glm"].ep_proxy, facts["glm"].dense_layers) == (479232, 3686400, 3)


# --- HTML ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile() -> Document:
    rows = rows_of("*/t6/*") + rows_of("flash/t1/*", status="failed", error=HOSTILE)
    rows += [
        row | {"model": HOSTILE, "key": f"{HOSTILE}/{row['topology']}"}
        for row in rows_of("flash/t1/tp2ep16/ring*/ib_cc0")
    ]
    return document_of(rows)


def test_the_page_is_well_formed_and_its_links_resolve(hostile: Document) -> None:
    page = Page(html.render(hostile))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {table.slug for table in hostile.tables()} <= set(page.ids)


def test_the_page_requests_nothing(hostile: Document) -> None:
    source = html.render(hostile)
    assert not re.search(OUTWARD, source)
    assert not {"src", "srcset", "background", "action"} & Page(source).names
    assert source.count("<script>") == 1
    assert "prefers-color-scheme: dark" in source


def test_text_from_a_file_is_shown_and_not_interpreted(hostile: Document) -> None:
    source = html.render(hostile)
    assert "<script>alert" not in source
    assert '<script>alert("x")</script>' in Page(source).text
    assert "<script>" not in markdown.render(hostile)


# --- Markdown and CSV ---------------------------------------------------------------------------


def test_markdown_rows_have_as_many_cells_as_their_heading(hostile: Document) -> None:
    blocks = re.findall(r"(?:^\|.*\n)+", markdown.render(hostile), re.MULTILINE)
    assert len(blocks) == len(list(hostile.tables()))
    for block in blocks:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block.splitlines()[0]


def test_csv_holds_full_digits_and_every_part(hostile: Document) -> None:
    table = next(table for table in hostile.tables() if table.number == "4-12")
    parsed = list(csv.DictReader(io.StringIO(csv_tables.render(table))))
    flash = next(row for row in parsed if row["model"] == "flash")
    assert flash["tp2ep16 [s]"] == "0.1"
    assert flash["tp2ep16 published [s]"] == "0.216811"
    assert flash["tp2ep16 difference [%]"] == ""
    assert (flash["tp2ep16 n"], flash["tp2ep16 of"]) == ("6", "36")
    assert flash["remarks"] == "partial, n = 6 of 36 runs"


def test_csv_rows_are_rectangular(hostile: Document) -> None:
    for table in hostile.tables():
        rows = list(csv.reader(io.StringIO(csv_tables.render(table))))
        assert {len(row) for row in rows} == {len(rows[0])}
        assert len(rows) == len(table.rows) + 1


def test_every_table_says_partial_or_gap_where_it_is_not_complete(hostile: Document) -> None:
    for table in hostile.tables():
        for row in table.rows:
            for column, cell in zip(table.columns, row, strict=True):
                if column.compared and cell.expected and cell.present != cell.expected:
                    assert cell.difference is None
                    assert re.search("partial|gap", text.cell_text(cell).mark)


# --- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "value", "shown"),
    [
        (SECONDS, 0.5725, "0.572500"),
        (RATIO, 4.35, "4.350"),
        (FRACTION, 0.956, "95.6 %"),
        (RELATIVE, -0.0083, "\N{MINUS SIGN}0.8 %"),
        (INTEGER, 5275648, "5\N{NARROW NO-BREAK SPACE}275\N{NARROW NO-BREAK SPACE}648"),
        (COUNT, 0, "0"),
        (TEXT, "t6", "t6"),
    ],
)
def test_values_in_words(quantity: analysis.Quantity, value: float | str, shown: str) -> None:
    assert text.value_text(quantity, value) == shown


@pytest.mark.parametrize(
    ("quantity", "ours", "published", "shown"),
    [
        (SECONDS, 1.1, 1.0, "+10.0 %"),
        (SECONDS, 0.9999, 1.0, "0.0 %"),
        (RELATIVE, 0.25, 0.357, "\N{MINUS SIGN}10.7 pp"),
        (COUNT, 96, 120, "\N{MINUS SIGN}24"),
        (COUNT, 3, 0, "+3"),
        (SECONDS, 3.0, 0.0, ""),
        (TEXT, "t6", "t1", "differs"),
        (TEXT, "t6", "t6", "same"),
        (SECONDS, None, 1.0, ""),
    ],
)
def test_differences_in_words(quantity: analysis.Quantity, ours: float, published: float, shown: str) -> None:
    assert text.difference_text(quantity, difference(quantity, ours, published)) == shown


@pytest.mark.parametrize(
    ("cell", "mark"),
    [
        (Cell(SECONDS, ours=1.0, present=192, expected=192), ""),
        (Cell(SECONDS, ours=1.0, present=190, expected=192), "partial, n = 190 of 192 runs"),
        (Cell(SECONDS, present=0, expected=192), "gap: 0 of 192 runs"),
        (Cell(SECONDS, present=0, expected=1), "gap: no run"),
        (Cell(SECONDS, ours=1.0, present=4, expected=4, note="cut"), "not comparable"),
        (Cell(SECONDS, ours=1.0, scaled=43.0, present=4, expected=4, note="scaled"), ""),
        (Cell(COUNT, present=4, expected=4, note="cut"), "not compared"),
        (Cell(RATIO, present=4, expected=4), "undefined over 4 of 4 runs"),
    ],
)
def test_marks(cell: Cell, mark: str) -> None:
    assert text.cell_text(cell).mark == mark


def test_published_values_keep_their_digits() -> None:
    assert text.published_text(SECONDS, 0.6721) == "0.6721"
    assert text.published_text(RATIO, 20.6) == "20.6"
    assert text.published_text(FRACTION, 0.956) == "95.6 %"


# --- what the command line and the environment can do wrong ---------------------------------------


def test_a_report_without_matplotlib_has_no_figures_and_says_so(
    results_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.import_module

    def without_matplotlib(name: str) -> ModuleType:
        if name == "hpcmoe.figures.collection":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without_matplotlib)
    out = tmp_path / "out"
    assert cli.main(["report", str(results_file), "-o", str(out)]) == 0
    warning = capsys.readouterr().err
    assert "pip install 'hpcmoe[figures]'" in warning
    assert warning.count("\n") == 1
    assert (out / "index.html").exists()
    assert not (out / "figures").exists()
    assert cli.main(["report", str(results_file), "-o", str(out), "--no-figures"]) == 0
    assert capsys.readouterr().err == ""
    with pytest.raises(HpcmoeError, match="matplotlib"):
        report.write_report(results_file, out)


def test_a_folder_that_cannot_be_made_is_refused_first(
    results_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["report", str(results_file), "-o", str(tmp_path / "file" / "out")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_runs_that_no_glob_matches_are_refused(results_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no finished run matches.*k3"):
        report.write_report(results_file, tmp_path / "out", runs=["k3/*"], with_figures=False)
    assert not (tmp_path / "out").exists()


def test_themes_and_sorting_are_in_the_page(hostile: Document) -> None:
    source = html.render(hostile)
    assert 'id="theme"' in source
    assert ":root[data-theme=dark]" in source
    assert "prefers-color-scheme: dark" in source
    values = re.findall(r'data-v="([^"]*)"', source)
    assert len(values) > 1000
    assert all(float(value) is not None for value in values)


def test_a_run_with_a_page_is_linked(hostile: Document) -> None:
    key = next(str(key) for key in select(["flash/t6/tp2ep16/ring_direct/ib_cc0"]))
    linked = html.render(replace(hostile, pages={key: "runs/a.html"}))
    assert linked.count('<a href="runs/a.html">') == 2  # the list of runs and the published points
    assert '<a href="runs/a.html">' not in html.render(hostile)
