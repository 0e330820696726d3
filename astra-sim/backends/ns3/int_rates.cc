#include "backends/ns3/int_rates.hh"

#include <algorithm>

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(IntRates);

ns3::TypeId IntRates::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::IntRates").SetParent<Object>().AddConstructor<IntRates>();
  return tid;
}

std::uint32_t IntRates::Encode(std::uint64_t rate_bps) const {
  const auto found = std::find(m_rates.begin(), m_rates.end(), rate_bps);
  return found == m_rates.end() ? 0 : static_cast<std::uint32_t>(found - m_rates.begin());
}

}  // namespace hpcmoe::rdma
