"""How the ranks of a sweep reach the results file."""

from __future__ import annotations

from hpcmoe.errors import InputError
from hpcmoe.store import parallel
from hpcmoe.store.rows import RowFile, RowWriter
from hpcmoe.sweep.comm import Comm
from hpcmoe.sweep.plan import Plan


def open_rows(plan: Plan, comm: Comm) -> RowWriter:
    """The file of `plan`, for this rank to write rows in. Collective where HDF5 is parallel."""
    if uses_parallel_hdf5(plan.options.io, comm):
        return parallel.ParallelRowFile(plan.options.file, plan.row_map, comm.mpi)
    return RowFile(plan.options.file, plan.row_map)


def uses_parallel_hdf5(io: str, comm: Comm) -> bool:
    """Whether `--io` and what there is lead to parallel HDF5. Raises InputError when asked for in vain."""
    possible = comm.mpi is not None and parallel.available()
    if io == "parallel" and not possible:
        missing = "an h5py that was built with MPI" if comm.mpi is not None else "an MPI launcher"
        raise InputError(f"needs {missing}", field="--io", value=io, allowed="auto, positioned")
    return possible and io != "positioned" and (io == "parallel" or comm.size > 1)
