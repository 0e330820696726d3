"""``hpcmoe import`` and the comparison of two files: what another program reported, beside our own run."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hpcmoe
from hpcmoe import cli, sweep, topology
from hpcmoe.store import open_results, schema
from hpcmoe.store.verify import verify
from hpcmoe.upstream import reports

KEY = "flash/t4/tp4ep8/ring_direct/roce_dcqcn"
SIZE = ["--tokens", "64", "--layers", "1"]
SIMULATE = [
    "simulate",
    "--workload-configuration=et",
    "--system-configuration=system.json",
    "--network-configuration=config.txt",
    "--remote-memory-configuration=memory.json",
    "--logical-topology-configuration=logical.json",
]


def run_in(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> None:
    """What run.sh does, with the output in stdout.txt."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if Path("cc_policy.txt").exists():
            patch.setenv("ASTRA_NS3_CC_POLICY", "cc_policy.txt")
        capsys.readouterr()
        assert cli.main([*SIMULATE, *options]) == 0
    (folder / "stdout.txt").write_text(capsys.readouterr().out)


@pytest.fixture(scope="session")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file of one run of ours."""
    path = tmp_path_factory.mktemp("own") / "ours.h5"
    assert sweep.main([str(path), "--quiet", *SIZE, "--select", KEY]) == 0
    return path


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The same run, exported and run from the files."""
    place = tmp_path / "exported"
    assert cli.main(["export", KEY, str(place), *SIZE]) == 0
    run_in(place, capsys, "--profile", "study")
    return place


def take(folder: Path, output: Path, *options: str) -> int:
    return cli.main(["import", str(folder), "-o", str(output), "--profile", "study", *options])


