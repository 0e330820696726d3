"""Fixtures for every kind of test."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout that the tests stand in."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of committed test data."""
    return ROOT / "tests" / "data"
