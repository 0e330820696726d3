"""The model in a plain ns-3 program, on the library of a Linux distribution, which is an older release."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ns3, pytest.mark.slow]

SYSTEM_NS3 = Path("/usr/include/ns3/core-config.h")
# Seven megabytes into one 100 Gbit/s link: completion under DCQCN, then what the switch did. The wheel's
# library gives the same.
EXPECTED = """\
3062284 ns: host 1 done
3077661 ns: host 2 done
3182213 ns: host 3 done
3226199 ns: host 5 done
3253616 ns: host 4 done
3258969 ns: host 6 done
3263537 ns: host 7 done
1398 marks, 0 pauses, 0 drops
"""


def build(checkout: Path, folder: Path, ns3: str) -> Path:
    tool = shutil.which("cmake")
    assert tool is not None
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = [tool, "-S", str(checkout), "-B", str(folder), *generator, "-DHPCMOE_BUILD_PYTHON=OFF",
                 "-DCMAKE_BUILD_TYPE=Release", f"-DHPCMOE_NS3={ns3}"]  # fmt: skip
    environment = {**os.environ, "LD_PRELOAD": ""}
    for command in (configure, [tool, "--build", str(folder), "--target", "rdma_incast", "--parallel", "2"]):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "rdma_incast"


@pytest.mark.skipif(not SYSTEM_NS3.exists(), reason="libns3-dev is not installed")
def test_the_example_on_the_systems_library(checkout: Path, tmp_path: Path) -> None:
    program = build(checkout, tmp_path / "build", "/usr")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == EXPECTED
    faster = subprocess.run(
        [program, "--hpcmoe::rdma::Dcqcn::IncreaseInterval=100us"], capture_output=True, text=True, check=True
    )
    assert faster.stdout != EXPECTED
    attributes = subprocess.run(
        [program, "--PrintAttributes=hpcmoe::rdma::Switch"], capture_output=True, text=True, check=True
    ).stdout
    for name in ("BufferBytes", "HeadroomFactor", "Marking", "PauseTime"):
        assert f"--hpcmoe::rdma::Switch::{name}" in attributes


def test_a_missing_ns3_is_said_at_configuration(checkout: Path, tmp_path: Path) -> None:
    tool = shutil.which("cmake")
    assert tool is not None
    done = subprocess.run(
        [tool, "-S", str(checkout), "-B", str(tmp_path), "-DHPCMOE_BUILD_PYTHON=OFF",
         f"-DHPCMOE_NS3={tmp_path}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "ns-3 was not found" in done.stderr