def test_our_own_run_comes_back_through_its_files(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs.h5"
    assert take(folder, theirs) == 0
    assert verify(theirs).faults == ()
    assert cli.main(["compare", str(own_run), str(theirs), "--json", str(tmp_path / "c.json")]) == 0
    assert "1 of 1 runs agree in every rank and flow" in capsys.readouterr().out
    (run,) = json.loads((tmp_path / "c.json").read_text())["runs"]
    with open_results(own_run) as ours:
        assert run["flows"] == {"both": len(ours.traces(KEY).fct), "only_first": 0, "only_second": 0}
    with open_results(own_run) as ours, open_results(theirs) as found:
        for name in (
            "finish_ns",
            "wall_ns",
            "gpu_ns",
            "comm_ns",
            "exposed_comm_ns",
            "bytes_sent",
            "bytes_received",
        ):
            assert np.array_equal(ours.ranks(KEY)[name], found.ranks(KEY)[name])
        assert np.allclose(
            ours.ranks(KEY)["operation_intensity"], found.ranks(KEY)["operation_intensity"], atol=1e-6
        )
        assert (found.attrs["tokens"], found.attrs["layers"]) == (64, 1)
        a, b = ours.config(KEY), found.config(KEY)
        unlike = {"network", "cc_disabled_sha256"}  # the monitor's start and hosts' pairs with themselves
        assert {name: a[name] for name in a if name not in unlike} == {n: b[n] for n in b if n not in unlike}


def test_what_was_not_reported_is_missing_and_not_zero(own_run: Path, folder: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    theirs = tmp_path / "theirs.h5"
    assert take(folder, theirs, "--name", "ASTRA-sim 518bd51") == 0
    with open_results(theirs) as found:
        record = found.imports()[KEY]
        assert record["program"] == "ASTRA-sim 518bd51"
        assert set(record["files"]) == {"stdout", "fct", "pfc"}
        assert record["missing"]["/links"] == list(schema.LINKS.names)
        assert len(found.links(KEY)) == 0
        assert set(found.traces(KEY).fct["layer"]) == {-1}
    with open_results(own_run) as ours:
        assert ours.imports() == {}
    with hpcmoe.open_study(theirs) as study:
        row = study.runs.loc[KEY]
        assert row["events"] is pandas.NA
        assert row["packet_hops"] is pandas.NA
        assert row["pfc_pauses"] == 0


def test_without_traces_only_the_times_of_ranks_are_compared(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs.h5"
    (folder / "fct.txt").unlink()
    assert take(folder, theirs, "--no-traces") == 0
    assert cli.main(["compare", str(own_run), str(theirs)]) == 0
    assert "flows     not compared" in capsys.readouterr().out
    assert verify(theirs).faults == ()


def test_labels_let_an_imported_run_be_inspected(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, labelled = tmp_path / "plain.h5", tmp_path / "labelled.h5"
    assert take(folder, plain) == 0
    assert cli.main(["inspect", str(plain), KEY]) == 2
    assert "'hpcmoe import --labels' tells it" in capsys.readouterr().err
    assert take(folder, labelled, "--labels", str(own_run)) == 0
    capsys.readouterr()
    assert cli.main(["inspect", str(labelled), KEY, "--html", str(tmp_path / "page.html")]) == 0
    theirs = capsys.readouterr().out.splitlines()
    assert cli.main(["inspect", str(own_run), KEY]) == 0
    ours = capsys.readouterr().out.splitlines()
    counters = [at for at, text in enumerate(ours) if text in ("Busiest links", "Message completion times")]
    assert theirs == [*ours[: counters[0]], *ours[counters[1] :]]
    assert "does not count what links carry" in (tmp_path / "page.html").read_text()


def test_labels_of_another_run_are_refused(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (folder / "fct.txt").read_text().splitlines(keepends=True)
    (folder / "fct.txt").write_text("".join(lines[1:]))
    assert take(folder, tmp_path / "theirs.h5", "--labels", str(own_run)) == 2
    assert f"allowed: the same {len(lines) - 1} flows" in capsys.readouterr().err


def test_reports_and_pages_take_an_imported_run(own_run: Path, folder: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.h5"
    assert take(folder, theirs, "--labels", str(own_run)) == 0
    arguments = ["report", str(theirs), "-o", str(tmp_path / "report"), "--no-figures", "--runs", "*"]
    assert cli.main(arguments) == 0
    assert "numbers imported from: ASTRA-sim" in (tmp_path / "report" / "report.md").read_text()


def test_a_difference_is_found_and_named(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs.h5"
    lines = (folder / "fct.txt").read_text().splitlines()
    parts = lines[5].split()
    parts[6] = str(int(parts[6]) + 7)
    (folder / "fct.txt").write_text("\n".join([*lines[:5], " ".join(parts), *lines[6:-1]]) + "\n")
    text = (folder / "stdout.txt").read_text().replace("sys[3], Comm time: ", "sys[3], Comm time: 1")
    (folder / "stdout.txt").write_text(text)
    assert take(folder, theirs) == 0
    assert cli.main(["compare", str(own_run), str(theirs), "--select", "flash/*", "--show", "3"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"theirs.h5: {KEY}") or "DIFFERENT" in out
    assert "comm_ns   differs on 1 of 32 ranks; most on\n    rank 3 " in out
    assert f"fct_ns    differs on 1 of {len(lines) - 1} flows" in out
    assert f"{len(lines) - 1} in both files, 1 only in the first, 0 only in the second" in out
    assert "0 of 1 runs agree" in out


def test_several_runs_go_into_one_file(folder: Path, tmp_path: Path, own_run: Path) -> None:
    theirs = tmp_path / "theirs.h5"
    keys = ["flash/lab/tp4ep8/x/y", KEY, "flash/t1/tp4ep8/ring_direct/ib_cc0"]
    for key in keys:
        assert take(folder, theirs, "--key", key) == 0
    with open_results(theirs) as found:
        assert found.runs["key"].tolist() == [keys[2], keys[1], keys[0]]
        assert set(found.imports()) == set(keys)
        assert len(found.traces(keys[0]).fct) == len(found.traces(KEY).fct) > 0
    assert verify(theirs).faults == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exported", "theirs.h5"]


def exposed(wall_ns: int, gpu_ns: int) -> str:
    return f"exposed communication {wall_ns - gpu_ns} cycles."


def report_of(expected: dict[str, list[dict[str, int]]]) -> str:
    """The lines of upstream's report, as its logger writes them, for the numbers that it gave."""
    stamp = "[2025-12-01 10:00:00.000] "
    lines = []
    for row in expected["ranks"]:
        name, wall, gpu = f"sys[{row['rank']}]", row["wall_time"], row["gpu_time"]
        lines += [
            f"{stamp}[workload] [info] {name} finished, {wall} cycles, {exposed(wall, gpu)}",
            f"{stamp}[statistics] [info] {name}. Post statistics processing start.",
            f"{stamp}[statistics] [info] {name}, Wall time: {wall}",
            f"{stamp}[statistics] [info] {name}, Comm time: {row['comm_time']}",
            f"{stamp}[statistics] [info] {name}, GPU time: {gpu}",
        ]
    return "\n".join(lines) + "\n"


def test_upstreams_own_numbers_beside_ours(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times, flows and pauses that upstream gave for a small case with PFC."""
    case, key = data / "stack" / "t6_tp16_pfc_smallbuf", "flash/t6/tp16ep2/ring_direct/pfc"
    upstream, ours = tmp_path / "upstream", tmp_path / "ours"
    for place in (upstream, ours):
        place.mkdir()
        for name in ("system.json", "memory.json", "logical.json", "config.txt", "topology.txt"):
            shutil.copy(case / name, place / name)
        for rank in range(32):
            shutil.copy(case / "trace.et", place / f"et.{rank}.et")
    (upstream / "stdout.txt").write_text(report_of(json.loads((case / "expected.json").read_text())))
    for name in ("fct.txt.gz", "pfc.txt.gz"):
        shutil.copy(case / name, upstream / name)
    run_in(ours, capsys)
    for place in (upstream, ours):
        assert cli.main(["import", str(place), "-o", f"{place}.h5", "--key", key]) == 0
        assert verify(Path(f"{place}.h5")).faults == ()
    assert cli.main(["compare", f"{ours}.h5", f"{upstream}.h5"]) == 0
    with open_results(f"{ours}.h5") as a, open_results(f"{upstream}.h5") as b:
        assert np.array_equal(np.sort(a.traces(key).pfc), np.sort(b.traces(key).pfc))
        assert b.runs["pfc_pauses"][0] == np.sum(b.traces(key).pfc["pause"]) > 0


def test_queue_lines_name_the_other_end(tmp_path: Path) -> None:
    path = tmp_path / "qlen.txt"
    path.write_text("time 100 3 j 1 2000 j 3 1500\ntime 200 3 j 2 1000 \n")
    star = topology.unnamed(4, [3], [topology.Link(host, 3, 10**9, 1) for host in range(3)])
    assert reports.read_qlen(path, star).tolist() == [(100, 3, 0, 2000), (100, 3, 2, 1500), (200, 3, 1, 1000)]


Break = Callable[[Path], object]


def rewrite(name: str, old: str, new: str) -> Break:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def line(name: str, number: int, text: str) -> Break:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text().splitlines()
        lines[number : number + 1] = [text]
        (folder / name).write_text("\n".join(lines) + "\n")

    return change


def without(name: str) -> Break:
    return lambda folder: (folder / name).unlink()


def repeated(folder: Path) -> None:
    (folder / "stdout.txt").write_text((folder / "stdout.txt").read_text() * 2)


BROKEN: dict[str, tuple[Break, str]] = {
    "no output": (without("stdout.txt"), "stdout.txt: no such file: it is what the program printed"),
    "no system": (
        without("system.json"),
        "system.json: no such file: import reads the folder of 'hpcmoe export'",
    ),
    "no trace": (without("et.7.et"), "et.7.et: no such file, but the logical topology 4 x 8 has 32 ranks"),
    "no topology": (without("topology.txt"), "topology.txt: cannot read the topology: No such file"),
    "no flows": (without("fct.txt"), "fct.txt: no such file: the program writes it; --no-traces imports the"),
    "no key": (without("run.sh"), "run.sh: names no run key; --key gives one; allowed: model/topology/"),
    "other key": (rewrite("run.sh", f"# {KEY}", "# my own run"), "run.sh: names no run key; --key gives one"),
    "a rank is missing": (
        rewrite("stdout.txt", "sys[9] finished", "sys[9] stopped"),
        "stdout.txt: no line 'finished, ... cycles' of sys[9]; 31 of 32 ranks are reported as finished",
    ),
    "old report": (
        rewrite("stdout.txt", "sys[0], Wall time", "sys[0], Clock time"),
        "stdout.txt: no line 'Wall time' of sys[0]; 32 of 32 ranks are reported as finished (ASTRA",
    ),
    "two runs": (repeated, "reported twice: is this the output of two runs? (got '[workload] [info] sys["),
    "a rank too many": (
        rewrite("stdout.txt", "sys[9] finished", "sys[32] finished"),
        "a report of a rank that the input files do not have; they have 32 (got 'sys[32]')",
    ),
    "time is no number": (
        rewrite("stdout.txt", "sys[0], Wall time: ", "sys[0], Wall time: -"),
        "bad number (got '-1",
    ),
    "ratio is no number": (
        rewrite("stdout.txt", "Compute bound percentage: 9", "Compute bound percentage: x9"),
        "bad number (got 'x9",
    ),
    "short flow": (
        line("fct.txt", 0, "0b000001 0b000101 10000 100 64 1 2"),
        "fct.txt: line 1: bad line (got '0b000001 0b000101 10000 100 64 1 2'); allowed: sip dip",
    ),
    "unknown host": (
        line("fct.txt", 2, "0b00ff01 0b000101 10000 100 64 1 2 3"),
        "fct.txt: line 3: not the address of a host (got '0b00ff01'); allowed: 0b000001 to 0b001f01",
    ),
    "no flow of upstream": (
        line("fct.txt", 0, "0b000001 0b000101 10000 80 64 1 2 3"),
        "fct.txt: line 1: dport: not a flow of ASTRA-sim (got 80); allowed: 100",
    ),
    "flow of another run": (
        line("fct.txt", 0, "0b000001 0b000101 10000 100 64 999999999 2 3"),
        "fct.txt: flow 0 (0 to 1): a flow ends after the last rank has finished at ",
    ),
    "number too large": (
        line("fct.txt", 0, f"0b000001 0b000101 {2**40} 100 64 1 2 3"),
        "fct.txt: a number is too large",
    ),
    "no interface": (
        lambda folder: (folder / "pfc.txt").write_text("5 0 0 2 1\n"),
        "pfc.txt: line 1: the topology has no such interface (got 'node 0 interface 2')",
    ),
    "no switch": (
        lambda folder: (folder / "pfc.txt").write_text("5 0 1 1 1\n"),
        "pfc.txt: line 1: not what the topology has at this node, or neither pause nor",
    ),
    "not text": (
        lambda folder: (folder / "stdout.txt").write_bytes(b"\xff\xfe\x00"),
        "stdout.txt: cannot read the output: not text",
    ),
    "damaged gzip": (
        lambda folder: (folder / "fct.txt").write_bytes(gzip.compress(b"0b000001")[:-4]),
        "fct.txt: cannot read the flow completion file: damaged gzip file",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_explained(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, message = BROKEN[name]
    damage(folder)
    assert take(folder, tmp_path / "theirs.h5") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith(f"hpcmoe: error: {folder}/")
    assert not (tmp_path / "theirs.h5").exists()


def test_files_that_cannot_take_the_run(
    own_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, copy = tmp_path / "theirs.h5", tmp_path / "sweep.h5"
    shutil.copy(own_run, copy)
    assert take(folder, theirs) == 0
    attempts = {
        "sweep.h5: made by a sweep: imported runs go into a file of their own": (copy, "--key", "a/b/c/d/e"),
        f"theirs.h5: has this run already: name another file or --key (got '{KEY}')": (theirs,),
        "theirs.h5: tokens: runs of one size go into one file: name another file (got 0); allowed: 64": (
            theirs, "--key", "own/t4/tp4ep8/a/b",
        ),
        "--key: not a run key (got 'flash'); allowed: model/topology/": (theirs, "--key", "flash"),
    }  # fmt: skip
    before = theirs.read_bytes()
    for message, (file, *options) in attempts.items():
        assert take(folder, file, *options) == 2
        assert message in capsys.readouterr().err
    assert theirs.read_bytes() == before
    assert take(tmp_path / "nowhere", theirs) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--select", "k3/*"], "ours.h5: --select: no finished run that "),
        (["--layer", "1"], "--layer: an option of the form that compares two runs of one file (got 1)"),
        (["--show", "0"], "--show: bad value (got 0); allowed: integers from 1"),
        ([KEY, "--json", "x"], "--json: an option of the form that compares two files (got 'x')"),
    ],
)
def test_bad_comparisons(
    arguments: list[str], message: str, own_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", str(own_run), str(own_run), *arguments]) == 2
    assert message in capsys.readouterr().err
