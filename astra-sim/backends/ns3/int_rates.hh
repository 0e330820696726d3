// Which link rate a telemetry code means.
#pragma once

#include <cstdint>
#include <vector>

#include "ns3/object.h"

namespace hpcmoe::rdma {

// Three bits name a rate. By default 25, 50, 100, 200, 400, 2400 and 1200 Gbit/s, in this order, and
// every other rate is sent as code 0. Shared by switches and controllers of one network.
class IntRates : public ns3::Object {
 public:
  static constexpr std::size_t kMost = 8;
  static ns3::TypeId GetTypeId();

  void SetRates(std::vector<std::uint64_t> rates_bps) { m_rates = std::move(rates_bps); }  // 1 to kMost
  std::uint32_t Encode(std::uint64_t rate_bps) const;
  std::uint64_t Decode(std::uint32_t code) const { return m_rates[code < m_rates.size() ? code : 0]; }

 private:
  std::vector<std::uint64_t> m_rates{25'000'000'000,  50'000'000'000,    100'000'000'000,  200'000'000'000,
                                     400'000'000'000, 2'400'000'000'000, 1'200'000'000'000};
};

}  // namespace hpcmoe::rdma
