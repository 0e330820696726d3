"""``hpcmoe report``: from a results file to HTML, Markdown, CSV and figures on disk."""

import fnmatch
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from hpcmoe import analysis, catalog, design
from hpcmoe.analysis import Figure, ModelFacts, Notice, RunTable, Section, Table
from hpcmoe.errors import HpcmoeError, InputError
from hpcmoe.inspect_run import inspect_run
from hpcmoe.model import Model, load_model
from hpcmoe.published import load_claims, load_published
from hpcmoe.reporting import Document, csv_tables, html, markdown, run_page
from hpcmoe.reporting.claims import numbers
from hpcmoe.reporting.document import OWN_READING, READING, SCALED
from hpcmoe.reporting.run_page import page_name
from hpcmoe.reporting.text import has_scaled
from hpcmoe.store import open_results

MARKDOWN_NAME = "report.md"
HTML_NAME = "index.html"
CSV_FOLDER = "tables"
PAGE_FOLDER = "runs"


def write_report(
    results_path: str | os.PathLike[str],
    out_dir: str | os.PathLike[str],
    *,
    runs: Sequence[str] = (),
    with_figures: bool = True,
) -> list[Path]:
    """Writes ``index.html``, ``report.md``, ``tables/*.csv``, ``figures/*.png`` and ``*.pdf``, and for
    every finished run that matches one of the shell globs ``runs`` a page ``runs/*.html``, below
    ``out_dir`` and returns their paths.

    The results file may still be filling; what is missing is marked.  Files of an earlier report with
    the same names are replaced.  Raises HpcmoeError when figures are wanted and matplotlib is not
    installed, InputError when a glob matches no run with traces.
    """
    results_path, out_dir = Path(results_path), Path(out_dir)
    table = read_runs(results_path)
    keys = _matching(table, runs, results_path)
    pages = {key: f"{PAGE_FOLDER}/{page_name(key)}" for key in keys}
    document = build_document(table, results_path.name, with_figures=with_figures, pages=pages)
    contents: dict[Path, str | bytes] = {
        out_dir / HTML_NAME: html.render(document),
        out_dir / MARKDOWN_NAME: markdown.render(document),
    }
    contents |= {
        out_dir / CSV_FOLDER / f"{table.slug}.csv": csv_tables.render(table) for table in document.tables()
    }
    contents |= {
        out_dir / html.FIGURES / f"{figure.slug}.{kind}": data
        for figure in document.figures()
        for kind, data in figure.files.items()
    }
    written = [_write(path, content) for path, content in contents.items()]
    return written + list(_write_pages(results_path, out_dir, pages))


def _matching(table: RunTable, globs: Sequence[str], path: Path) -> list[str]:
    """Keys of finished runs that any glob matches; every glob has to match one."""
    finished = [
        key for key, status in zip(table.text["key"], table.text["status"], strict=True) if status == "ok"
    ]
    for glob in globs:
        if not any(fnmatch.fnmatchcase(key, glob) for key in finished):
            raise InputError(
                "no finished run matches", file=path, field="--runs", value=glob, allowed=finished[:5]
            )
    return [key for key in finished if any(fnmatch.fnmatchcase(key, glob) for glob in globs)]


def _write_pages(results_path: Path, out_dir: Path, pages: Mapping[str, str]) -> Iterator[Path]:
    """One page at a time: a run's traces can be large."""
    if not pages:
        return
    with open_results(results_path) as results:
        for key, name in pages.items():
            yield _write(out_dir / name, run_page.render(inspect_run(results, key), back=f"../{HTML_NAME}"))


def read_runs(results_path: Path) -> RunTable:
    """The run table of a results file; errors name the file."""
    with open_results(results_path) as results:
        try:
            table = analysis.from_results(results)
        except InputError as error:
            raise InputError(
                error.message, file=results_path, field=error.field, value=error.value, allowed=error.allowed
            ) from None
        programs = dict.fromkeys(str(record["program"]) for record in results.imports().values())
    return replace(table, attrs={**table.attrs, "programs": ", ".join(programs)})


def build_document(
    runs: RunTable, name: str, *, with_figures: bool = False, pages: Mapping[str, str] | None = None
) -> Document:
    """The report on a run table; ``name`` is shown as the file's, ``pages`` link runs to their pages."""
    own = analysis.own_study(runs)
    parts = []
    if analysis.is_own(own):
        parts.append(_own_part(own, with_figures=with_figures))
    if analysis.holds_published(own) or not parts:
        parts.append(_published_part(runs, with_figures=with_figures))
    return Document(
        title=parts[0].title,
        origin=_origin(runs.attrs, name),
        notices=tuple(notice for part in parts for notice in part.notices),
        sections=tuple(_distinct(section for part in parts for section in part.sections)),
        pages=pages or {},
        reading=tuple(_reading(parts)),
    )


