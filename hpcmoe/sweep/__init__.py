"""Runs many configurations into one results file, on one rank or many.

plan decides what is left to do, scheduler hands it out, worker does one run and stores it; comm
hides whether there is MPI. Importing this package does not import mpi4py.
"""

from hpcmoe.sweep.app import main

__all__ = ["main"]
