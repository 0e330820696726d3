"""Which netmod a sweep asks MPICH for."""

from types import SimpleNamespace

import pytest

from hpcmoe.sweep import comm

SLURM = {"PMI_FD": "11", "SLURM_STEP_ID": "0"}
BOTH = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n"


@pytest.mark.parametrize(
    ("library", "environment", "chosen"),
    [
        (BOTH, SLURM, "ofi"),
        (BOTH, SLURM | {"MPIR_CVAR_CH4_NETMOD": "ucx"}, "ucx"),
        (BOTH, {"PMI_FD": "11"}, None),
        (BOTH, {"SLURM_STEP_ID": "0"}, None),
        ("MPICH Version: 4.3\nMPICH Device: ch4:ucx\n", SLURM, None),
        ("MPICH Version: 4.3\nMPICH Device: ch4:ofi\n", SLURM, None),
        ("Open MPI v5.0.11, package: ofi ucx\n", SLURM, None),
    ],
)
def test_choice(
    library: str, environment: dict[str, str], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        comm, "_mpi_not_started", lambda: SimpleNamespace(Get_library_version=lambda: library)
    )
    environment = dict(environment)
    comm.choose_netmod(environment)
    assert environment.get("MPIR_CVAR_CH4_NETMOD") == chosen


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(comm, "_mpi_not_started", missing)
    environment = dict(SLURM)
    comm.choose_netmod(environment)
    assert environment == SLURM
