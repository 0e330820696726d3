"""Every test here needs an extension that was built with ns-3, unless it says otherwise."""

import pytest

from hpcmoe import runner

HAS_NS3 = "ns3" in runner.backends()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skip(reason="the extension was built without ns-3 (HPCMOE_NS3=ON adds it)")
    for item in items:
        if item.get_closest_marker("ns3") and not HAS_NS3:
            item.add_marker(missing)
