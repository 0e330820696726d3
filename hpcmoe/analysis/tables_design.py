"""Tables 3-1 to 3-9 and A-1: what is studied, from the catalog, beside the published description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpcmoe import catalog, design, parameters
from hpcmoe.analysis.facts import ModelFacts
from hpcmoe.analysis.table import (
    FRACTION,
    INTEGER,
    LABEL,
    NUMBER,
    SECONDS,
    TEXT,
    Cell,
    Column,
    Quantity,
    Table,
    Value,
    difference,
    label,
    numbered,
    plain,
)
from hpcmoe.analysis.tables_model import Published
from hpcmoe.topology import Topology, build
from hpcmoe.units import parse_rate_bps, parse_time_ns
from hpcmoe.weights import residency

ORDER_3 = ("k3", "glm", "pro", "flash")
"""Order of the models in chapter 3."""
RANKS = 32


def design_tables(facts: Mapping[str, ModelFacts], published: Published) -> Iterator[Table]:
    """Tables 3-1 to 3-9 and A-1; none of them needs a run."""
    yield model_table(facts, published)
    yield residency_table(published)
    yield strategy_table(published)
    yield topology_table(published)
    yield mode_table(published)
    yield link_table(published)
    yield pair_table(published)
    yield parameter_table(published)
    yield validation_table(published)
    yield node_table()


def against(quantity: Quantity, ours: Value, published: Value) -> Cell:
    """Ours beside the published value."""
    return Cell(quantity, ours=ours, published=published, difference=difference(quantity, ours, published))


def model_table(facts: Mapping[str, ModelFacts], published: Published) -> Table:
    """Table 3-1."""
    columns = (
        Column("model"),
        Column("published parameters (10^9)", INTEGER),
        *(Column(name, INTEGER, True) for name in ("h", "layers", "routed experts", "experts per token")),
    )
    fields = (
        ("hidden", "h"), ("layers", "layers"), ("routed_experts", "routed_experts"), ("top_k", "top_k")
    )  # fmt: skip
    rows = []
    for model in ORDER_3:
        theirs = published["models"][model]
        cells = [against(INTEGER, getattr(facts.get(model), ours, None), theirs[key]) for ours, key in fields]
        rows.append([label(theirs["name"]), plain(INTEGER, theirs["total_params_b"]), *cells])
    note = "h is the width that is communicated: for Kimi K3 the latent width of its experts."
    return numbered("3-1", "Architecture of the models", columns, rows, (note,))


def residency_table(published: Published) -> Table:
    """Table 3-2."""
    capacity = published["residency"]["criterion_gb_per_accelerator"]
    columns = (
        Column("model"),
        Column("published parameters (10^9)", INTEGER),
        Column("weight format", TEXT),
        Column("weights (GB)", NUMBER),
        Column("per rank (GB)", NUMBER, True),
        Column(f"fits {capacity} GB", TEXT, True),
    )
    rows = []
    for model in ORDER_3:
        theirs = published["models"][model]
        held = residency(theirs["weights_gb"], RANKS, capacity)
        rows.append(
            [
                label(theirs["name"]),
                plain(INTEGER, theirs["total_params_b"]),
                plain(TEXT, theirs["weight_format"]),
                plain(NUMBER, theirs["weights_gb"]),
                against(NUMBER, held.per_rank_gb, theirs["weights_per_rank_gb"]),
                against(TEXT, "yes" if held.fits else "no", "yes"),
            ]
        )
    note = "Checkpoint size over 32, weights only. Parameters, formats and sizes are the published ones."
    return numbered("3-2", f"Weight residency on {RANKS} accelerators", columns, rows, (note,))


def strategy_table(published: Published) -> Table:
    """Table 3-3."""
    columns = (
        Column("strategy"),
        *(Column(name, INTEGER) for name in ("TP", "EP", "ranks")),
        Column("purpose"),
    )
    rows = []
    for name, purpose in published["design"]["strategies"].items():
        tp, ep = design.parse_strategy(name)
        rows.append([label(name), *(plain(INTEGER, n) for n in (tp, ep, tp * ep)), label(purpose)])
    return numbered("3-3", "Parallel strategies", columns, rows)


@dataclass(frozen=True)
class ServerFacts:
    """Counts of a topology: per server, then in all."""

    gpus: int
    nics: int
    cpus: int
    switches: int
    servers: int
    all_nics: int
    all_gpus: int

    @property
    def gpus_per_nic(self) -> int | None:
        return self.all_gpus // self.all_nics if self.all_nics else None


def server_facts(topology: Topology) -> ServerFacts:
    """Counts from the topology's own data."""
    servers = len(set(topology.server_of_host))
    counts = {kind: topology.node_kinds.count(kind) for kind in ("gpu", "nic", "cpu", "pcie")}
    per_server = {kind: count // servers for kind, count in counts.items()}
    return ServerFacts(
        per_server["gpu"], per_server["nic"], per_server["cpu"], per_server["pcie"],
        servers, counts["nic"], counts["gpu"],
    )  # fmt: skip


def study_topology(name: str) -> Topology:
    """A topology of the catalog with the delay of its RoCE modes."""
    return build(name, parse_time_ns(catalog.load("networks", "roce_hpcc")["external_delay"]))


def topology_table(published: Published) -> Table:
    """Table 3-4."""
    names = (
        ("GPUs per server", "gpus"), ("NICs per server", "nics"), ("PCIe switches per server", "switches"),
        ("servers", "servers"), ("NICs", "all_nics"), ("GPUs per NIC", "gpus_per_nic"),
    )  # fmt: skip
    columns = (
        Column("topology"),
        *(Column(name, INTEGER, True) for name, _ in names),
        Column("CPUs per server, published", INTEGER),
        Column("purpose"),
    )
    rows = []
    for name, theirs in published["design"]["topologies"].items():
        ours = server_facts(study_topology(name))
        cells = [_count(getattr(ours, key), theirs[key]) for _, key in names]
        rows.append([label(name), *cells, plain(INTEGER, theirs["cpus"]), label(theirs["purpose"])])
    note = "CPUs are nodes of the simulated network only where traffic crosses them (t3)."
    return numbered("3-4", "Topologies", columns, rows, (note,))


def _count(ours: int | None, published: int | None) -> Cell:
    return label("none") if ours is None and published is None else against(INTEGER, ours, published)


def mode_table(published: Published) -> Table:
    """Table 3-5."""
    columns = (
        Column("mode"),
        Column("title"),
        Column("CC_MODE", INTEGER, True),
        Column("QCN", INTEGER, True),
        Column("purpose"),
    )
    rows = []
    for name, theirs in published["design"]["networks"].items():
        entry = catalog.load("networks", name)
        values = {key: parameters.find(key).parse(str(value)) for key, value in entry["parameters"].items()}
        rows.append(
            [
                label(name),
                label(entry["title"]),
                against(INTEGER, int(values["cc_mode"]), theirs["cc_mode"]),
                against(INTEGER, int(values["ecn_enabled"]), theirs["qcn"]),
                label(theirs["purpose"]),
            ]
        )
    return numbered("3-5", "Network modes", columns, rows)


def link_table(published: Published) -> Table:
    """Table 3-6."""
    ours, theirs = catalog.study()["links"], published["links"]
    nic, theirs_nic = ours["external"], theirs["nic_switch"]
    outside = {mode: catalog.load("networks", mode)["external_delay"] for mode in ("ib_hpcc", "roce_hpcc")}
    entries = (
        ("GPU attachment", "all", ours["local"], theirs["gpu_local"], "delay_us", None),
        ("NIC to switch, IB-like", "t1 to t5", nic, theirs_nic, "delay_us_ib", outside["ib_hpcc"]),
        ("NIC to switch, RoCE", "t1 to t5", nic, theirs_nic, "delay_us_roce", outside["roce_hpcc"]),
        ("PCIe switches", "t4 to t6", ours["inter_switch"], theirs["inter_pcie_switch"], "delay_us", None),
        ("UPI", "t3", ours["upi"], theirs["upi"], "delay_us", None),
    )  # fmt: skip
    rows = [
        [
            label(name),
            label(where),
            against(INTEGER, parse_rate_bps(link["rate"]) // 10**9, published_link["gbps"]),
            against(NUMBER, parse_time_ns(delay or link["delay"]) / 1000, published_link[key]),
        ]
        for name, where, link, published_link, key, delay in entries
    ]
    columns = (
        Column("link"),
        Column("topologies"),
        Column("rate (Gbps)", INTEGER, True),
        Column("delay (us)", NUMBER, True),
    )
    return numbered("3-6", "Links", columns, rows)


def pair_table(published: Published) -> Table:
    """Table 3-7."""
    columns = (
        Column("pair"),
        Column("TP all-reduce", TEXT, True),
        Column("EP all-to-all", TEXT, True),
        Column("purpose"),
    )
    rows = []
    for name, theirs in published["design"]["collectives"].items():
        entry = catalog.load("collectives", name)
        tp, ep = entry["all_reduce"][0], entry["all_to_all"][1]
        rows.append(
            [
                label(name),
                against(TEXT, tp, theirs["tp"]),
                against(TEXT, ep, theirs["ep"]),
                label(theirs["purpose"]),
            ]
        )
    return numbered("3-7", "Collective pairs", columns, rows)


_FIXED = (
    ("scheduling policy", "scheduling_policy", "fixed_system_keys", "scheduling-policy", 1),
    ("active chunks", "active_chunks_per_dimension", "fixed_system_keys", "active-chunks-per-dimension", 1),
    ("dataset splits", "preferred_dataset_splits", "fixed_system_keys", "preferred-dataset-splits", 1),
    ("endpoint delay (ns)", "endpoint_delay_ns", "fixed_system_keys", "endpoint-delay_ns", 1),
    ("peak performance (PFLOP/s)", "peak_perf_tflops", "fixed_system_keys", "peak_pflops", 1000),
    ("memory bandwidth (TB/s)", "local_mem_bw_gbps", "fixed_system_keys", "local_mem_bw_tbps", 1000),
    ("payload of a packet (B)", "payload_bytes", "fixed_network_keys", "PACKET_PAYLOAD_SIZE", 1),
    ("L2 chunk (B)", "l2_chunk_bytes", "fixed_network_keys", "L2_CHUNK_SIZE", 1),
    ("ACK interval (B)", "l2_ack_interval_bytes", "fixed_network_keys", "L2_ACK_INTERVAL", 1),
    ("headroom factor", "headroom_factor", "fixed_network_keys", "HEADROOM_FACTOR", 1),
    ("HPCC target utilisation", "u_target", "fixed_network_keys", "U_TARGET", 1),
    ("error rate per link", "error_rate_per_link", "fixed_network_keys", "ERROR_RATE_PER_LINK", 1),
)  # fmt: skip
"""Shown name, our parameter, published group and key, our value over theirs."""


def parameter_table(published: Published) -> Table:
    """Table 3-8: what all runs share."""
    rows = [
        [label(name), against(TEXT, _OURS[name], theirs)] for name, theirs in published["design"]["simulator"]
    ]
    rows.append(
        [
            label("tokens"),
            against(INTEGER, catalog.study()["tokens"], published["fixed_system_keys"]["sequence_length"]),
        ]
    )
    for name, ours, group, key, factor in _FIXED:
        parameter, theirs = parameters.find(ours), published[group][key]
        value: Value = parameter.default / factor if factor != 1 else parameter.default
        if isinstance(theirs, str):
            chosen = next(
                (n for n, v in (parameter.choices or {}).items() if v == parameter.default), str(value)
            )
            rows.append([label(name), against(TEXT, chosen.upper(), theirs)])
        else:
            whole = value == int(value or 0) and theirs == int(theirs)
            rows.append([label(name), against(INTEGER if whole else NUMBER, _whole(value), _whole(theirs))])
    buffer = f"{int(parameters.find('buffer_bytes').default) // 2**20} MiB"
    rows.append(
        [label("switch buffer"), against(TEXT, buffer, published["fixed_network_keys"]["BUFFER_SIZE"])]
    )
    columns = (Column("parameter"), Column("value", TEXT, True))
    return numbered("3-8", "Simulator and workload parameters", columns, rows)


def _whole(value: float | int | bool | str | None) -> Value:
    """A number without a fraction as an integer."""
    number = float(value or 0)
    return int(number) if number.is_integer() else number


_OURS = {
    "workload": "Chakra ET, one graph per rank",
    "network": "packet engine of the ns-3 RDMA model",
    "compute": "roofline",
}


def validation_table(published: Published) -> Table:
    """Table 3-9: the published check of the simulator against a machine; no run of a file repeats it."""
    theirs = published["validation"]
    simulated, measured = theirs["simulated_us"], theirs["measured_us"]
    rows = [
        [label("simulated, published"), plain(SECONDS, simulated / 1e6)],
        [label("measured, published"), plain(SECONDS, measured / 1e6)],
        [label("error, from the two"), Cell(FRACTION, ours=simulated / measured - 1)],
        [label("error, published"), plain(FRACTION, theirs["relative_error"])],
    ]
    notes = (
        f"{theirs['platform'][0].upper()}{theirs['platform'][1:]}.",
        "Not a run of this file: 'hpcmoe validate nccl-alltoall' simulates it, with assumptions of its own.",
    )  # fmt: skip
    return numbered(
        "3-9", "Validation microbenchmark", (Column("quantity"), Column("value (s or %)", LABEL)), rows, notes
    )


def node_table() -> Table:
    """Table A-1, from the topology data alone."""
    rows = [[label(name), *map(label, _node_texts(study_topology(name)))] for name in design.TOPOLOGIES]
    columns = tuple(map(Column, ("topology", "per server", "cluster", "key interconnect")))
    note = "Delays to the ToR are those of the RoCE modes; table 3-6 has the others."
    return numbered("A-1", "Node configurations", columns, rows, (note,))


def _node_texts(topology: Topology) -> Sequence[str]:
    facts = server_facts(topology)
    parts = (
        (facts.cpus, "CPU"), (facts.gpus, "GPU"), (facts.switches, "PCIe switch"), (facts.nics, "NIC")
    )  # fmt: skip
    server = ", ".join(
        f"{count} {name}{'es' if name.endswith('h') else 's'}" if count > 1 else f"{count} {name}"
        for count, name in parts
        if count
    )
    plural = "s" if facts.servers > 1 else ""
    cluster = f"{facts.servers} server{plural}, {facts.all_gpus} GPUs, {facts.all_nics or 'no'} NICs"
    return server, cluster, "; ".join(_interconnects(topology))


def _interconnects(topology: Topology) -> Iterator[str]:
    """Rate and delay of each kind of link, by the kinds of node it joins."""
    found: dict[str, None] = {}
    for link in topology.links:
        kinds = "-".join(topology.node_kinds[node] for node in (link.src, link.dst))
        found[f"{kinds} {link.rate_bps / 1e9:g} Gbps {link.delay_ns / 1e3:g} us"] = None
    yield from found
