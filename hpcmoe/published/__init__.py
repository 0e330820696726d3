"""The published figures of the study, for comparison only.

``published.json`` holds times in seconds unless a key says otherwise; ``source`` entries name the
table or section a number comes from.  Nothing here ever enters a simulation or a result.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load_published() -> dict[str, Any]:
    """The whole of ``published.json``, with ``design.json`` under ``design``.  Callers share one object
    and must not change it."""
    return {**_read("published.json"), "design": _read("design.json")}


@cache
def load_claims() -> tuple[dict[str, Any], ...]:
    """Claims of the study in published order: id, section, claim, set, formula, published."""
    return tuple(_read("claims.json")["claims"])


def _read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return data
