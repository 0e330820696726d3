#include "backends/native/native_network.hh"

#include "backends/native/engine_host.hh"
#include "backends/native/engine_run.hh"
#include "backends/native/engine_setup.hh"
#include "backends/native/engine_switch.hh"
#include "network/congestion/dcqcn.hh"
#include "network/congestion/dctcp.hh"
#include "network/congestion/hpcc.hh"
#include "network/congestion/none.hh"
#include "network/congestion/timely.hh"

namespace hpcmoe {
namespace {

void check(const NetworkParams& p) {
  constexpr std::uint32_t kLargestPayload = 65000;
  if (p.payload_bytes == 0 || p.payload_bytes > kLargestPayload) {
    throw InputError("payload_bytes " + std::to_string(p.payload_bytes) + " is not within 1 .. " +
                     std::to_string(kLargestPayload));
  }
  if (p.l2_ack_interval_bytes == 0) throw InputError("l2_ack_interval_bytes must be at least 1");
  if (p.l2_chunk_bytes == 0 && (p.l2_ack_interval_bytes > 1 || p.l2_back_to_zero)) {
    throw InputError("l2_chunk_bytes 0 is allowed only with an ACK interval of 1 and no back-to-zero");
  }
  if (p.int_multi == 0) throw InputError("int_multi must be at least 1");
  if (p.min_rate_bps == 0) throw InputError("min_rate_bps must be at least 1 bit/s");
}

}  // namespace

std::unique_ptr<NativeNetwork> NativeNetwork::create(const NetworkParams& params, TopologySpec topology) {
  check(params);
  switch (params.cc_mode) {
    case kDcqcn:
      return std::make_unique<Engine<Dcqcn>>(params, std::move(topology));
    case kHpcc:
      return std::make_unique<Engine<Hpcc>>(params, std::move(topology));
    case kTimely:
      return std::make_unique<Engine<Timely>>(params, std::move(topology));
    case kDctcp:
      return std::make_unique<Engine<Dctcp>>(params, std::move(topology));
    case kPint:
      throw InputError(
          "CC_MODE 10 (HPCC-PINT) is not available; allowed are 0, 12 (none), 1 (DCQCN), 3 (HPCC), "
          "7 (TIMELY), 8 (DCTCP)");
    default:
      return std::make_unique<Engine<NoControl>>(params, std::move(topology));
  }
}

}  // namespace hpcmoe
