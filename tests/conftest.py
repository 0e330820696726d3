"""Fixtures for every kind of test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def no_catalog_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user of this machine has added to the catalog has no part in the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPCMOE_CATALOG", str(tmp_path_factory.getbasetemp() / "no-catalog"))
        yield


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout that the tests stand in."""
    return ROOT


@pytest.fixture(scope="session")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file with real runs and traces: one model on every topology, both collectives of the
    study and two others, three MoE layers of 64 tokens."""
    from hpcmoe.sweep import main

    path = tmp_path_factory.mktemp("study") / "small.h5"
    globs = ("flash/*/tp16ep2/*/roce_dcqcn", "flash/t[36]/tp2ep16/*/ib_hpcc", "flash/t4/tp4ep8/*/ib_cc0")
    keys = ("flash/t2/tp8ep4/halving_doubling_ring/ib_cc0", "flash/t5/tp8ep4/ring_ring/roce_hpcc")
    assert main([str(path), "--quiet", "--tokens", "64", "--layers", "3", "--select", *globs, *keys]) == 0
    return path


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of committed test data."""
    return ROOT / "tests" / "data"
