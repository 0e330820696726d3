"""hpcmoe: packet-level simulation of mixture-of-experts training traffic on GPU clusters."""

from hpcmoe._version import __version__

__all__ = ["__version__"]
