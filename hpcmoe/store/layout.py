"""Lays out a results file before any run starts.

Fixed-size rows live in contiguous datasets whose space is allocated when they are created, so
each has one place in the file that never moves. Ranks then write their own rows there with
plain positioned writes (rows.py), and HDF5 itself never has the file open for writing while a
sweep runs. That is what lets a kill at any instant leave a readable file, and why no MPI build
of HDF5 is needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from hpcmoe.errors import InputError
from hpcmoe.store import schema
from hpcmoe.store.guarded import guarded_file
from hpcmoe.store.paths import ResultPaths, publish
from hpcmoe.store.trouble import discard, storing


@dataclass(frozen=True)
class RunSpec:
    """A run as the file needs to know it beforehand: its key and how many rows it fills."""

    key: str
    rank_count: int
    link_count: int


@dataclass(frozen=True)
class FileSpec:
    """What a new file is made for. `factors` maps each factor to its names in code order; `study` is the
    definition of a study of the user's own, None for the published one."""

    runs: Sequence[RunSpec]
    factors: Mapping[str, Sequence[str]]
    tokens: int
    layers: int | None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    select: Sequence[str] = ()
    traces: bool = True
    software: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    placement: str | list[int | str] = "contiguous"
    study: Mapping[str, Any] | None = None

    def design(self) -> dict[str, Any]:
        """The `design` attribute."""
        study = {} if self.study is None else {"study": self.study}
        return {
            **study,
            "factors": {name: list(values) for name, values in self.factors.items()},
            "select": list(self.select),
            "tokens": self.tokens,
            "layers": self.layers,
            "overrides": dict(sorted(self.overrides.items())),
            "traces": self.traces,
            "placement": self.placement,
        }

    def root_attributes(self) -> dict[str, Any]:
        software = {"hpcmoe_version": "unknown", "git_sha": "unknown", "build_flags": "unknown"}
        return {
            "filetype": schema.FILETYPE,
            "format_version": np.array(schema.FORMAT_VERSION, dtype="<u4"),
            **software,
            **self.software,
            "tokens": self.tokens,
            "layers": -1 if self.layers is None else self.layers,
            "traces": int(self.traces),
            "design": json.dumps(self.design()),  # the order of a study's names has a meaning
        }


@dataclass(frozen=True)
class TablePlace:
    """Where the rows of one fixed-size table are: byte offset of row 0 and bytes per row."""

    offset: int
    itemsize: int
    rows: int


@dataclass(frozen=True)
class RowMap:
    """Places of all fixed-size tables, by path, and the factors that give /runs its type."""

    places: Mapping[str, TablePlace]
    factors: Mapping[str, Sequence[str]]


def initial_runs(spec: FileSpec) -> np.ndarray:
    """/runs before work begins: keys, factor codes and row ranges; status is missing throughout."""
    rows = np.zeros(len(spec.runs), schema.dtype(schema.RUNS, spec.factors))
    rank_offset = link_offset = 0
    for row, run in zip(rows, spec.runs, strict=True):
        row["key"] = schema.encode_text(run.key, schema.KEY_BYTES)
        for factor, name in zip(schema.FACTORS, run.key.split("/"), strict=False):  # a variant has no column
            row[factor] = list(spec.factors[factor]).index(name)
        row["rank_offset"], row["rank_count"] = rank_offset, run.rank_count
        row["link_offset"], row["link_count"] = link_offset, run.link_count
        rank_offset += run.rank_count
        link_offset += run.link_count
    return rows


def initial_tables(spec: FileSpec) -> dict[str, np.ndarray]:
    """Content of every fixed-size table before work begins, by path."""
    runs = initial_runs(spec)
    index = np.arange(len(runs), dtype="<u4")
    ranks = np.zeros(int(runs["rank_count"].sum()), schema.dtype(schema.RANKS))
    ranks["run"] = np.repeat(index, runs["rank_count"])
    links = np.zeros(int(runs["link_count"].sum()), schema.dtype(schema.LINKS))
    links["run"] = np.repeat(index, runs["link_count"])
    provenance = np.zeros(len(runs), schema.dtype(schema.RUN_PROVENANCE))
    return {
        schema.RUNS.path: runs,
        schema.RANKS.path: ranks,
        schema.LINKS.path: links,
        schema.RUN_PROVENANCE.path: provenance,
    }


def create_fixed_table(file: h5py.File, table: schema.Table, rows: np.ndarray) -> None:
    """A contiguous, early-allocated dataset holding `rows`, with units and help attached."""
    parent, name = table.path.rsplit("/", 1)
    group = file.require_group(parent or "/")
    creation = h5p.create(h5p.DATASET_CREATE)
    creation.set_layout(h5d.CONTIGUOUS)
    creation.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5d.FILL_TIME_ALLOC)
    file_type = h5t.py_create(rows.dtype, logical=True)
    dataset = h5py.Dataset(
        h5d.create(group.id, name.encode(), file_type, h5s.create_simple(rows.shape), creation)
    )
    if rows.size:
        dataset[...] = rows
    schema.describe(dataset, table)


def create(path: str | os.PathLike[str], spec: FileSpec) -> RowMap:
    """Lay out `path` for `spec` under a temporary name, then give it its name."""
    paths = ResultPaths(Path(path))
    try:
        with storing(paths.file, "nothing was changed"):
            _write_layout(paths.layout_temporary, spec)
            row_map = read_row_map(paths.layout_temporary)
            publish(paths.layout_temporary, paths.file)
    except BaseException:
        discard(paths.layout_temporary)
        raise
    return row_map


def _write_layout(path: Path, spec: FileSpec) -> None:
    with guarded_file(path, "w") as file:
        write_fixed(file, spec, initial_tables(spec))


def write_fixed(file: h5py.File, spec: FileSpec, tables: Mapping[str, np.ndarray]) -> None:
    """All that a new file has before its traces: attributes, and the fixed-size tables with this content."""
    file.attrs.update(spec.root_attributes())
    for table in schema.FIXED_TABLES:
        create_fixed_table(file, table, tables[table.path])
    file["/provenance"].attrs.update(spec.provenance)


def stored_factors(file: h5py.File) -> dict[str, tuple[str, ...]]:
    """Factor names in code order, from the enumerations of /runs."""
    types = file[schema.RUNS.path].dtype
    enums = {factor: h5py.check_enum_dtype(types[factor]) for factor in schema.FACTORS}
    return {factor: tuple(sorted(codes, key=codes.__getitem__)) for factor, codes in enums.items()}


def read_row_map(path: Path) -> RowMap:
    """Where the rows of an existing file are; checks that they are stored as the schema says."""
    with h5py.File(path, "r", locking=False) as file:
        factors = stored_factors(file)
        places = {}
        for table in schema.FIXED_TABLES:
            dataset, expected = file[table.path], schema.dtype(table, factors)
            offset = dataset.id.get_offset() or 0
            if dataset.dtype != expected or (dataset.size and not offset):
                raise InputError(
                    "rows are not stored in place: another tool has rewritten this file (h5repack?); "
                    "it can be read but not continued",
                    file=path,
                    field=table.path,
                )
            places[table.path] = TablePlace(offset, expected.itemsize, dataset.shape[0])
    return RowMap(places, factors)
