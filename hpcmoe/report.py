"""``hpcmoe report``: from a results file to Markdown, CSV and HTML on disk."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcmoe import analysis, catalog
from hpcmoe.analysis import ModelFacts, RunTable
from hpcmoe.errors import InputError
from hpcmoe.model import Model, load_model
from hpcmoe.published import load_published
from hpcmoe.reporting import Document, csv_tables, html, markdown
from hpcmoe.store import open_results

MARKDOWN_NAME = "report.md"
HTML_NAME = "index.html"
CSV_FOLDER = "tables"


def write_report(results_path: str | os.PathLike[str], out_dir: str | os.PathLike[str]) -> list[Path]:
    """Writes ``index.html``, ``report.md`` and ``tables/*.csv`` below ``out_dir`` and returns their
    paths.  The results file may still be filling; what is missing is marked.  Files of an earlier
    report with the same names are replaced."""
    results_path, out_dir = Path(results_path), Path(out_dir)
    document = build_document(read_runs(results_path), results_path.name)
    contents = {
        out_dir / HTML_NAME: html.render(document),
        out_dir / MARKDOWN_NAME: markdown.render(document),
    }
    contents |= {
        out_dir / CSV_FOLDER / f"{table.slug}.csv": csv_tables.render(table) for table in document.tables()
    }
    _make_folder(out_dir / CSV_FOLDER)
    for path, content in contents.items():
        _write(path, content)
    return list(contents)


def read_runs(results_path: Path) -> RunTable:
    """The run table of a results file; errors name the file."""
    with open_results(results_path) as results:
        try:
            return analysis.from_results(results)
        except InputError as error:
            raise InputError(
                error.message, file=results_path, field=error.field, value=error.value, allowed=error.allowed
            ) from None


def build_document(runs: RunTable, name: str) -> Document:
    """The report on a run table; ``name`` is shown as the file's."""
    facts = catalog_facts()
    study = analysis.build_study(runs, facts)
    return Document(
        title="Report on the study",
        origin=_origin(runs.attrs, name),
        notices=tuple(analysis.notices(study)),
        sections=tuple(analysis.build_sections(study, load_published(), facts)),
    )


def catalog_facts() -> dict[str, ModelFacts]:
    """Architectures of the models in the catalog."""
    return {name: _facts(load_model(name)) for name in catalog.names("models")}


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
    return (
        ("results file", name),
        ("tokens per rank", str(attrs.get("tokens", "unknown"))),
        ("MoE layers asked for", "all" if layers in (-1, None) else str(layers)),
        ("hpcmoe", str(attrs.get("hpcmoe_version", "unknown"))),
        ("commit", str(attrs.get("git_sha", "unknown"))),
        ("format", shown),
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the report's folder: {error.strerror}", file=folder) from None


def _write(path: Path, content: str) -> None:
    """Whole files only: written beside and moved into place."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(content, encoding="utf-8", newline="")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"cannot write the report: {error.strerror}", file=path) from None
