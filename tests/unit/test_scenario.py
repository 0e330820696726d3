import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcmoe import design, parameters, scenario
from hpcmoe.errors import InputError
from hpcmoe.export import export_scenario
from hpcmoe.scenario import Scenario, UpstreamFiles, scenario_from_key, scenario_from_upstream_files

KEY = "flash/t4/tp8ep4/ring_direct/roce_dcqcn"


def small(key: str = KEY, **options: object) -> Scenario:
    return scenario_from_key(key, **{"tokens": 16, "layers": 1, **options})  # type: ignore[arg-type]


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UpstreamFiles:
    """The scenario of KEY as files, with their folder as the working directory."""
    export_scenario(small(), tmp_path)
    monkeypatch.chdir(tmp_path)
    return UpstreamFiles("et", "system.json", "config.txt", "memory.json", "logical.json")


def test_a_study_scenario() -> None:
    made = small()
    assert (made.key, made.profile, made.logical_dims, made.ranks) == (KEY, "study", (8, 4), 32)
    assert (made.network["cc_mode"], made.network["ecn_enabled"]) == (1, True)
    assert made.network["int_exact_rates"] is True
    assert made.implementations["all_reduce"] == [(0, -1, False), (1, -1, False)]
    assert {link.delay_ns for link in made.topology.links if link.dst == 48} == {1000}
    assert len(made.traces) == 32
    assert len(set(map(id, made.traces))) == 1
    thresholds = {row[0]: row[1:] for row in made.ecn}
    assert thresholds[400 * 10**9] == (300_000, 1_200_000, 0.2)
    assert thresholds[512 * 10**9] == (4_294_967_000, 4_294_967_000, 0)  # more than any buffer holds


@pytest.mark.parametrize(
    ("network", "mode", "ecn", "delay_ns"),
    [("ib_cc0", 0, False, 700), ("ib_hpcc", 3, False, 700), ("roce_hpcc", 3, True, 1000),
     ("roce_dcqcn", 1, True, 1000)],
)  # fmt: skip
def test_network_modes(network: str, mode: int, ecn: bool, delay_ns: int) -> None:
    made = small(f"flash/t1/tp8ep4/ring_direct/{network}")
    assert (made.network["cc_mode"], made.network["ecn_enabled"]) == (mode, ecn)
    assert made.topology.links[-1].delay_ns == delay_ns


def test_pairs_inside_a_server_have_no_control() -> None:
    disabled = small().cc_disabled_pairs
    assert disabled is not None
    assert disabled.shape == (32, 32)
    assert disabled[0, 7]
    assert not disabled[0, 8]
    assert disabled.sum() == 4 * 8 * 8


def test_every_run_of_the_study_is_valid_and_has_its_own_digest() -> None:
    runs = design.all_runs()[::11]
    assert len({small(str(key)).digest() for key in runs}) == len(runs)


def test_tree_and_extra_collectives() -> None:
    assert small("k3/t1/tp2ep16/dbt_direct/ib_cc0").implementations["all_reduce"][0] == (3, -1, False)
    extra = small("k3/t1/tp2ep16/halving_doubling_ring/ib_cc0").implementations
    assert (extra["all_reduce"][0][0], extra["all_to_all"][1][0]) == (2, 0)


def test_overrides_and_what_they_do_to_the_digest() -> None:
    base = small()
    changed = small(
        overrides={"has_window": "0", "endpoint_delay_ns": 20, "ecn": "*:1:2:1", "external_delay": "3us"}
    )
    assert (changed.network["has_window"], changed.system["endpoint_delay_ns"]) == (False, 20)
    assert changed.ecn[0][1:] == (1, 2, 1.0)
    assert changed.topology.links[-1].delay_ns == 3000
    assert changed.digest() != base.digest()
    assert small(overrides={"has_window": "1"}).digest() == base.digest()


@pytest.mark.parametrize(
    ("name", "value"),
    [("random_seed", 2), ("peak_perf_tflops", 999), ("ecn", "*:1:2:1"), ("external_delay", "3us")],
)
def test_every_kind_of_input_is_in_the_digest(name: str, value: object) -> None:
    assert small(overrides={name: value}).digest() != small().digest()


def test_traces_policy_and_groups_are_in_the_digest() -> None:
    base = small()
    assert small(tokens=17).digest() != base.digest()
    assert replace(base, cc_disabled_pairs=None).digest() != base.digest()
    assert replace(base, groups={1: [0, 1]}).digest() != base.digest()
    assert replace(base, key="other").digest() == base.digest()


def test_the_digest_depends_on_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = small().digest()
    monkeypatch.setattr(scenario, "__version__", "0.0.0")
    assert small().digest() != before


def test_the_digest_is_the_same_in_another_process(checkout: Path) -> None:
    code = f"from hpcmoe.scenario import *; print(scenario_from_key({KEY!r}, tokens=16, layers=1).digest())"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == small().digest()


