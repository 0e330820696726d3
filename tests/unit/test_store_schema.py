"""The schema against itself, its documentation and HDF5."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcmoe import design
from hpcmoe.store import schema

FACTORS = {factor: design.allowed_levels(factor) for factor in design.FACTORS}
TABLES = pytest.mark.parametrize("table", schema.ALL_TABLES, ids=lambda table: table.path)


@TABLES
def test_rows_are_packed_and_little_endian(table: schema.Table) -> None:
    row = schema.dtype(table, FACTORS)
    fields = [row.fields[name] for name in table.names]
    ends = [offset + kind.itemsize for kind, offset in ((field[0], field[1]) for field in fields)]
    assert [field[1] for field in fields] == [0, *ends[:-1]]
    assert row.itemsize == ends[-1]
    assert all(field[0].byteorder != ">" for field in fields)


@TABLES
def test_columns_are_named_once_and_explained(table: schema.Table) -> None:
    assert len(set(table.names)) == len(table.names)
    assert all(column.help and not column.help.endswith(".") for column in table.columns)


@TABLES
def test_unit_in_a_name_is_the_unit(table: schema.Table) -> None:
    suffixes = {"_ns": "ns", "_bps": "bit/s", "_bytes": "B", "_percent": "%", "_s": "s"}
    for column in table.columns:
        for suffix, unit in suffixes.items():
            if column.name.endswith(suffix):
                assert column.unit == unit, column.name


@TABLES
def test_hdf5_stores_rows_as_numpy_lays_them_out(table: schema.Table, tmp_path: Path) -> None:
    row = schema.dtype(table, FACTORS)
    rows = np.frombuffer(np.random.default_rng(1).bytes(3 * row.itemsize), row)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        dataset = file.create_dataset("rows", data=rows)
        schema.describe(dataset, table)
        assert dataset.id.get_type().get_size() == row.itemsize
        offset = dataset.id.get_offset()
        units, meanings = json.loads(dataset.attrs["units"]), json.loads(dataset.attrs["help"])
    assert (tmp_path / "t.h5").read_bytes()[offset : offset + rows.nbytes] == rows.tobytes()
    assert tuple(units) == tuple(meanings) == table.names


def test_enumerations_carry_their_names() -> None:
    row = schema.dtype(schema.RUNS, FACTORS)
    assert h5py.check_enum_dtype(row["status"]) == {"missing": 0, "ok": 1, "failed": 2}
    assert list(h5py.check_enum_dtype(row["model"])) == list(design.MODELS)
    assert h5py.check_enum_dtype(row["collective"])["dbt_direct"] == 1


def test_documentation_shows_the_schema(checkout: Path) -> None:
    page = (checkout / "docs" / "results-file.md").read_text()
    advice = "docs/results-file.md differs from hpcmoe/store/schema.py; it has to contain:\n\n"
    blocks = [schema.markdown_table(table) for table in schema.ALL_TABLES]
    blocks += map(schema.markdown_attributes, (schema.ROOT_ATTRIBUTES, schema.PROVENANCE_ATTRIBUTES))
    for block in blocks:
        assert block in page, advice + block
    assert page.count("\n### `/") == len(schema.ALL_TABLES) + 2  # and /config, /provenance
    assert "Format {}.{}.".format(*schema.FORMAT_VERSION) in page


@given(st.text(), st.integers(1, 40))
def test_cut_text_is_a_valid_prefix(text: str, size: int) -> None:
    data = schema.encode_text(text, size)
    clean = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    assert len(data) <= size
    assert clean.startswith(data)
    assert len(data) > size - 4 or data == clean
    data.decode("utf-8")
