"""A look into a run: what it shows, its page, its text, the comparison of two runs and the trace export."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hpcmoe import cli, report
from hpcmoe.errors import InputError
from hpcmoe.inspect_run import compare_runs, inspect_run, trace_events
from hpcmoe.inspect_run.repeats import layer_flows, layers_held
from hpcmoe.reporting import run_drawings, run_page
from hpcmoe.store import open_results
from hpcmoe.store.reader import Results
from hpcmoe.store.repeats import expand

RING = "flash/t6/tp16ep2/ring_direct/roce_dcqcn"
TREE = "flash/t6/tp16ep2/dbt_direct/roce_dcqcn"
OTHER_MODE = "flash/t3/tp2ep16/ring_direct/ib_hpcc"


@pytest.fixture(scope="module")
def results(small_study: Path) -> Iterator[Results]:
    with open_results(small_study) as opened:
        yield opened


def test_links_hold_the_counters_of_the_file(results: Results) -> None:
    inspection = inspect_run(results, RING)
    stored = results.links(RING)
    assert [use.bytes for use in inspection.links] == stored["bytes"].tolist()
    busiest = inspection.busiest_links(5)
    assert [use.utilization for use in busiest] == sorted(
        (u.utilization for u in inspection.links), reverse=True
    )[:5]
    assert all(0 <= use.utilization <= 1 for use in inspection.links)


def test_statistics_cover_every_message_of_the_layer(results: Results) -> None:
    inspection = inspect_run(results, RING)
    held = inspection.statistics
    assert sum(s.flows for s in held) == len(inspection.flows) > 0
    assert [s.node.title for s in held] == [
        "all-reduce 1",
        "all-to-all, dispatch",
        "all-to-all, combine",
        "all-reduce 2",
    ]
    for s in held:
        assert s.slowdown[0] >= 1
        assert list(s.slowdown) == sorted(s.slowdown)
        mine = sorted(flow.fct_ns for flow in inspection.flows if flow.node == s.node.id)
        assert (s.fct_ns[0], s.fct_ns[-1]) == (mine[0], mine[-1])


def test_stragglers_lost_most(results: Results) -> None:
    inspection = inspect_run(results, RING)
    lost = sorted((f.fct_ns - inspection.traffic.ideal(f).total_ns for f in inspection.flows), reverse=True)
    assert [s.lost_ns for s in inspection.stragglers] == lost[: len(inspection.stragglers)]


def test_spans_follow_each_other_on_every_rank(results: Results) -> None:
    inspection = inspect_run(results, TREE)
    for rank in range(32):
        mine = [span for span in inspection.spans if span.rank == rank]
        assert [span.node for span in mine] == list(inspection.nodes)
        assert all(a.end_ns == b.start_ns for a, b in pairwise(mine))


def test_layers_out_of_repeats_are_those_of_the_whole_trace(results: Results) -> None:
    """Some run of the file has layers that were added; each is found without writing out the others."""
    repeated = [str(row["key"]) for row in results.runs if row["layers_added"] > 0]
    assert repeated
    for key in repeated:
        traces = results.traces(key)
        whole = expand(traces).fct
        assert layers_held(traces) == sorted(set(whole["layer"].tolist()))
        for layer in layers_held(traces):
            found, expected = layer_flows(traces, layer), whole[whole["layer"] == layer]
            order = ["start_ns", "src", "dst", "sport"]
            assert np.array_equal(np.sort(found, order=order), np.sort(expected, order=order))


def test_unknown_layers_and_runs_are_refused(results: Results) -> None:
    with pytest.raises(InputError, match=r"no flows of this layer are recorded.*99.*0 to 2"):
        inspect_run(results, RING, 99)
    with pytest.raises(InputError, match="no such run in this file"):
        inspect_run(results, "flash/t6/tp16ep2/ring_direct/ib_cc0")


def test_a_run_of_another_workload_is_refused(results: Results) -> None:
    inspection = inspect_run(results, RING)
    inspection.record.config["trace_sha256"][0] = "0" * 64
    with pytest.raises(InputError, match="another workload"):
        inspection.record.chain  # noqa: B018


# --- comparison ----------------------------------------------------------------------------------


def test_the_parts_of_two_runs_explain_their_difference_exactly(results: Results) -> None:
    comparison = compare_runs(inspect_run(results, RING), inspect_run(results, TREE))
    assert sum(comparison.parts.values()) == comparison.layer_gap_ns
    assert [d.name for d in comparison.differences] == ["collective", "implementations.all_reduce"]
    assert comparison.parts[comparison.explaining_part] == max(comparison.parts.values())


def test_what_differs_names_parameters_and_links(results: Results) -> None:
    comparison = compare_runs(inspect_run(results, OTHER_MODE), inspect_run(results, RING))
    found = {d.name: (d.first, d.second) for d in comparison.differences}
    assert found["topology"] == ("t3", "t6")
    assert found["network.cc_mode"] == ("3", "1")
    assert found["NIC links"] == ("16 x 400 Gbps 0.7 us", "none")
    assert found["inter-switch links"] == ("none", "28 x 400 Gbps 0.1 us")


def test_a_run_does_not_differ_from_itself(results: Results) -> None:
    comparison = compare_runs(inspect_run(results, RING), inspect_run(results, RING))
    assert comparison.differences == ()
    assert set(comparison.parts.values()) == {0}


# --- trace export --------------------------------------------------------------------------------


def test_the_trace_holds_every_node_message_and_queue(results: Results) -> None:
    inspection = inspect_run(results, RING)
    events = list(trace_events(inspection))
    kinds = Counter(event["ph"] for event in events)
    assert kinds["b"] == kinds["e"] == len(inspection.flows)
    chunks = sum(len(span.chunks) for span in inspection.spans)
    assert kinds["X"] == len(inspection.spans) + chunks
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"rank 0 (gpu0)", "rank 31 (gpu31)", "chain", "chunks", "queues"} <= names
    critical = sum(event["args"]["on critical path"] for event in events if event["ph"] == "b")
    assert critical == len({item.segment.flow for item in inspection.path.segments if item.segment.flow})


# --- page and command line -----------------------------------------------------------------------


class Nesting(HTMLParser):
    """Checks that every element is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "input", "wbr", "br", "rect", "path", "circle") or (
            tag in ("rect", "path", "circle") and not (self.get_starttag_text() or "").endswith("/>")
        ):
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]


