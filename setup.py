"""Builds hpcmoe._native by driving CMake. All metadata stands in pyproject.toml.

Options come from the environment, because pip has no reliable way to hand any to a build:

HPCMOE_BUILD_TYPE   Release (default) or Debug
HPCMOE_SANITIZE     ON builds with the address and undefined-behaviour sanitizers
HPCMOE_MARCH        instruction set for -march=, e.g. native or x86-64-v3; default: the compiler's own
HPCMOE_LTO          ON builds with link-time optimisation
HPCMOE_NS3          ON adds the backend on ns-3 (pip install --no-deps ns3), or the folder ns-3 is in; the
                    build then falls under GPL-2.0-only as ns-3 does
HPCMOE_JOBS         number of parallel compile jobs; default: the cores this process may use
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
BUILD_TYPES = ("Release", "Debug")
SWITCH = {"ON": "ON", "1": "ON", "OFF": "OFF", "0": "OFF", "": "OFF"}


def build_type() -> str:
    value = os.environ.get("HPCMOE_BUILD_TYPE") or "Release"
    if value not in BUILD_TYPES:
        raise SystemExit(f"HPCMOE_BUILD_TYPE={value}: allowed are {', '.join(BUILD_TYPES)}")
    return value


def switch(name: str) -> str:
    value = os.environ.get(name, "").upper()
    if value not in SWITCH:
        raise SystemExit(f"{name}={value}: allowed are ON and OFF")
    return SWITCH[value]


def jobs() -> int:
    value = os.environ.get("HPCMOE_JOBS")
    if value is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not value.isdigit() or int(value) < 1:
        raise SystemExit(f"HPCMOE_JOBS={value}: allowed is a whole number of at least 1")
    return int(value)


def build_tool() -> list[str]:
    """CMake's generator arguments, with the tool's full path: a cached one may point into a build
    environment that pip has removed since."""
    ninja, make = shutil.which("ninja"), shutil.which("make")
    if ninja:
        return ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    if make:
        return ["-G", "Unix Makefiles", f"-DCMAKE_MAKE_PROGRAM={make}"]
    raise SystemExit("hpcmoe needs ninja or make to build: pip install ninja")


def drop_foreign_cache(build_dir: Path) -> None:
    """A build folder that was copied along with a checkout, or made by the other build tool, cannot
    be reused; CMake would only say so."""
    cache = build_dir / "CMakeCache.txt"
    if not cache.exists():
        return
    text = cache.read_text(encoding="utf-8", errors="replace")
    wanted = (f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n", f"CMAKE_GENERATOR:INTERNAL={build_tool()[1]}\n")
    if not all(line in text for line in wanted):
        shutil.rmtree(build_dir)


def replace_file(source: Path, target: Path) -> None:
    """Copies under a temporary name and renames: a running process keeps the file it has mapped."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copy2(source, temporary)
    os.replace(temporary, target)


def git(*arguments: str) -> str:
    """Output of a git command on this checkout; empty without git or where it fails."""
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def commit() -> str:
    """The commit that is built, '-dirty' behind it if tracked files differ; 'unknown' outside git."""
    if git("rev-parse", "--show-toplevel") != str(ROOT):  # perhaps a copy inside another project
        return "unknown"
    dirty = "-dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--verify", "--quiet", "HEAD") or "unknown") + dirty


class CMakeBuild(build_ext):
    """Runs CMake once and puts the extension where setuptools expects it."""

    def build_extension(self, ext: Extension) -> None:
        variant = build_type() + ("-sanitize" if switch("HPCMOE_SANITIZE") == "ON" else "")
        # Not setuptools' own folder, which an editable install makes anew each time.
        build_dir = ROOT / "build" / f"{sys.implementation.cache_tag}-{variant}"
        drop_foreign_cache(build_dir)
        self.run_cmake(["-S", str(ROOT), "-B", str(build_dir), *build_tool(), *self.definitions()])
        self.run_cmake(["--build", str(build_dir), "--target", "_native", "--parallel", str(jobs())])
        # `python -m hpcmoe.sweep` typed in the checkout imports ./hpcmoe before the installed
        # package, so the extension must be there as well.
        for folder in {Path(self.get_ext_fullpath(ext.name)).resolve().parent, ROOT / "hpcmoe"}:
            for name in (Path(self.get_ext_filename(ext.name)).name, "_build.py"):
                replace_file(build_dir / name, folder / name)

    def definitions(self) -> list[str]:
        import numpy

        return [
            f"-DCMAKE_BUILD_TYPE={build_type()}",
            f"-DHPCMOE_SANITIZE={switch('HPCMOE_SANITIZE')}",
            f"-DHPCMOE_MARCH={os.environ.get('HPCMOE_MARCH', '')}",
            f"-DHPCMOE_LTO={switch('HPCMOE_LTO')}",
            f"-DHPCMOE_NS3={os.environ.get('HPCMOE_NS3') or 'OFF'}",
            f"-DHPCMOE_GIT_SHA={commit()}",
            "-DHPCMOE_BUILD_PYTHON=ON",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DPython_NumPy_INCLUDE_DIR={numpy.get_include()}",
        ]

    def run_cmake(self, arguments: list[str]) -> None:
        cmake = shutil.which("cmake")
        if cmake is None:
            raise SystemExit("hpcmoe needs CMake 3.25 or later to build: pip install 'cmake>=3.25'")
        result = subprocess.run([cmake, *arguments], check=False)
        if result.returncode != 0:
            raise SystemExit(f"hpcmoe: cmake failed with code {result.returncode}; its messages stand above")


class CleanBuildPy(build_py):
    """Starts from an empty build folder: setuptools never removes from it the modules that the
    source no longer has, and would install them."""

    def run(self) -> None:
        if not self.editable_mode and not self.dry_run:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    ext_modules=[Extension("hpcmoe._native", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "build_py": CleanBuildPy},
)
