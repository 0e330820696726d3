// What the system layer is told. Names, units, defaults, ranges and help of the scalar fields are
// declared in hpcmoe/parameters.py; the list here only gives them a place and a type, and the
// binding refuses to run when one side has a name that the other has not.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/types.hh"

// clang-format off
// X(type, name)
#define HPCMOE_SYSTEM_FIELDS(X)         \
  X(std::uint32_t, scheduling_policy)   /* 0 LIFO, 1 FIFO, 2 EXPLICIT */ \
  X(std::uint32_t, collective_optimization) /* 0 baseline, 1 localBWAware */ \
  X(std::uint64_t, preferred_dataset_splits) \
  X(std::uint64_t, active_chunks_per_dimension) \
  X(std::uint64_t, endpoint_delay_ns)   /* injection scale already applied */ \
  X(double, local_mem_bw_gbps)          /* 1e9 B/s; 0: reductions take no time */ \
  X(double, peak_perf_tflops)           \
  X(bool, roofline_enabled)             \
  X(bool, replay_only)                  \
  X(bool, rendezvous_protocol)          \
  X(bool, model_shared_bus)             \
  X(std::uint32_t, compute_ties)        /* 0 by order of scheduling, 1 by rank */ \
  X(double, bus_latency)                /* L of the shared bus */ \
  X(double, bus_overhead)               /* o */ \
  X(double, bus_gap)                    /* g */ \
  X(double, bus_gap_per_byte)           /* G */ \
  X(std::uint64_t, local_reduction_delay) \
  X(std::uint32_t, num_queues_per_dim)  \
  X(std::uint32_t, memory_type)         /* 0 none, 1 per NPU, 2 per node, 3 pool */ \
  X(std::uint64_t, remote_mem_latency_ns) \
  X(std::uint64_t, remote_mem_bw_gbps)  \
  X(std::uint32_t, memory_npus_per_node)
// clang-format on

namespace hpcmoe {

enum class Algorithm : std::uint8_t { ring = 0, direct = 1, halving_doubling = 2, double_binary_tree = 3 };

// Values of enumerated fields.
enum ComputeTies : std::uint32_t { kByScheduling = 0, kByRank = 1 };

struct CollectiveImpl {
  Algorithm algorithm = Algorithm::ring;
  std::int64_t window = -1;  // direct: messages in flight per rank, -1 unlimited
  bool one_dim = false;      // the "one..." forms: a single dimension over all ranks
};

struct SystemParams {
#define HPCMOE_FIELD(type, name) type name{};
  HPCMOE_SYSTEM_FIELDS(HPCMOE_FIELD)
#undef HPCMOE_FIELD
  std::vector<std::uint32_t> logical_dims;  // dimension 0 varies fastest
  // One entry per logical dimension; a missing list is an error only when such a collective is issued.
  std::vector<CollectiveImpl> all_reduce, all_gather, reduce_scatter, all_to_all;
  std::map<std::int32_t, std::vector<std::uint32_t>> groups;  // communicator groups by id
};

}  // namespace hpcmoe
