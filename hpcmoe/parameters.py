"""The one home of every scalar parameter of the simulator: name, unit, default, range and help.

Two profiles give two sets of defaults. ``upstream`` is what ASTRA-sim with its ns-3 network does when
a key is absent from its files (``upstream_default``; None means that the file has to give it), with
every quirk kept. ``study`` is the configuration of the 768-run study.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hpcmoe.errors import InputError, closest_first
from hpcmoe.units import parse_rate_bps

Section = Literal["network", "system", "workload"]
Kind = Literal["int", "float", "bool", "enum"]
Value = int | float | bool

PROFILES = ("upstream", "study")

U32 = 2**32 - 1
U64 = 2**64 - 1
MONITOR_OFF = U64
_NAMED = 5  # names offered in place of an unknown one
_HUGE = 1e300  # no parameter is near it; infinities and integers beyond floating point are above


@dataclass(frozen=True)
class Parameter:
    """One declared parameter. ``minimum`` and ``maximum`` are inclusive.

    ``upstream_key`` is the name in upstream's file of that section, ``upstream_factor`` what its value
    is multiplied by to get ours.
    """

    name: str
    section: Section
    kind: Kind
    default: Value
    help: str
    upstream_default: Value | None = None
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: Mapping[str, int] | None = None
    upstream_key: str | None = None
    upstream_factor: int = 1

    def allowed(self) -> str:
        """The allowed values in words, for error messages and the table."""
        if self.choices is not None:
            return ", ".join(f"{name} ({value})" for name, value in self.choices.items())
        if self.kind == "bool":
            return "0, 1, true, false"
        if self.unit == "bit/s":
            return f"a rate such as 50Mbps, from {self.minimum} bit/s"
        noun = "integers" if self.kind == "int" else "numbers"
        low = "" if self.minimum is None else f" from {_short(self.minimum)}"
        if self.maximum is None:
            return noun + low
        return f"{noun}{low} to {_short(self.maximum)}"

    def check(self, value: Any, *, file: str | None = None, field: str | None = None) -> Value:
        """``value`` in the parameter's own type, or InputError."""
        typed = self._typed(value)
        if typed is None or not self._in_range(typed):
            raise InputError(
                "bad value", file=file, field=field or self.name, value=value, allowed=self.allowed()
            )
        return typed

    def parse(self, text: str, *, file: str | None = None, field: str | None = None) -> Value:
        """The value that ``text`` writes: a number, a rate string for bit/s, a name for an enumeration."""
        return self.check(self._from_text(text), file=file, field=field)

    def text(self, value: Value) -> str:
        """``value`` as a user would write it: the name of a choice, true or false, else the number."""
        if self.choices is not None:
            return next((name for name, number in self.choices.items() if number == value), str(value))
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _from_text(self, text: str) -> Any:
        text = text.strip()
        if self.kind == "enum" and self.choices is not None and text in self.choices:
            return self.choices[text]
        if not text.isascii() or "_" in text:
            return text  # Python takes other scripts' digits, and underscores between digits
        if self.kind == "bool":
            return {"0": False, "1": True, "false": False, "true": True}.get(text.lower(), text)
        if self.unit == "bit/s":
            return _or_text(parse_rate_bps, text)
        return _or_text(float if self.kind == "float" else _integer, text)

    def _typed(self, value: Any) -> Value | None:
        if self.kind == "bool":
            return bool(value) if value in (0, 1) and isinstance(value, bool | int) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.kind == "float":
            return float(value) if abs(value) < _HUGE else None
        if isinstance(value, int):
            return value
        return int(value) if value.is_integer() else None

    def _in_range(self, value: Value) -> bool:
        if self.choices is not None:
            return value in self.choices.values()
        low = self.minimum is None or value >= self.minimum
        high = self.maximum is None or value <= self.maximum
        return low and high


def _short(limit: float) -> str:
    """Exact, whatever the size of an integer."""
    if limit in (U32, U64):
        return f"2^{int(limit + 1).bit_length() - 1}-1"
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _closest(name: str, names: Iterable[str]) -> str:
    return f"{', '.join(closest_first(name, names)[:_NAMED])} and others, see 'hpcmoe parameters'"