@pytest.mark.parametrize("key", [RING, TREE, OTHER_MODE])
def test_the_page_names_part_and_links_and_asks_for_nothing(results: Results, key: str) -> None:
    inspection = inspect_run(results, key)
    source = run_page.render(inspection, back="../index.html")
    page = Nesting(source)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert f"Largest part of its critical path: {inspection.path.largest_part}" in source
    for link in inspection.path.main_links():
        assert inspection.traffic.name(link) in source
    assert "http" not in source
    assert 'href="../index.html"' in source
    assert source.count("<svg") == 4


def test_time_line_has_a_bar_per_node_and_rank(results: Results) -> None:
    inspection = inspect_run(results, RING)
    drawn = run_drawings.timeline(inspection)
    assert drawn.count("<rect") == 32 * len(inspection.nodes)
    assert drawn.count("rank 31,") == len(inspection.nodes)


@pytest.mark.parametrize(
    ("rough", "step"), [(0.9, 1), (1.0, 1), (1.1, 2), (3, 5), (700, 1000), (12345, 20000)]
)
def test_steps_of_an_axis(rough: float, step: float) -> None:
    assert run_drawings.nice_step(rough) == pytest.approx(step)


def test_slowdowns_have_both_axes(results: Results) -> None:
    inspection = inspect_run(results, RING)
    drawn = run_drawings.slowdowns(inspection)
    assert ">share of the messages</text>" in drawn
    assert ">completion time over the least possible (1, log scale)</text>" in drawn
    top = max(1.2, *(s.slowdowns[-1] for s in inspection.statistics if s.flows))
    at = [float(value) for value in re.findall(r'font-size="10">([\d.]+)</text>', drawn)]
    assert len(at) >= 3  # a scale can be read from that many values
    assert at[0] == 1
    assert sorted(at) == at
    assert top / 2 < at[-1] <= top


def test_inspect_prints_and_writes(
    small_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, trace = tmp_path / "run.html", tmp_path / "trace.json"
    arguments = [
        "inspect",
        str(small_study),
        RING,
        "--layer",
        "1",
        "--html",
        str(page),
        "--trace",
        str(trace),
    ]
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "Layer 1 takes" in shown
    assert "Links that carry at least half of the critical path" in shown
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(trace.read_text(encoding="utf-8"))["displayTimeUnit"] == "ns"


def test_compare_says_which_part_explains(small_study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(small_study), RING, TREE]) == 0
    shown = capsys.readouterr().out
    assert "The part that explains most of it:" in shown
    assert "implementations.all_reduce" in shown


def test_bad_runs_are_one_line_on_the_command_line(
    small_study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["inspect", str(small_study), "flash/t9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert cli.main(["compare", str(small_study), RING, TREE, "--layer", "7"]) == 2
    assert "no flows of this layer" in capsys.readouterr().err


def test_the_report_links_pages_of_the_runs_asked_for(small_study: Path, tmp_path: Path) -> None:
    written = report.write_report(small_study, tmp_path, runs=["*/t6/tp16ep2/*"], with_figures=False)
    pages = sorted(path.relative_to(tmp_path).as_posix() for path in written if path.parent.name == "runs")
    assert pages == sorted(f"runs/{run_page.page_name(key)}" for key in (RING, TREE))
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f'<a href="{page}">' in index for page in pages)
