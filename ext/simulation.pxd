# Declarations of astra-sim/simulation.hh and ext/fields.hh. Every call that runs C++ code of ours
# translates exceptions: std::invalid_argument (InputError) becomes ValueError, std::runtime_error
# (SimulationError) becomes RuntimeError.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.map cimport map as cpp_map
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "fields.hh" namespace "hpcmoe" nogil:
    cdef cppclass Number:
        bool is_real
        double real
        uint64_t whole
    bool set_field(NetworkParams&, const string&, const Number&) except +
    bool set_field(SystemParams&, const string&, const Number&) except +
    vector[string] network_field_names() except +
    vector[string] system_field_names() except +


cdef extern from "simulation.hh" namespace "hpcmoe" nogil:
    cdef cppclass EcnThreshold:
        uint64_t rate_bps, kmin_bytes, kmax_bytes
        double pmax

    cdef cppclass NetworkParams:
        vector[EcnThreshold] ecn
        vector[uint8_t] local_pairs

    cdef cppclass LinkSpec:
        uint32_t src, dst
        uint64_t rate_bps, delay_ns
        double error_rate

    cdef cppclass TopologySpec:
        uint32_t nodes
        vector[uint32_t] switches
        vector[LinkSpec] links

    cdef enum class Algorithm(uint8_t):
        pass

    cdef cppclass CollectiveImpl:
        Algorithm algorithm
        int64_t window
        bool one_dim

    cdef cppclass SystemParams:
        vector[uint32_t] logical_dims
        vector[CollectiveImpl] all_reduce, all_gather, reduce_scatter, all_to_all
        cpp_map[int32_t, vector[uint32_t]] groups

    cdef enum class NodeType(uint8_t):
        pass
    cdef enum class CollectiveType(uint8_t):
        pass

    cdef cppclass TraceNode:
        uint64_t id, duration_us, num_ops, tensor_bytes, comm_bytes
        uint32_t comm_priority, peer, tag, involved_dims
        int32_t group, layer
        NodeType type
        CollectiveType comm_type
        bool is_cpu_op

    cdef cppclass RankTrace:
        vector[TraceNode] nodes
        vector[uint32_t] parent_begin, parents

    cdef cppclass RankReport:
        bool finished
        uint64_t finish_ns, wall_ns, cpu_ns, gpu_ns, comm_ns, remote_mem_ns, modelled_compute_ns
        uint64_t bytes_sent, bytes_received
        double compute_bound_percent, compute_utilization_percent
        double memory_utilization_percent, operation_intensity

    cdef cppclass FlowRecord:
        pass
    cdef cppclass PauseRecord:
        pass
    cdef cppclass QueueSample:
        pass
    cdef cppclass LinkCounters:
        pass
    cdef cppclass RecordRepeat:
        pass

    cdef cppclass NetworkRecords:
        bool keep_flows, keep_pauses, keep_queues
        vector[FlowRecord] flows
        vector[PauseRecord] pauses
        vector[QueueSample] queues
        vector[string] qlen_lines

    cdef cppclass NetworkTotals:
        uint64_t events, packet_hops, ecn_marks, pfc_pauses, drops
        uint64_t flows_started, flows_finished, bytes_sent, bytes_received, ignored_int_flows

    cdef cppclass Progress:
        bool finished
        uint64_t simulated_ns, events, packet_hops
        uint32_t finished_ranks

    cdef enum class Backend(uint8_t):
        native
        ns3
    bool has_ns3()

    cdef cppclass Simulation:
        Simulation(const NetworkParams&, const TopologySpec&, const SystemParams&,
                   vector[RankTrace], Backend) except +
        NetworkRecords& records()
        void enable_fast_forward()
        Progress run(uint64_t) except +
        uint64_t added_layers()
        uint64_t quiet_moments()
        vector[RecordRepeat] record_repeats() except +
        uint32_t ranks()
        RankReport rank_report(uint32_t)
        NetworkTotals totals()
        vector[LinkCounters] link_counters() except +
        uint64_t max_rtt_ns()
        uint64_t max_bdp_bytes()

    cdef cppclass FlowSpec:
        uint64_t start_ns
        uint32_t src, dst
        uint64_t bytes

    cdef cppclass FlowSimulation:
        FlowSimulation(const NetworkParams&, const TopologySpec&, vector[FlowSpec], uint64_t,
                       Backend) except +
        NetworkRecords& records()
        Progress run(uint64_t) except +
        NetworkTotals totals()
        vector[LinkCounters] link_counters() except +
        uint64_t max_rtt_ns()
        uint64_t max_bdp_bytes()
