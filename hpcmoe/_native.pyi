# The extension is typed in ext/native.pyx, and only hpcmoe.runner uses it: to mypy all of it is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