def _or_text(convert: Any, text: str) -> Any:
    try:
        return convert(text)
    except ValueError:
        return text


def _integer(text: str) -> int | float:
    """An integer, also written as 4e6; a float that is not whole stays one and is refused later."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


PHASES = {"prefill": 0, "decode": 1}
CC_MODES = {"none": 0, "dcqcn": 1, "hpcc": 3, "timely": 7, "dctcp": 8}


def _network(name: str, kind: Kind, default: Value, help: str, **rest: Any) -> Parameter:
    rest.setdefault("upstream_default", default)
    return Parameter(name, "network", kind, default, help, **rest)


def _int(name: str, default: int, low: int, high: int, help: str, **rest: Any) -> Parameter:
    return _network(name, "int", default, help, minimum=low, maximum=high, **rest)


def _float(name: str, default: float, low: float, high: float, help: str, **rest: Any) -> Parameter:
    return _network(name, "float", default, help, minimum=low, maximum=high, **rest)


def _bool(name: str, default: bool, help: str, **rest: Any) -> Parameter:
    return _network(name, "bool", default, help, **rest)


def _rate(name: str, default: int, help: str, **rest: Any) -> Parameter:
    return _network(name, "int", default, help, unit="bit/s", minimum=1, maximum=U64, **rest)


# What the network model is told; every name exists on the C++ side with the same meaning.
# fmt: off
_MODEL = (
    _network("cc_mode", "enum", 0, "congestion control of flows that cross a server boundary",
             choices=CC_MODES, upstream_default=1, upstream_key="CC_MODE"),
    _bool("ecn_enabled", False, "switches mark packets by queue length",
          upstream_default=True, upstream_key="ENABLE_QCN"),
    _int("payload_bytes", 1000, 1, 65000, "largest payload of a data packet", unit="bytes",
         upstream_key="PACKET_PAYLOAD_SIZE"),
    _int("l2_chunk_bytes", 4000, 0, U32, "granularity of acknowledgements before the first interval and of "
         "back-to-zero recovery", unit="bytes", upstream_default=0, upstream_key="L2_CHUNK_SIZE"),
    _int("l2_ack_interval_bytes", 1, 1, U32, "once this much has arrived every packet is acknowledged",
         unit="bytes", upstream_default=None, upstream_key="L2_ACK_INTERVAL"),
    _bool("l2_back_to_zero", False, "recovery restarts at a multiple of the chunk",
          upstream_key="L2_BACK_TO_ZERO"),
    _int("pause_time_us", 5, 0, U32, "time field of pause frames; 0 turns a pause into a resume", unit="us",
         upstream_key="PAUSE_TIME"),
    _int("alpha_resume_interval_us", 1, 0, U32, "DCQCN alpha timer", unit="us",
         upstream_default=55, upstream_key="ALPHA_RESUME_INTERVAL"),
    _int("rate_decrease_interval_us", 4, 0, U32, "DCQCN rate decrease timer", unit="us",
         upstream_key="RATE_DECREASE_INTERVAL"),
    _int("rp_timer_us", 900, 0, U32, "DCQCN rate increase timer", unit="us",
         upstream_default=0, upstream_key="RP_TIMER"),
    _bool("clamp_target_rate", False, "DCQCN clamps the target rate at every decrease",
          upstream_key="CLAMP_TARGET_RATE"),
    _float("ewma_gain", 0.00390625, 0.0, 1.0, "gain g of the DCQCN and DCTCP averages",
           upstream_default=0.0, upstream_key="EWMA_GAIN"),
    _int("fast_recovery_times", 1, 0, U32, "DCQCN increases before the additive stage",
         upstream_default=5, upstream_key="FAST_RECOVERY_TIMES"),
    _rate("rate_ai_bps", 50_000_000, "additive increase", upstream_default=None, upstream_key="RATE_AI"),
    _rate("rate_hai_bps", 100_000_000, "hyper increase", upstream_default=None, upstream_key="RATE_HAI"),
    _rate("min_rate_bps", 100_000_000, "lowest sending rate", upstream_key="MIN_RATE"),
    _rate("dctcp_rate_ai_bps", 1_000_000_000, "DCTCP additive increase", upstream_key="DCTCP_RATE_AI"),
    _float("error_rate_per_link", 0.0, 0.0, 1.0, "loss probability of links that have none of their own",
           upstream_key="ERROR_RATE_PER_LINK"),
    _bool("has_window", True, "flows have a window of one bandwidth-delay product", upstream_key="HAS_WIN"),
    _bool("global_t", False, "window and base round trip of the farthest pair for every flow",
          upstream_default=True, upstream_key="GLOBAL_T"),
    _bool("var_window", True, "the window follows the rate", upstream_default=False, upstream_key="VAR_WIN"),
    _bool("fast_react", True, "HPCC reacts on every acknowledgement", upstream_key="FAST_REACT"),
    _float("u_target", 0.95, 0.0, 1.0, "HPCC target utilisation", upstream_key="U_TARGET"),
    _int("mi_thresh", 0, 0, U32, "HPCC additive stages before a multiplicative one; 0 always multiplicative",
         upstream_default=5, upstream_key="MI_THRESH"),
    _int("int_multi", 1, 1, U32, "multiplier of the units of INT counters", upstream_key="INT_MULTI"),
    _bool("multi_rate", False, "HPCC keeps one rate per hop",
          upstream_default=True, upstream_key="MULTI_RATE"),
    _bool("sample_feedback", False, "HPCC fast reaction ignores hops with an empty queue",
          upstream_key="SAMPLE_FEEDBACK"),
    _bool("rate_bound", True, "packets are paced at the current rate, not at the line rate",
          upstream_key="RATE_BOUND"),
    _bool("ack_high_prio", False, "at a host class 0 and not class 3 pauses acknowledgements",
          upstream_key="ACK_HIGH_PRIO"),
    _int("nic_total_pause_count", 0, 0, U32, "pauses that each host's NIC makes by itself",
         upstream_key="NIC_TOTAL_PAUSE_TIME"),
    _int("buffer_bytes", 32 * 2**20, 1, 4095 * 2**20, "buffer of a switch", unit="bytes",
         upstream_default=16 * 2**20, upstream_key="BUFFER_SIZE", upstream_factor=2**20),
    _float("headroom_factor", 3.0, 0.0, 1e6, "PFC headroom of a port in bandwidth-delay products of its link",
           upstream_key="HEADROOM_FACTOR"),
    _int("qlen_monitor_start_ns", MONITOR_OFF, 0, U64, "upstream's queue monitor, every 100 ns from here; "
         "2^64-1 is off", unit="ns", upstream_default=0, upstream_key="QLEN_MON_START"),
)

# Where the study departs from upstream, and what upstream has no word for.
_PROFILE = (
    _bool("int_exact_rates", True, "INT carries the real link rate, not a code that lacks 512 Gbps",
          upstream_default=False),
    _int("int_max_hops", 5, 1, 5, "HPCC feedback over more switches than this is ignored"),
    _network("neighbor_order", "enum", 1, "order in which equal paths are listed, by switch id",
             choices={"descending": 0, "ascending": 1}, upstream_default=0),
    _network("ecn_random", "enum", 1, "marking numbers: one new stream per draw, or keyed by port and packet",
             choices={"streams": 0, "keyed": 1}, upstream_default=0),
    _bool("restart_counters_when_idle", True, "INT counters, INT time, source ports and NIC round robins "
          "restart whenever the network is empty", upstream_default=False),
    _bool("local_int", False, "packets of flows without congestion control carry INT bytes",
          upstream_default=True),
    _bool("local_window", True, "flows without congestion control keep the pair's window in every mode",
          upstream_default=False),
    _network("timely_stamp", "enum", 0, "TIMELY time stamp", choices={"zero": 0, "build_time": 1}),
    _int("random_seed", 1, 1, U32, "seed of every random stream"),
    _int("watchdog_ns", 100_000_000, 1, U64, "with no computation pending and no packet arriving for this "
         "long, the run is stopped", unit="ns"),
    _int("queue_sample_ns", 20_000, 0, U64, "interval of the recorded queue lengths; 0 is off", unit="ns",
         upstream_default=0),
)


def _system(name: str, kind: Kind, default: Value, help: str, **rest: Any) -> Parameter:
    return Parameter(name, "system", kind, default, help, **rest)


_MEMORY_TYPES = {
    "NO_MEMORY_EXPANSION": 0,
    "PER_NPU_MEMORY_EXPANSION": 1,
    "PER_NODE_MEMORY_EXPANSION": 2,
    "MEMORY_POOL": 3,
}

# What the system layer is told; the C++ list of fields is astra-sim/system/parameters.hh.
_SYSTEM = (
    _system("scheduling_policy", "enum", 0, "order of collectives that wait for a queue",
            choices={"LIFO": 0, "FIFO": 1, "EXPLICIT": 2}, upstream_key="scheduling-policy"),
    _system("collective_optimization", "enum", 1, "how an all-reduce over several dimensions is split",
            choices={"baseline": 0, "localBWAware": 1}, upstream_key="collective-optimization"),
    _system("preferred_dataset_splits", "int", 4, "chunks per collective", minimum=1, maximum=16384,
            upstream_key="preferred-dataset-splits"),
    _system("active_chunks_per_dimension", "int", 1, "chunks in flight per dimension", minimum=1, maximum=U32,
            upstream_default=1, upstream_key="active-chunks-per-dimension"),
    _system("endpoint_delay_ns", "int", 10, "delay before each first send and after each receipt", unit="ns",
            minimum=0, maximum=2**31 - 1, upstream_default=10, upstream_key="endpoint-delay"),
    _system("local_mem_bw_gbps", "float", 1600.0, "memory bandwidth of a GPU; 0: reductions take no time",
            unit="GB/s", minimum=0.0, upstream_default=0.0, upstream_key="local-mem-bw"),
    _system("peak_perf_tflops", "float", 1000.0, "peak compute rate of a GPU", unit="TFLOP/s", minimum=0.0,
            upstream_default=0.0, upstream_key="peak-perf"),
    _system("roofline_enabled", "bool", True, "compute time from operations and bytes, not from the trace",
            upstream_default=False, upstream_key="roofline-enabled"),
    _system("replay_only", "bool", False, "every node takes the duration in the trace",
            upstream_default=False, upstream_key="replay-only"),
    _system("rendezvous_protocol", "bool", False, "a send waits for the receiver's request",
            upstream_default=False),
    _system("model_shared_bus", "bool", False, "messages share a LogGP memory bus inside the GPU",
            upstream_default=False, upstream_key="model-shared-bus"),
    _system("compute_ties", "enum", 1, "which of the GPU computations that end at one tick is handled first",
            choices={"scheduled": 0, "rank": 1}, upstream_default=0),
    _system("bus_latency", "float", 0.0, "L of the shared bus", unit="ns", minimum=0.0,
            upstream_default=0.0, upstream_key="L"),
    _system("bus_overhead", "float", 0.0, "o of the shared bus", unit="ns", minimum=0.0,
            upstream_default=0.0, upstream_key="o"),
    _system("bus_gap", "float", 0.0, "g of the shared bus", unit="ns", minimum=0.0,
            upstream_default=0.0, upstream_key="g"),
    _system("bus_gap_per_byte", "float", 0.0, "G of the shared bus", unit="ns/byte", minimum=0.0,
            upstream_default=0.0, upstream_key="G"),
    _system("local_reduction_delay", "int", 1, "reduction delay on the shared bus", unit="ns", minimum=0,
            maximum=U32, upstream_default=1, upstream_key="local-reduction-delay"),
    _system("num_queues_per_dim", "int", 1, "queues of a logical dimension", minimum=1, maximum=1024,
            upstream_default=1),
    _system("memory_type", "enum", 0, "remote memory", choices=_MEMORY_TYPES, upstream_key="memory-type"),
    _system("remote_mem_latency_ns", "int", 0, "latency of remote memory", unit="ns", minimum=0, maximum=U64,
            upstream_default=0, upstream_key="remote-mem-latency"),
    _system("remote_mem_bw_gbps", "int", 0, "bandwidth of remote memory", unit="GB/s", minimum=0, maximum=U64,
            upstream_default=0, upstream_key="remote-mem-bw"),
    _system("memory_npus_per_node", "int", 1, "GPUs that share one remote memory", minimum=1, maximum=U32,
            upstream_default=1, upstream_key="num-npus-per-node"),
)


def _workload(name: str, kind: Kind, default: Value, help: str, **rest: Any) -> Parameter:
    return Parameter(name, "workload", kind, default, help, **rest)


# How a model's step becomes traces. Where traces are given there is nothing of this to choose.
_WORKLOAD = (
    _workload("layer_sync", "enum", 1, "barrier: all ranks begin a layer together; none: each goes on as "
              "soon as its own chain allows", choices={"none": 0, "barrier": 1}),
    _workload("phase", "enum", 0, "prefill: the tokens are one sequence; decode: each is the next of a "
              "sequence of its own", choices=PHASES),
    _workload("context_tokens", "int", 0, "tokens of each sequence in the key-value cache before the step",
              unit="tokens", minimum=0, maximum=2**31 - 1),
    _workload("expert_skew", "float", 0.0, "Zipf exponent of the experts' popularity; 0: all alike, and the "
              "all-to-alls are collectives", minimum=0.0, maximum=10.0),
    _workload("expert_order_seed", "int", 0, "0: experts lie on the EP ranks by popularity, the most popular "
              "first; else the seed of a random order for each layer", minimum=0, maximum=U32),
    _workload("overlap_shared_ffn", "bool", False, "the FFN of a MoE layer runs beside dispatch, experts and "
              "combine"),
    _workload("microbatches", "int", 1, "parts into which the tokens of a step are cut; they run one after "
              "the other, and with PP in different stages at once", minimum=1, maximum=65536),
)
# fmt: on

PARAMETERS: dict[str, Parameter] = {p.name: p for p in _MODEL + _PROFILE + _SYSTEM + _WORKLOAD}
NETWORK_NAMES = tuple(p.name for p in _MODEL + _PROFILE)
SYSTEM_NAMES = tuple(p.name for p in _SYSTEM)
WORKLOAD_NAMES = tuple(p.name for p in _WORKLOAD)
PROFILE_SWITCHES = tuple(p.name for p in _PROFILE)
SYSTEM_PROFILE_SWITCHES = ("compute_ties",)


def section_names(section: Section) -> tuple[str, ...]:
    return {"network": NETWORK_NAMES, "system": SYSTEM_NAMES, "workload": WORKLOAD_NAMES}[section]


def find(name: str, *, extra: Iterable[str] = ()) -> Parameter:
    """The parameter called ``name``; InputError lists the closest names."""
    if name in PARAMETERS:
        return PARAMETERS[name]
    raise InputError("unknown parameter", field=name, allowed=_closest(name, [*PARAMETERS, *extra]))


def defaults(profile: str, section: Section) -> dict[str, Value | None]:
    """Defaults of a profile by name. None: the profile has none, its files have to give the value."""
    if profile not in PROFILES:
        raise InputError("unknown profile", field="profile", value=profile, allowed=PROFILES)
    pick = "default" if profile == "study" else "upstream_default"
    return {name: getattr(PARAMETERS[name], pick) for name in section_names(section)}


def complete(values: Mapping[str, Any], section: Section, *, file: str | None = None) -> dict[str, Value]:
    """Every parameter of the section, checked, in declared order; InputError if one is missing or unknown."""
    for name in values:
        if name not in section_names(section):
            allowed = _closest(name, section_names(section))
            raise InputError(f"unknown {section} parameter", file=file, field=name, allowed=allowed)
    result: dict[str, Value] = {}
    for name in section_names(section):
        parameter = PARAMETERS[name]
        if values.get(name) is None:
            field = parameter.upstream_key or name
            raise InputError(
                "missing and without a default", file=file, field=field, allowed=parameter.allowed()
            )
        result[name] = parameter.check(values[name], file=file, field=file and parameter.upstream_key)
    return result


def parse_overrides(assignments: Iterable[str]) -> dict[str, str]:
    """``name=value`` texts as a dict; the values are parsed where they are used."""
    result = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise InputError("not an assignment", field="--set", value=text, allowed="name=value")
        result[name.strip()] = value.strip()
    return result
