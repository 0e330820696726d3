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
std::unique_ptr<NativeNetwork> NativeNetwork::create(const NetworkParams& params, TopologySpec topology) {
  check_parameters(params);
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
