# cython: language_level=3, boundscheck=False, wraparound=False
# distutils: language=c++
"""The binding of astra-sim/simulation.hh, and nothing else.

Plain data in (dicts, NumPy arrays), NumPy arrays out. The GIL is released while the simulator runs;
between slices Python's signals are looked at, so Ctrl-C stops a run.

The C++ objects own all their memory; every array returned is a copy that NumPy owns, so no array can
outlive what it looks at.
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import numpy as np

from simulation cimport *

ctypedef fused Parameters:
    NetworkParams
    SystemParams

ctypedef fused Runnable:
    Simulation
    FlowSimulation

# Events between two looks at signals and the progress callback: some tens of milliseconds.
cdef uint64_t SLICE_EVENTS = 500_000

NEVER = 0xFFFFFFFFFFFFFFFF

# NumPy twins of the C++ records; `align=True` gives C layout, and copies check the sizes.
_FLOW = np.dtype(
    [("src", "u4"), ("dst", "u4"), ("sport", "u4"), ("layer", "i4"), ("bytes", "u8"), ("start_ns", "u8"),
     ("fct_ns", "u8"), ("standalone_ns", "u8"), ("node_id", "u8"), ("chunk", "u2"), ("step", "u2")],
    align=True)
_PAUSE = np.dtype(
    [("time_ns", "u8"), ("node", "u4"), ("peer", "u4"), ("port", "u4"), ("is_switch", "u1"),
     ("pause", "u1")], align=True)
_QUEUE = np.dtype([("time_ns", "u8"), ("src", "u4"), ("dst", "u4"), ("bytes", "u8")], align=True)
_LINK = np.dtype(
    [("src", "u4"), ("dst", "u4"), ("rate_bps", "u8"), ("bytes", "u8"), ("data_packets", "u8"),
     ("ack_packets", "u8"), ("pfc_frames", "u8"), ("ecn_marks", "u8"), ("pause_ns", "u8"),
     ("peak_queue_bytes", "u8"), ("busy_ns", "u8")], align=True)
_REPEAT = np.dtype(
    [("flow_begin", "u8"), ("flow_end", "u8"), ("pause_begin", "u8"), ("pause_end", "u8"),
     ("queue_begin", "u8"), ("queue_end", "u8"), ("count", "u8"), ("period_ns", "u8"),
     ("layer_step", "i8"), ("node_step", "u8")], align=True)
_RANK = np.dtype(
    [("rank", "u4"), ("finished", "?"), ("finish_ns", "u8"), ("wall_ns", "u8"), ("gpu_ns", "u8"),
     ("comm_ns", "u8"), ("cpu_ns", "u8"), ("remote_mem_ns", "u8"), ("exposed_comm_ns", "u8"),
     ("bytes_sent", "u8"), ("bytes_received", "u8"), ("compute_bound_percent", "f8"),
     ("compute_utilization_percent", "f8"), ("memory_utilization_percent", "f8"),
     ("operation_intensity", "f8")])


def network_fields() -> list[str]:
    """Names of the scalar network parameters that the simulator wants."""
    return [name.decode() for name in network_field_names()]


def system_fields() -> list[str]:
    """Names of the scalar system parameters that the simulator wants."""
    return [name.decode() for name in system_field_names()]


def backends() -> tuple[str, ...]:
    """Names of the network backends that are built in."""
    return ("native", "ns3") if has_ns3() else ("native",)


cdef Backend backend_of(name) except *:
    if name == "native":
        return Backend.native
    if name == "ns3":
        return Backend.ns3
    raise ValueError(f"backend {name!r}: allowed are native, ns3")


cdef void fill_parameters(Parameters& params, dict values, list wanted) except *:
    """Sets every field; a name that one side lacks is a programming error and says so."""
    cdef Number number
    cdef string name
    if set(values) != set(wanted):
        raise KeyError(f"parameters of the two sides differ: {sorted(set(values) ^ set(wanted))}")
    for key, value in values.items():
        number.is_real = isinstance(value, (float, np.floating))
        number.real = float(value) if number.is_real else 0.0
        if not number.is_real and value < 0:
            raise ValueError(f"parameter {key} = {value} must not be negative")
        number.whole = 0 if number.is_real else <uint64_t>int(value)
        name = key.encode()
        if not set_field(params, name, number):
            raise KeyError(f"the simulator has no parameter {key}")


cdef NetworkParams make_network(dict values, ecn, local_pairs) except *:
    cdef NetworkParams params
    cdef EcnThreshold threshold
    fill_parameters(params, values, network_fields())
    for rate_bps, kmin_bytes, kmax_bytes, pmax in ecn:
        threshold.rate_bps = rate_bps
        threshold.kmin_bytes = kmin_bytes
        threshold.kmax_bytes = kmax_bytes
        threshold.pmax = pmax
        params.ecn.push_back(threshold)
    if local_pairs is not None:
        for value in np.asarray(local_pairs, dtype=np.uint8).ravel():
            params.local_pairs.push_back(value)
    return params


cdef TopologySpec make_topology(uint32_t nodes, switches, links) except *:
    cdef TopologySpec spec
    cdef LinkSpec link
    spec.nodes = nodes
    spec.switches = switches
    for src, dst, rate_bps, delay_ns, error_rate in links:
        link.src = src
        link.dst = dst
        link.rate_bps = rate_bps
        link.delay_ns = delay_ns
        link.error_rate = error_rate
        spec.links.push_back(link)
    return spec


cdef vector[CollectiveImpl] make_implementations(entries) except *:
    cdef vector[CollectiveImpl] result
    cdef CollectiveImpl impl
    for algorithm, window, one_dim in entries:
        impl.algorithm = <Algorithm><uint8_t>algorithm
        impl.window = window
        impl.one_dim = one_dim
        result.push_back(impl)
    return result


cdef SystemParams make_system(dict values, logical_dims, dict implementations, dict groups) except *:
    cdef SystemParams params
    cdef vector[uint32_t] members
    fill_parameters(params, values, system_fields())
    for size in logical_dims:
        params.logical_dims.push_back(size)
    params.all_reduce = make_implementations(implementations.get("all_reduce", ()))
    params.all_gather = make_implementations(implementations.get("all_gather", ()))
    params.reduce_scatter = make_implementations(implementations.get("reduce_scatter", ()))
    params.all_to_all = make_implementations(implementations.get("all_to_all", ()))
    for group, ranks in groups.items():
        members = ranks
        params.groups[<int32_t>group] = members
    return params


cdef RankTrace make_trace(trace) except *:
    """`trace`: an object with one array per field of TraceNode, parent_begin and parents."""
    cdef RankTrace result
    cdef Py_ssize_t i, n = len(trace.id)
    cdef uint64_t[:] ids = np.ascontiguousarray(trace.id, dtype=np.uint64)
    cdef uint64_t[:] duration = np.ascontiguousarray(trace.duration_us, dtype=np.uint64)
    cdef uint64_t[:] ops = np.ascontiguousarray(trace.num_ops, dtype=np.uint64)
    cdef uint64_t[:] tensor = np.ascontiguousarray(trace.tensor_bytes, dtype=np.uint64)
    cdef uint64_t[:] comm = np.ascontiguousarray(trace.comm_bytes, dtype=np.uint64)
    cdef uint32_t[:] priority = np.ascontiguousarray(trace.comm_priority, dtype=np.uint32)
    cdef uint32_t[:] peer = np.ascontiguousarray(trace.peer, dtype=np.uint32)
    cdef uint32_t[:] tag = np.ascontiguousarray(trace.tag, dtype=np.uint32)
    cdef uint32_t[:] dims = np.ascontiguousarray(trace.involved_dims, dtype=np.uint32)
    cdef int32_t[:] group = np.ascontiguousarray(trace.group, dtype=np.int32)
    cdef int32_t[:] layer = np.ascontiguousarray(trace.layer, dtype=np.int32)
    cdef uint8_t[:] kind = np.ascontiguousarray(trace.type, dtype=np.uint8)
    cdef uint8_t[:] comm_type = np.ascontiguousarray(trace.comm_type, dtype=np.uint8)
    cdef uint8_t[:] cpu = np.ascontiguousarray(trace.is_cpu_op, dtype=np.uint8)
    cdef uint32_t[:] begin = np.ascontiguousarray(trace.parent_begin, dtype=np.uint32)
    cdef uint32_t[:] parents = np.ascontiguousarray(trace.parents, dtype=np.uint32)
    result.nodes.resize(n)
    for i in range(n):
        result.nodes[i].id = ids[i]
        result.nodes[i].duration_us = duration[i]
        result.nodes[i].num_ops = ops[i]
        result.nodes[i].tensor_bytes = tensor[i]
        result.nodes[i].comm_bytes = comm[i]
        result.nodes[i].comm_priority = priority[i]
        result.nodes[i].peer = peer[i]
        result.nodes[i].tag = tag[i]
        result.nodes[i].involved_dims = dims[i]
        result.nodes[i].group = group[i]
        result.nodes[i].layer = layer[i]
        result.nodes[i].type = <NodeType>kind[i]
        result.nodes[i].comm_type = <CollectiveType>comm_type[i]
        result.nodes[i].is_cpu_op = cpu[i] != 0
    for i in range(begin.shape[0]):
        result.parent_begin.push_back(begin[i])
    for i in range(parents.shape[0]):
        result.parents.push_back(parents[i])
    return result


cdef object copy_records(const void* data, size_t count, size_t record_bytes, dtype):
    """A packed NumPy copy of `count` C++ records."""
    if count == 0:
        return np.empty(0, dtype=_packed(dtype))
    if dtype.itemsize != record_bytes:
        raise AssertionError(f"record layout: {record_bytes} bytes in C++, {dtype.itemsize} in NumPy")
    array = np.empty(count, dtype=dtype)
    cdef uint8_t[:] target = array.view(np.uint8)
    memcpy(&target[0], data, count * record_bytes)
    return array.astype(_packed(dtype))


def _packed(dtype):
    return np.dtype([(name, dtype[name]) for name in dtype.names])


cdef void run_to_end(Runnable* simulation, on_progress) except *:
    cdef Progress progress
    while True:
        with nogil:
            progress = simulation.run(SLICE_EVENTS)
        PyErr_CheckSignals()
        if on_progress is not None:
            on_progress(progress.simulated_ns, progress.events, progress.packet_hops,
                        progress.finished_ranks)
        if progress.finished:
            return


cdef void choose_records(NetworkRecords& records, keep):
    records.keep_flows = "flows" in keep
    records.keep_pauses = "pauses" in keep
    records.keep_queues = "queues" in keep


cdef dict network_results(Runnable* simulation):
    cdef NetworkRecords* records = &simulation.records()
    cdef NetworkTotals totals = simulation.totals()
    cdef vector[LinkCounters] links = simulation.link_counters()
    return {
        "flows": copy_records(records.flows.data(), records.flows.size(), sizeof(FlowRecord), _FLOW),
        "pauses": copy_records(records.pauses.data(), records.pauses.size(), sizeof(PauseRecord), _PAUSE),
        "queues": copy_records(records.queues.data(), records.queues.size(), sizeof(QueueSample), _QUEUE),
        "links": copy_records(links.data(), links.size(), sizeof(LinkCounters), _LINK),
        "qlen_lines": [line.decode() for line in records.qlen_lines],
        "events": totals.events,
        "packet_hops": totals.packet_hops,
        "ecn_marks": totals.ecn_marks,
        "pfc_pauses": totals.pfc_pauses,
        "drops": totals.drops,
        "flows_started": totals.flows_started,
        "flows_finished": totals.flows_finished,
        "bytes_sent": totals.bytes_sent,
        "bytes_received": totals.bytes_received,
        "ignored_int_flows": totals.ignored_int_flows,
        "max_rtt_ns": simulation.max_rtt_ns(),
        "max_bdp_bytes": simulation.max_bdp_bytes(),
    }


cdef tuple rank_row(uint32_t rank, RankReport r):
    return (rank, r.finished, r.finish_ns, r.wall_ns, r.gpu_ns, r.comm_ns, r.cpu_ns, r.remote_mem_ns,
            (r.finish_ns - r.modelled_compute_ns) & NEVER, r.bytes_sent, r.bytes_received,
            r.compute_bound_percent, r.compute_utilization_percent, r.memory_utilization_percent,
            r.operation_intensity)


def simulate(*, nodes, switches, links, network, ecn, local_pairs, system, logical_dims, implementations,
             groups, traces, keep, fast_forward=True, on_progress=None, backend="native") -> dict:
    """Runs one workload to its end.

    switches: node ids; links: rows (src, dst, rate_bps, delay_ns, error_rate); ecn: rows (rate_bps, kmin_bytes, kmax_bytes,
    pmax); local_pairs: [hosts, hosts] of 0/1 or None; network, system: every scalar parameter by name;
    implementations: per collective rows (algorithm, window, one_dim); traces: one object per rank, see
    make_trace; keep: set of "flows", "pauses", "queues"; fast_forward: add equal layers where that is
    proven exact, which the backend ns3 never does; backend: one of backends(). Returns a dict of arrays and totals.
    """
    cdef vector[RankTrace] rank_traces
    cdef vector[RecordRepeat] repeats
    cdef unique_ptr[Simulation] simulation
    cdef NetworkParams network_params = make_network(network, ecn, local_pairs)
    cdef SystemParams system_params = make_system(system, logical_dims, implementations, groups)
    cdef TopologySpec topology = make_topology(nodes, switches, links)
    for trace in traces:
        rank_traces.push_back(make_trace(trace))
    simulation.reset(new Simulation(network_params, topology, system_params, move(rank_traces),
                                    backend_of(backend)))
    choose_records(simulation.get().records(), keep)
    if fast_forward:
        simulation.get().enable_fast_forward()
    run_to_end(simulation.get(), on_progress)
    result = network_results(simulation.get())
    repeats = simulation.get().record_repeats()
    result["repeats"] = copy_records(repeats.data(), repeats.size(), sizeof(RecordRepeat), _REPEAT)
    result["layers_added"] = simulation.get().added_layers()
    result["quiet_moments"] = simulation.get().quiet_moments()
    rows = []
    for rank in range(simulation.get().ranks()):
        rows.append(rank_row(rank, simulation.get().rank_report(rank)))
    result["ranks"] = np.array(rows, dtype=_RANK)
    result["simulated_ns"] = int(result["ranks"]["finish_ns"].max())
    return result


def simulate_flows(*, nodes, switches, links, network, ecn, local_pairs, flows, until_ns, keep,
                   on_progress=None, backend="native") -> dict:
    """Drives the network alone. flows: rows (start_ns, src, dst, bytes); until_ns: time limit or None."""
    cdef vector[FlowSpec] specs
    cdef FlowSpec spec
    cdef unique_ptr[FlowSimulation] simulation
    cdef NetworkParams network_params = make_network(network, ecn, local_pairs)
    cdef TopologySpec topology = make_topology(nodes, switches, links)
    for start_ns, src, dst, size in flows:
        spec.start_ns = start_ns
        spec.src = src
        spec.dst = dst
        spec.bytes = size
        specs.push_back(spec)
    cdef uint64_t limit = NEVER if until_ns is None else until_ns
    simulation.reset(new FlowSimulation(network_params, topology, move(specs), limit,
                                        backend_of(backend)))
    choose_records(simulation.get().records(), keep)
    run_to_end(simulation.get(), on_progress)
    return network_results(simulation.get())