def test_json_is_complete_and_plain() -> None:
    content = json.loads(json.dumps(small().to_json(), allow_nan=False))
    assert content["key"] == KEY
    assert set(content["network"]) == set(parameters.NETWORK_NAMES)
    assert set(content["system"]) == set(parameters.SYSTEM_NAMES)
    assert content["trace_of_rank"] == [0] * 32
    assert content["trace_sha256"] == [small().traces[0].digest()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "flash/t9/tp8ep4/ring_direct/ib_cc0"}, "unknown topology"),
        ({"overrides": {"bufer_bytes": 1}}, "bufer_bytes: unknown parameter; allowed: buffer_bytes"),
        ({"overrides": {"u_target": 2}}, "u_target: bad value"),
        ({"layers": 99}, "layers: bad number"),
        ({"overrides": {"cc_mode": "dcqcn", "rp_timer_us": 0}}, "RP_TIMER"),
        ({"overrides": {"l2_chunk_bytes": 0, "l2_ack_interval_bytes": 9}}, "L2_CHUNK_SIZE"),
        ({"overrides": {"peak_perf_tflops": 0}}, "peak_perf_tflops: the roofline needs it"),
    ],
)
def test_bad_requests(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small(**options)  # type: ignore[arg-type]


def test_long_paths_under_hpcc_are_warned_about() -> None:
    (text,) = small("flash/t3/tp16ep2/ring_direct/roce_hpcc").warnings
    assert "HPCC ignores feedback over more than 5 switches" in text
    assert not small("flash/t2/tp16ep2/ring_direct/roce_hpcc").warnings
    assert not small("flash/t3/tp16ep2/ring_direct/ib_cc0").warnings


def test_upstream_files_give_the_upstream_profile(exported: UpstreamFiles) -> None:
    read, made = scenario_from_upstream_files(exported), small()
    assert (read.key, read.profile, read.logical_dims) == ("", "upstream", (8, 4))
    upstream = parameters.defaults("upstream", "network")
    for name in parameters.PROFILE_SWITCHES:
        assert read.network[name] == upstream[name]
    assert read.system == made.system | {"compute_ties": 0}
    assert read.implementations == made.implementations
    assert read.ecn == made.ecn
    assert read.topology.links == made.topology.links
    assert read.traces[0].digest() == made.traces[0].digest()
    assert read.cc_disabled_pairs is None


def test_export_and_study_profile_are_the_same_run(exported: UpstreamFiles) -> None:
    """But for the diagonal of the policy and the start of a monitor that is off."""
    files = replace(exported, cc_policy="cc_policy.txt")
    read = scenario_from_upstream_files(
        files, profile="study", overrides={"qlen_monitor_start_ns": 2**64 - 1}
    )
    made = small()
    assert made.cc_disabled_pairs is not None
    policy = made.cc_disabled_pairs & ~np.eye(32, dtype=bool)
    assert read.digest() == replace(made, cc_disabled_pairs=policy).digest()


def test_checks_name_the_files_and_their_keys(exported: UpstreamFiles, tmp_path: Path) -> None:
    def refuse(file: str, change: dict[str, object], message: str) -> None:
        original = (tmp_path / file).read_text()
        (tmp_path / file).write_text(json.dumps(json.loads(original) | change))
        with pytest.raises(InputError, match=message):
            scenario_from_upstream_files(exported)
        (tmp_path / file).write_text(original)

    refuse("system.json", {"local-mem-bw": 0}, r"^system\.json: local-mem-bw: the roofline needs it")
    refuse("system.json", {"endpoint-delay": -1}, r"^system\.json: endpoint-delay: bad value")
    tree = {"all-to-all-implementation": ["ring", "halvingDoubling"]}
    refuse("system.json", tree, r"^system\.json: all-to-all-implementation: no such all-to-all")
    for option, message in (
        ({"num_queues_per_dim": 0}, "^--num-queues-per-dim: bad value"),
        ({"injection_scale": -1.0}, "^--injection-scale: bad value"),
        ({"injection_scale": 1e6, "system": "slow.json"}, "^--injection-scale: bad value"),
    ):
        slow = json.loads((tmp_path / "system.json").read_text()) | {"endpoint-delay": 10**6}
        (tmp_path / "slow.json").write_text(json.dumps(slow))
        with pytest.raises(InputError, match=message):
            scenario_from_upstream_files(replace(exported, **option))  # type: ignore[arg-type]
    (tmp_path / "g.json").write_text('{"1": [0, 99]}')
    with pytest.raises(InputError, match=r"^g\.json: group 1: ranks are out of range"):
        scenario_from_upstream_files(replace(exported, groups="g.json"))


def test_command_line_options_of_upstream(exported: UpstreamFiles) -> None:
    files = replace(exported, num_queues_per_dim=4, injection_scale=2.55, rendezvous_protocol=True)
    system = scenario_from_upstream_files(files).system
    assert system["num_queues_per_dim"] == 4
    assert system["endpoint_delay_ns"] == 25
    assert system["rendezvous_protocol"] is True


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_bad_injection_scales(scale: float, exported: UpstreamFiles) -> None:
    with pytest.raises(InputError, match="injection-scale: bad value"):
        scenario_from_upstream_files(replace(exported, injection_scale=scale))


def test_the_default_endpoint_delay_is_not_scaled(exported: UpstreamFiles) -> None:
    content = json.loads(Path("system.json").read_text())
    del content["endpoint-delay"]
    Path("system.json").write_text(json.dumps(content))
    assert (
        scenario_from_upstream_files(replace(exported, injection_scale=3.0)).system["endpoint_delay_ns"] == 10
    )


def test_the_monitor_needs_a_file_name(exported: UpstreamFiles) -> None:
    assert scenario_from_upstream_files(exported).network["qlen_monitor_start_ns"] == 10**18
    text = Path("config.txt").read_text().replace("QLEN_MON_FILE qlen.txt", "")
    Path("config.txt").write_text(text)
    assert scenario_from_upstream_files(exported).network["qlen_monitor_start_ns"] == 2**64 - 1


def test_increase_rates_are_needed_only_under_control(exported: UpstreamFiles) -> None:
    text = "\n".join(line for line in Path("config.txt").read_text().splitlines() if "RATE_AI" not in line)
    Path("config.txt").write_text(text)
    with pytest.raises(InputError, match=r"config\.txt: RATE_AI: missing"):
        scenario_from_upstream_files(exported)
    Path("config.txt").write_text(text.replace("CC_MODE 1", "CC_MODE 12"))
    assert scenario_from_upstream_files(exported).network["rate_ai_bps"] == 50_000_000


def test_scheduling_policy_has_no_default(exported: UpstreamFiles) -> None:
    Path("system.json").write_text("{}")
    with pytest.raises(InputError, match=r"system\.json: scheduling-policy: missing .*LIFO"):
        scenario_from_upstream_files(exported)


def test_traces_and_logical_topology_agree(exported: UpstreamFiles) -> None:
    Path("logical.json").write_text('{"logical-dims": ["8", "5"]}')
    with pytest.raises(
        InputError, match=r"et\.32\.et: no such file, but the logical topology 8 x 5 has 40 ranks"
    ):
        scenario_from_upstream_files(exported)
    Path("logical.json").write_text('{"logical-dims": ["8", "2"]}')
    with pytest.raises(InputError, match=r"et\.16\.et: one trace too many: .* 8 x 2 has 16 ranks"):
        scenario_from_upstream_files(exported)


def test_the_topology_must_be_named(exported: UpstreamFiles) -> None:
    Path("config.txt").write_text(Path("config.txt").read_text().replace("TOPOLOGY_FILE", "{} "))
    with pytest.raises(InputError, match="TOPOLOGY_FILE: missing"):
        scenario_from_upstream_files(exported)


BROKEN_ENTRIES = {
    ("networks", "title: x"): "external_delay: bad delay; allowed: a time",
    ("networks", "external_delay: 1"): "external_delay: bad delay (got 1)",
    ("networks", "external_delay: -1us"): "external_delay: bad delay (got '-1us')",
    ("networks", "external_delay: 1us"): "parameters: not a mapping of parameters",
    (
        "networks",
        "external_delay: 1us\nparameters: [a]",
    ): "parameters: not a mapping of parameters (got ['a'])",
    ("networks", "external_delay: 1us\nparameters: {cc_mod: dcqcn}"): "cc_mod: no network parameter (got",
    ("networks", "external_delay: 1us\nparameters: {cc_mode: x}"): "cc_mode",
    ("networks", "- a"): "not a mapping of names to values",
    ("collectives", "title: x"): "all_reduce: not a list of algorithms; allowed: an algorithm per",
    ("collectives", "all_reduce: ring"): "all_reduce: not a list of algorithms (got 'ring')",
    ("collectives", "all_reduce: []"): "all_reduce: not a list of algorithms (got [])",
    ("collectives", "all_reduce: [rign, ring]"): "all_reduce: unknown algorithm (got 'rign')",
    ("collectives", "all_reduce: [1, ring]"): "all_reduce: unknown algorithm (got 1)",
    ("collectives", "all_reduce: [ring]\nall_reduce: [ring]"): "line 2: given twice: all_reduce",
}


@pytest.mark.parametrize(("kind", "text"), BROKEN_ENTRIES)
def test_faulty_entries_of_the_users_own_catalog(
    kind: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCMOE_CATALOG", str(tmp_path))
    file = tmp_path / kind / "mine.yaml"
    file.parent.mkdir()
    file.write_text(text)
    key = "flash/t1/tp2ep16/ring_direct/mine" if kind == "networks" else "flash/t1/tp2ep16/mine/ib_cc0"
    with pytest.raises(InputError) as error:
        scenario_from_key(key, tokens=1, layers=1)
    assert str(error.value).startswith(f"{file}: ")
    assert BROKEN_ENTRIES[kind, text] in str(error.value)
