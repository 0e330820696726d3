// What the network model is told. Names, units, defaults, ranges and help of the scalar fields are
// declared in hpcmoe/parameters.py; the list here only gives them a place and a type, and the
// binding refuses to run when one side has a name that the other has not.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hh"

// clang-format off
// X(type, name)
#define HPCMOE_NETWORK_FIELDS(X)            \
  X(std::uint32_t, cc_mode)                 \
  X(bool, ecn_enabled)                      \
  X(std::uint32_t, payload_bytes)           \
  X(std::uint32_t, l2_chunk_bytes)          \
  X(std::uint32_t, l2_ack_interval_bytes)   \
  X(bool, l2_back_to_zero)                  \
  X(std::uint32_t, pause_time_us)           \
  X(std::uint64_t, alpha_resume_interval_us) \
  X(std::uint64_t, rate_decrease_interval_us) \
  X(std::uint64_t, rp_timer_us)             \
  X(bool, clamp_target_rate)                \
  X(double, ewma_gain)                      \
  X(std::uint32_t, fast_recovery_times)     \
  X(std::uint64_t, rate_ai_bps)             \
  X(std::uint64_t, rate_hai_bps)            \
  X(std::uint64_t, min_rate_bps)            \
  X(std::uint64_t, dctcp_rate_ai_bps)       \
  X(double, error_rate_per_link)            \
  X(bool, has_window)                       \
  X(bool, global_t)                         \
  X(bool, var_window)                       \
  X(bool, fast_react)                       \
  X(double, u_target)                       \
  X(std::uint32_t, mi_thresh)               \
  X(std::uint32_t, int_multi)               \
  X(bool, multi_rate)                       \
  X(bool, sample_feedback)                  \
  X(bool, rate_bound)                       \
  X(bool, ack_high_prio)                    \
  X(std::uint32_t, nic_total_pause_count)   \
  X(std::uint64_t, buffer_bytes)            \
  X(double, headroom_factor)                \
  X(std::uint64_t, qlen_monitor_start_ns)   \
  X(bool, int_exact_rates)                  \
  X(std::uint32_t, int_max_hops)            \
  X(std::uint32_t, neighbor_order)          \
  X(std::uint32_t, ecn_random)              \
  X(bool, restart_counters_when_idle)       \
  X(bool, local_int)                        \
  X(bool, local_window)                     \
  X(std::uint32_t, timely_stamp)            \
  X(std::uint64_t, random_seed)             \
  X(std::uint64_t, watchdog_ns)             \
  X(std::uint64_t, queue_sample_ns)
// clang-format on

namespace hpcmoe {

// Values of enumerated fields.
enum CcMode : std::uint32_t { kDcqcn = 1, kHpcc = 3, kTimely = 7, kDctcp = 8, kPint = 10 };
enum NeighborOrder : std::uint32_t { kDescending = 0, kAscending = 1 };
enum EcnRandom : std::uint32_t { kStreams = 0, kKeyed = 1 };
enum TimelyStamp : std::uint32_t { kStampZero = 0, kStampBuildTime = 1 };

struct EcnThreshold {
  RateBps rate_bps = 0;
  std::uint64_t kmin_bytes = 0;
  std::uint64_t kmax_bytes = 0;
  double pmax = 0;
};

struct NetworkParams {
#define HPCMOE_FIELD(type, name) type name{};
  HPCMOE_NETWORK_FIELDS(HPCMOE_FIELD)
#undef HPCMOE_FIELD
  std::vector<EcnThreshold> ecn;
  // src * hosts + dst: 1 where a flow is local (no feedback control); empty: no such flow.
  std::vector<std::uint8_t> local_pairs;
};

// Throws InputError for values that no backend can run with.
void check_parameters(const NetworkParams& params);

}  // namespace hpcmoe
