#include "backends/ns3/congestion.hh"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(CongestionControl);

ns3::TypeId CongestionControl::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::CongestionControl").SetParent<Object>().AddConstructor<CongestionControl>();
  return tid;
}

std::uint64_t WholeRate(double rate_bps) {
  constexpr double kTooLarge = 9223372036854775808.0;  // 2^63
  return rate_bps < kTooLarge ? static_cast<std::uint64_t>(rate_bps) : std::uint64_t{1} << 63;
}

}  // namespace hpcmoe::rdma