@dataclass(frozen=True)
class _Part:
    """What a report says about a study."""

    title: str
    notices: Sequence[Notice]
    sections: Sequence[Section]
    reading: Sequence[tuple[str, str]]


def _reading(parts: Sequence[_Part]) -> Iterator[tuple[str, str]]:
    """What the terms mean; the estimates only where there are any."""
    items = [item for part in parts for section in part.sections for item in section.items]
    scaled = any(has_scaled(item) for item in items if isinstance(item, Table))
    for part in parts:
        yield from (line for line in part.reading if scaled or line[0] != SCALED)


def _distinct(sections: Iterable[Section]) -> Iterator[Section]:
    """Sections without what an earlier one has: the lists of all and of failed runs are in each part."""
    seen: set[str] = set()
    for section in sections:
        items = tuple(item for item in section.items if item.slug not in seen)
        seen.update(item.slug for item in items)
        if items:
            yield replace(section, items=items)


def _own_part(own: analysis.OwnStudy, *, with_figures: bool) -> _Part:
    sections = analysis.own_sections(own, catalog_facts(own.factors[0].held))
    drawn = _collection().draw_own_figures(own) if with_figures else ()
    sections = [section for section in _with_figures(sections, drawn) if section.items]
    return _Part(own.title or "Report on a study", analysis.own_notices(own), sections, OWN_READING)


def _published_part(runs: RunTable, *, with_figures: bool) -> _Part:
    facts, published = catalog_facts(sorted(set(runs.text["model"]))), load_published()
    study = analysis.build_study(runs, facts)
    claims = analysis.judge_claims(study, published, load_claims())
    claim_tables = (analysis.claims_table(claims, numbers), analysis.numbers_table(claims))
    overview, *rest = analysis.build_sections(study, published, facts)
    sections = [overview, Section("Claims", claim_tables), *rest]
    drawn = _collection().draw_figures(study, published) if with_figures else ()
    return _Part("Report on the study", analysis.notices(study), _with_figures(sections, drawn), READING)


def _with_figures(sections: list[Section], figures: Iterable[tuple[str, Figure]]) -> list[Section]:
    """The sections with their figures, which come with section titles, after their tables."""
    drawn: dict[str, list[Figure]] = {}
    for title, figure in figures:
        drawn.setdefault(title, []).append(figure)
    return [replace(section, items=(*section.items, *drawn.get(section.title, ()))) for section in sections]


def _collection() -> ModuleType:
    try:
        return importlib.import_module("hpcmoe.figures.collection")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise HpcmoeError(
            "figures need matplotlib: pip install 'hpcmoe[figures]', or leave them out with --no-figures"
        ) from None


def catalog_facts(others: Iterable[str] = ()) -> dict[str, ModelFacts]:
    """Architectures of the study's models and of others that the catalog has."""
    names = dict.fromkeys((*design.MODELS, *others))
    return {name: _facts(load_model(name)) for name in names if name in catalog.names("models")}


def _facts(model: Model) -> ModelFacts:
    return ModelFacts(
        model.name,
        model.all_reduce_width,
        model.layers,
        model.moe_layers,
        model.routed_experts,
        model.top_k,
        model.moe_intermediate,
    )


def _origin(attrs: Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    layers = attrs.get("layers", -1)
    version = attrs.get("format_version", "unknown")
    shown = ".".join(map(str, version)) if isinstance(version, list | tuple) else str(version)
    tokens = attrs.get("tokens", "unknown")
    return (
        ("results file", name),
        ("tokens per rank", "differ" if tokens == 0 else str(tokens)),
        ("MoE layers asked for", "all" if layers in (-1, None) else str(layers)),
        ("hpcmoe", str(attrs.get("hpcmoe_version", "unknown"))),
        ("commit", str(attrs.get("git_sha", "unknown"))),
        ("format", shown),
        *((("numbers imported from", str(attrs["programs"])),) if attrs.get("programs") else ()),
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the report's folder: {error.strerror}", file=folder) from None


def _write(path: Path, content: str | bytes) -> Path:
    """Whole files only: written beside and moved into place."""
    _make_folder(path.parent)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot write the report: {error.strerror}", file=path) from None
    return path
