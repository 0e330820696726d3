"""The study file that ``hpcmoe study init`` writes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hpcmoe.errors import InputError


def example() -> str:
    """A commented study that runs as it stands."""
    return (files(__package__) / "example.yaml").read_text(encoding="utf-8")


def write_example(path: Path) -> None:
    """Writes the example; InputError where there is a file already."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(example())
    except FileExistsError:
        raise InputError("exists already; name another file", file=path) from None
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", file=path) from None
