"""Runs many configurations into one results file, on one rank or many.

plan decides what is left to do, scheduler hands it out, worker does one run and stores it; comm
hides whether there is MPI. Importing this package imports neither mpi4py nor h5py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpcmoe.sweep.simulator import Simulator

__all__ = ["main"]


def main(
    argv: Sequence[str] | None = None, simulator: Simulator | None = None, *, process_ends: bool = False
) -> int:
    """Run a sweep on all ranks; returns the exit code, the same on each (see app.main)."""
    from hpcmoe.sweep.comm import choose_netmod, warn_of_plugin

    # Before h5py: one that was built with MPI starts it, and with the wrong srun --mpi that is the end.
    choose_netmod()
    warn_of_plugin()
    from hpcmoe.sweep import app

    return app.main(argv, simulator, process_ends=process_ends)
