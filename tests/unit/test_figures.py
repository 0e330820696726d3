"""The figures: that all are there, hold every run, say units and samples, and are safe to put on a page."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")

from hpcmoe import analysis, report
from hpcmoe.analysis import Figure, Study
from hpcmoe.design import TOPOLOGIES, RunKey, all_runs
from hpcmoe.figures import bars, layout, ratios, style, topologies
from hpcmoe.figures.collection import draw_figures
from hpcmoe.published import load_published
from hpcmoe.topology import build

PUBLISHED = load_published()
NUMBERS = ["3-1", *(f"A-{n}" for n in range(1, 7)), *(f"4-{n}" for n in range(1, 8))]
FACTORS = ("model", "topology", "strategy", "collective", "network")
Change = Callable[[RunKey], dict[str, object]]


def study_of(change: Change = lambda key: {}) -> Study:
    rows = []
    for place, key in enumerate(all_runs()):
        row = {"key": str(key), "status": "ok", "tokens": 4096, "wall_ns": 10**8 + place * 10**5}
        row |= {"gpu_ns": 10**7, "comm_ns": 9 * 10**7 + place * 10**5}
        rows.append(row | {factor: getattr(key, factor) for factor in FACTORS} | change(key))
    table = analysis.from_rows(rows, {"tokens": 4096, "layers": -1})
    return analysis.build_study(table, report.catalog_facts())


@pytest.fixture(scope="module")
def figures() -> dict[str, Figure]:
    return {figure.number: figure for _, figure in draw_figures(study_of(), PUBLISHED)}


def test_every_figure_is_drawn_in_every_format(figures: dict[str, Figure]) -> None:
    assert sorted(figures) == sorted(NUMBERS)
    for figure in figures.values():
        assert figure.files["png"].startswith(b"\x89PNG")
        assert figure.files["pdf"].startswith(b"%PDF")
        assert figure.svg.startswith("<svg ")
        ET.fromstring(figure.svg)


def test_inline_figures_have_ids_of_their_own_and_ask_for_nothing(figures: dict[str, Figure]) -> None:
    ids = [name for figure in figures.values() for name in re.findall(r'\bid="([^"]*)"', figure.svg)]
    assert len(ids) == len(set(ids)) > 0
    for figure in figures.values():
        referred = re.findall(r'(?:href="#|url\(#)([^")]*)', figure.svg)
        assert set(referred) <= set(ids)
        assert not re.search(r"https?:|url\((?!#)", figure.svg)
        assert "currentColor" in figure.svg
        assert style.INK not in figure.svg


@pytest.mark.parametrize("number", ["4-1", "4-2", "4-3", "4-4"])
def test_a_model_figure_has_192_stacked_bars(figures: dict[str, Figure], number: str) -> None:
    svg = figures[number].svg
    for color in (style.GPU_COLOR, style.COMM_COLOR):
        assert svg.count(f"fill: {color}") == 192 + 1  # and its key
    assert svg.count("n = 24 of 24") == 8
    assert svg.count("wall time (s)") == 2


def test_bars_are_the_times_of_their_runs() -> None:
    study = study_of()
    times = bars._times(study, "glm", "wall_ns", "dbt_direct", "roce_hpcc")
    assert times.shape == (4, 6)
    key = RunKey("glm", "t3", "tp8ep4", "dbt_direct", "roce_hpcc")
    assert times[2, 2] == pytest.approx((10**8 + all_runs().index(key) * 10**5) / 1e9)


def test_missing_runs_are_crosses_and_counted() -> None:
    def holes(key: RunKey) -> dict[str, object]:
        return {"status": "failed"} if (key.topology, key.strategy) == ("t2", "tp4ep8") else {}

    figure = bars.model_figure(study_of(holes), "k3", "4-2")
    assert figure.svg.count(f"fill: {style.GPU_COLOR}") == 192 - 8 + 1
    assert figure.svg.count("n = 23 of 24") == 8
    assert "no finished run" in figure.svg
    assert "Gap: 8 of 192 runs" in " ".join(figure.notes)


def test_a_model_outside_the_study_changes_no_figure(figures: dict[str, Figure]) -> None:
    def renamed(key: RunKey) -> dict[str, object]:
        return {"model": "mine", "key": f"mine/{key}"} if key.model == "pro" else {}

    study = study_of(renamed)
    assert bars.model_figure(study, "flash", "4-1") == figures["4-1"]
    assert "n = 0 of 24" in bars.model_figure(study, "pro", "4-4").svg


def test_a_study_without_runs_still_draws() -> None:
    empty = study_of(lambda key: {"status": "missing"})
    assert "n = 0 of 24" in bars.model_figure(empty, "pro", "4-4").svg
    assert "n = 0 of 24" in ratios.surface_figure(empty).svg
    assert "n = 0 of 12 matched pairs" in " ".join(ratios.collective_figure(empty).notes)
    assert "n = 0 of 8 matched pairs" in " ".join(ratios.control_figure(empty).notes)


def test_every_figure_states_its_sample_and_unit(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        assert re.search(r"\bn = |\bn: ", figure.svg + " ".join(figure.notes)), figure.number
    for number in ("3-1", "4-5", "4-6", "4-7"):
        assert "(1)" in figures[number].svg  # ratios are without unit
    for number in (f"A-{n}" for n in range(1, 7)):
        assert re.search(r"\d+ Gbps, [\d.]+ us", figures[number].svg)


def test_ratios_are_over_the_run_at_t6_tp2() -> None:
    def planted(key: RunKey) -> dict[str, object]:
        return {"wall_ns": 10**8 * (1 + TOPOLOGIES.index(key.topology)) * key.tp}

    chosen = ratios.sets.level_mask("network", "roce_hpcc") & ratios.sets.level_mask(
        "collective", "ring_direct"
    )
    values = ratios._surface(study_of(planted), "flash", chosen)
    assert values[5, 0] == 1
    assert values[2].tolist() == pytest.approx([3 * tp / 12 for tp in (2, 4, 8, 16)])


def test_equal_input_gives_equal_bytes() -> None:
    first, second = (topologies.topology_figure("t4") for _ in range(2))
    assert first == second


def test_colours_differ_in_lightness_or_have_patterns() -> None:
    """GPU and communication apart in grey; models also by hatching."""
    grey = [
        int(c[1:3], 16) * 0.3 + int(c[3:5], 16) * 0.59 + int(c[5:], 16) * 0.11
        for c in (style.GPU_COLOR, style.COMM_COLOR)
    ]
    assert abs(grey[0] - grey[1]) > 40
    assert len(set(style.MODEL_HATCHES.values())) == len(style.MODEL_HATCHES) == 4


# --- where nodes stand ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_nodes_of_a_drawing_do_not_overlap(name: str) -> None:
    topology = build(name, 1000)
    for points in (
        layout.radial(topology, range(topology.node_count)),
        layout.server_points(topology, layout.servers(topology)[0]),
    ):
        places = np.array(list(points.values()))
        gaps = np.linalg.norm(places[:, None] - places[None, :], axis=2) + 9 * np.eye(len(places))
        assert gaps.min() > 0.06


@pytest.mark.parametrize(
    ("name", "count", "size"), [("t1", 32, 2), ("t3", 16, 5), ("t5", 2, 24), ("t6", 1, 40)]
)
def test_servers_hold_their_nodes_and_not_the_tor(name: str, count: int, size: int) -> None:
    topology = build(name, 1000)
    found = layout.servers(topology)
    assert (len(found), {len(nodes) for nodes in found.values()}) == (count, {size})
    assert all(topology.node_kinds[node] != "tor" for nodes in found.values() for node in nodes)


def test_the_drawing_holds_every_link(figures: dict[str, Figure]) -> None:
    """Links of the cluster, of one server, and one line per kind in the key."""
    topology = build("t4", 1000)
    inside = set(layout.servers(topology)[0])
    within = sum(link.src in inside and link.dst in inside for link in topology.links)
    kinds = len(topologies.link_kinds(topology))
    lines = re.findall(r'<g id="figure-A-4-line2d_\d+">\s*<path', figures["A-4"].svg)
    assert len(lines) == len(topology.links) + within + kinds
