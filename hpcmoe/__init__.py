"""hpcmoe: packet-level simulation of mixture-of-experts inference traffic on GPU clusters."""

from typing import TYPE_CHECKING, Any

from hpcmoe._version import __build_flags__, __git_sha__, __version__

if TYPE_CHECKING:
    from hpcmoe.study import open_study

__all__ = ["__build_flags__", "__git_sha__", "__version__", "open_study"]


def __getattr__(name: str) -> Any:
    """``open_study`` on first use: it needs pandas, which importing the package does not."""
    if name != "open_study":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hpcmoe.study import open_study

    return open_study
