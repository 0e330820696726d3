"""Reading JSON objects that people write; every fault is an InputError that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hpcmoe.errors import InputError


class _RepeatedKey(Exception):
    """Kept apart from ValueError, which is what broken JSON raises."""


def read_object(path: str | Path, what: str) -> dict[str, Any]:
    """The object in a file; ``what`` says what it should be. A key that is given twice is refused."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text, object_pairs_hook=_unique)
    except OSError as error:
        raise InputError(f"cannot read the {what}: {error.strerror}", file=path) from error
    except _RepeatedKey as error:
        raise InputError("the key is given twice", file=path, field=str(error)) from None
    except RecursionError:
        raise InputError("not usable: nested too deeply", file=path) from None
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the {what}: not text ({error})", file=path) from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", file=path) from error
    except ValueError as error:
        raise InputError("a number has too many digits", file=path) from error
    if not isinstance(data, dict):
        raise InputError("not a JSON object", file=path)
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Python keeps the last of equal keys without a word, which hides a mistake."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _RepeatedKey(key)
        result[key] = value
    return result
