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
    """The whole of ``published.json``.  Callers share one object and must not change it."""
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
