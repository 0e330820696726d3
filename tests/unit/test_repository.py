"""Rules about the source itself: where imports may point, how long a file may be, what no text says."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

# A module may import what stands on its own line or above it (docs/development.md has the reasons).
LAYERS = (
    (
        "_build",
        "_version",
        "errors",
        "units",
        "published",
        "chakra_schema",
        "trace",
        "json_input",
        "yaml_input",
        "manual",
        "start_up",
        "command_line",
    ),
    ("parameters", "catalog", "blame"),
    (
        "design",
        "topology",
        "topology_compiler",
        "topology_facts",
        "topology_file",
        "topology_text",
        "placement",
        "model",
        "model_config",
        "weights",
        "compute",
        "layer_costs",
        "expert_load",
    ),
    (
        "store",
        "upstream",
        "overrides",
        "routing",
        "chakra",
        "chakra_nodes",
        "workload",
        "pipeline",
        "model_summary",
    ),
    ("et",),
    ("scenario", "scenario_checks", "studyfile"),
    ("isolation",),
    ("runner", "_native", "export"),
    ("analysis", "compare_files", "importing", "inspect_run", "study", "sweep", "validation"),
    ("figures",),
    ("report", "reporting"),
    ("cli", "commands", "completion"),
)
# Downward all the same, and still wrong: results are read without a simulator, and written by the sweep.
NEVER = {
    "runner": {"store"},
    "analysis": {"runner", "scenario", "sweep"},
    "report": {"runner", "scenario", "sweep"},
    "reporting": {"runner", "scenario", "sweep", "store"},
    "figures": {"runner", "scenario", "sweep", "store"},
    "inspect_run": {"runner", "scenario", "sweep", "analysis"},
    "study": {"runner", "scenario", "sweep"},
}
FLOOR = {name: floor for floor, names in enumerate(LAYERS) for name in names}
LONGEST_FILE = 500
SUFFIXES = (".py", ".pyx", ".cc", ".hh", ".cmake", ".sh")
FOLDERS = ("astra-sim", "ext", "hpcmoe", "tests", "cmake", ".ci", "benchmarks", "docs", "slurm")
# Split in two so that this file does not find itself.
FORBIDDEN = ("pypi" + ".org", "files.python" + "hosted", "deb.deb" + "ian", "/work" + "/", "/tmp" + "/h/")


def tree(checkout: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Every source file of the checkout, none of what a build or a run leaves behind."""
    for folder in FOLDERS:
        for path in sorted((checkout / folder).rglob("*")):
            if (
                path.suffix in suffixes
                and "__pycache__" not in path.parts
                and not path.name.endswith("_pb2.py")
            ):
                yield path
    yield from sorted(path for path in checkout.glob("*") if path.suffix in suffixes)


def part(path: Path, package: Path) -> str:
    """The part of the package a module belongs to: hpcmoe/store/rows.py -> store."""
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported_parts(path: Path, package: Path) -> Iterator[str]:
    """The parts of hpcmoe that a module imports, at any place in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("hpcmoe."))
        elif isinstance(node, ast.ImportFrom):
            yield from parts_of_from(node, path, package)


def parts_of_from(node: ast.ImportFrom, path: Path, package: Path) -> Iterator[str]:
    module = node.module or ""
    if node.level:
        anchor = path.relative_to(package.parent).parts[: -node.level]
        module = ".".join([*anchor, *([module] if module else [])])
    if module == "hpcmoe":
        yield from (name.name for name in node.names)
    elif module.startswith("hpcmoe."):
        yield module.split(".")[1]


def may_import(own: str, other: str) -> bool:
    return FLOOR.get(other, len(LAYERS)) <= FLOOR[own] and other not in NEVER.get(own, ())


@pytest.mark.parametrize(
    "edge", [("store", "runner"), ("analysis", "runner"), ("design", "scenario"), ("cli", "x")]
)
def test_upward_imports_are_seen(edge: tuple[str, str]) -> None:
    assert not may_import(*edge)


def test_imports_point_one_way(checkout: Path) -> None:
    package = checkout / "hpcmoe"
    wrong = []
    for path in package.rglob("*.py"):
        own = part(path, package)
        if own.startswith("__"):  # __init__ and __main__ show what is below
            continue
        assert own in FLOOR, f"{path.name}: say in LAYERS where {own} stands"
        wrong += [
            f"{path.relative_to(checkout)} imports {other}"
            for other in imported_parts(path, package)
            if not other.startswith("__") and not may_import(own, other)
        ]
    assert wrong == []


def test_only_the_runner_reaches_the_simulator(checkout: Path) -> None:
    package = checkout / "hpcmoe"
    callers = {
        part(path, package)
        for path in package.rglob("*.py")
        if "_native" in set(imported_parts(path, package))
    }
    assert callers <= {"runner"}


def test_no_file_is_too_long(checkout: Path) -> None:
    long_files = {
        str(path.relative_to(checkout)): lines
        for path in tree(checkout, SUFFIXES)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert long_files == {}


def test_no_text_names_a_registry_host_or_a_machine_path(checkout: Path) -> None:
    found = [
        f"{path.relative_to(checkout)}: {word}"
        for path in tree(checkout, (*SUFFIXES, ".md", ".toml", ".yaml", ".json", ".txt"))
        for word in FORBIDDEN
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_the_version_has_one_home(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hpcmoe._version.__version__"}
    homes = [
        path.name
        for path in (checkout / "hpcmoe").rglob("*.py")
        if re.search(r"^__version__ *=", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert homes == ["_version.py"]


@pytest.mark.parametrize("name", ["run-tests", "hpcmoe-quickstart", ".ci/run"])
def test_scripts_can_be_executed(checkout: Path, name: str) -> None:
    assert (checkout / name).stat().st_mode & 0o111
