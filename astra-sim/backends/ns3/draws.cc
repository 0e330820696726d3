#include "backends/ns3/draws.hh"

#include "ns3/boolean.h"
#include "ns3/rng-stream.h"
#include "ns3/uinteger.h"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint64_t kRun = 1;
constexpr std::uint64_t kWeyl = 0x9e3779b97f4a7c15ULL;

// The finaliser of splitmix64.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(Draws);

ns3::TypeId Draws::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::Draws")
          .SetParent<Object>()
          .AddConstructor<Draws>()
          .AddAttribute("Keyed", "Numbers depend on link and packet instead of on the order of draws.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&Draws::m_keyed),
                        ns3::MakeBooleanChecker())
          .AddAttribute("Seed", "Seed of every number.", ns3::UintegerValue(1),
                        ns3::MakeUintegerAccessor(&Draws::m_seed), ns3::MakeUintegerChecker<std::uint32_t>(1))
          .AddAttribute("FirstStream", "Stream of the first draw; those before it belong to others.",
                        ns3::UintegerValue(0), ns3::MakeUintegerAccessor(&Draws::m_next),
                        ns3::MakeUintegerChecker<std::uint64_t>());
  return tid;
}

double Draws::Next(std::uint64_t direction, std::uint64_t count) {
  if (!m_keyed) return ns3::RngStream(m_seed, m_next++, kRun).RandU01();
  const std::uint64_t key = Mix(Mix(m_seed * kWeyl + 1) ^ direction * kWeyl);
  return static_cast<double>(Mix(key + count * kWeyl) >> 11) / 9007199254740992.0;  // 2^53
}

}  // namespace hpcmoe::rdma
