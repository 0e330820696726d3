"""The microbenchmark of Table 3-9: what is run, what is compared, and that every assumption is said."""

import json
from typing import Any

import pytest

from hpcmoe import cli, validation
from hpcmoe.published import load_published
from hpcmoe.trace import CollectiveType
from hpcmoe.validation import Assumptions

COMMAND = ["validate", "nccl-alltoall"]
SMALL = 400_000


def result(*options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.main([*COMMAND, "--bytes", str(SMALL), *options, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rates(scenario: Any, *kinds: str) -> set[tuple[int, int]]:
    names = scenario.topology.node_kinds
    links = [link for link in scenario.topology.links if {names[link.src], names[link.dst]} == set(kinds)]
    return {(link.rate_bps, link.delay_ns) for link in links}


def test_it_is_one_all_to_all_over_all_accelerators() -> None:
    scenario = validation.build(Assumptions(size_bytes=SMALL))
    assert (scenario.ranks, scenario.topology.hosts) == (32, 32)
    graph = scenario.traces[31]
    assert (graph.comm_type.tolist(), graph.comm_bytes.tolist()) == ([CollectiveType.ALL_TO_ALL], [SMALL])


@pytest.mark.parametrize(
    ("count", "sizes"), [("per-rank", [SMALL]), ("in-and-out", [SMALL, SMALL]), ("total", [SMALL // 32])]
)
def test_what_the_size_counts(count: str, sizes: list[int]) -> None:
    graph = validation.build(Assumptions(size_bytes=SMALL, count=count)).traces[0]
    assert graph.comm_bytes.tolist() == sizes


def test_options_change_the_links_that_they_name_and_no_others() -> None:
    plain = validation.build(Assumptions(size_bytes=SMALL))
    changed = validation.build(
        Assumptions(
            size_bytes=SMALL, scaleup_rate_bps=10**12, scaleup_delay_ns=77, attachment_rate_bps=2 * 10**11
        )
    )
    assert rates(changed, "gpu", "scaleup") == {(10**12, 77)}
    assert {rate for rate, _ in rates(changed, "gpu", "pcie")} == {2 * 10**11}
    assert rates(changed, "nic", "tor") == rates(plain, "nic", "tor")
    assert {10**12, 2 * 10**11} <= {row[0] for row in changed.ecn}


def test_the_whole_outcome_names_every_assumption_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*COMMAND, "--bytes", str(SMALL)]) == 0
    out = capsys.readouterr().out
    published = load_published()["validation"]
    for value in (f"{published['simulated_us']:.1f}", f"{published['measured_us']:.1f}"):
        assert value in out
    assert "NOT the published 2 GB" in out
    assert out.count("another size") == 2
    for option in ("--bytes", "--count", "--algorithm", "--topology", "--network", "--scaleup-rate", "--set"):
        assert f"({option}" in out or f"{option} " in out


def test_a_difference_is_taken_of_the_published_size_only() -> None:
    class Result:
        wall_ns = 90_000_000

    scenario = validation.build(Assumptions(size_bytes=SMALL))
    for size, relative in ((2 * 10**9, 90_000 / 100_000 - 1), (2**31, 90_000 / 100_000 - 1), (SMALL, None)):
        outcome = validation.Outcome(Assumptions(size_bytes=size), scenario, Result())  # type: ignore[arg-type]
        assert outcome.relative(100_000.0) == relative


def test_assumptions_act(capsys: pytest.CaptureFixture[str]) -> None:
    plain = result(capsys=capsys)
    assert plain["published"]["measured"] == {"time_us": 102716, "relative": None}
    slow = result("--set", "external_delay=10us", capsys=capsys)
    ring = result("--algorithm", "ring", capsys=capsys)
    twice = result("--count", "in-and-out", capsys=capsys)
    assert slow["time_us"] > plain["time_us"] + 10
    assert ring["time_us"] > plain["time_us"]
    assert twice["time_us"] > 1.5 * plain["time_us"]
    assert twice["bandwidth_gbps"] == pytest.approx(2 * SMALL / twice["time_us"] / 1e3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bytes", "0"], "--bytes: expected a size such as 256MB or 2GiB, up to 64GB, got '0'"),
        (["--bytes", "2 TB"], "--bytes: expected a size such as 256MB or 2GiB, up to 64GB, got '2 TB'"),
        (["--bytes", "100GB"], "got '100GB'"),
        (["--count", "pair"], "invalid choice: 'pair'"),
        (["--algorithm", "tree"], "invalid choice: 'tree'"),
        (["--scaleup-rate", "fast"], "--scaleup-rate: expected a rate such as 3200Gbps, got 'fast'"),
        (["--scaleup-delay", "1 week"], "--scaleup-delay: expected a time such as 0.1us, got '1 week'"),
        (["--attachment-rate", "0"], "--attachment-rate: expected a rate such as 3200Gbps, got '0'"),
        (["--network", "ethernet"], "unknown network (got 'ethernet'); allowed: "),
        (["--topology", "moon"], "unknown topology (got 'moon'); allowed: "),
        (["--topology", "t1", "--scaleup-rate", "1Tbps"], "expected a rate such as 3200Gbps, got '1Tbps'"),
        (
            ["--topology", "t1", "--scaleup-rate", "900Gbps"],
            "--scaleup-rate: this topology has no scale-up domain",
        ),
        (["--set", "has_window=maybe"], "has_window: bad value (got 'maybe'); allowed: 0, 1, true, false"),
    ],
)
def test_bad_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: Any = cli.main([*COMMAND, "--bytes", "1kB", *options])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert message in capsys.readouterr().err
