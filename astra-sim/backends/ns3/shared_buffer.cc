#include "backends/ns3/shared_buffer.hh"

#include <algorithm>

namespace hpcmoe::rdma {
namespace {

constexpr std::uint32_t kReserve = 4096;
constexpr std::uint32_t kResumeOffset = 3072;
constexpr std::uint32_t kSmallestShare = 3;  // one eighth of what is free
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

void SharedBuffer::AddPort(std::uint64_t rate_bps, std::uint64_t nic_bps, std::uint64_t delay_ns,
                           double headroom_factor) {
  Port port;
  const std::uint64_t on_the_wire = rate_bps * delay_ns / 8 / kNsPerSecond;
  const double headroom = static_cast<double>(on_the_wire) * headroom_factor;
  port.headroom_limit = static_cast<std::uint32_t>(static_cast<std::uint64_t>(headroom));
  port.shift = kSmallestShare;
  for (std::uint64_t rate = rate_bps; rate > nic_bps && port.shift > 0; rate /= 2) --port.shift;
  m_headroomTotal += port.headroom_limit;
  m_ports.push_back(port);
}

std::uint32_t SharedBuffer::Threshold(const Port& port) const {
  const std::uint32_t reserves = kReserve * static_cast<std::uint32_t>(m_ports.size());
  return (m_bytes - m_headroomTotal - reserves - m_sharedUsed) >> port.shift;
}

std::uint32_t SharedBuffer::Used(const Account& account) {
  return account.ingress > kReserve ? account.ingress - kReserve : 0;
}

bool SharedBuffer::Admits(std::uint32_t in, std::uint8_t traffic_class, std::uint32_t size) const {
  const Port& port = m_ports[in];
  const Account& account = port.accounts[traffic_class];
  return size + account.headroom <= port.headroom_limit || size + Used(account) <= Threshold(port);
}

void SharedBuffer::Store(std::uint32_t in, std::uint32_t out, std::uint8_t traffic_class,
                         std::uint32_t size) {
  Port& port = m_ports[in];
  Account& account = port.accounts[traffic_class];
  const std::uint32_t total = account.ingress + size;
  if (total <= kReserve) {
    account.ingress = total;
  } else if (total - kReserve > Threshold(port)) {
    account.headroom += size;
  } else {
    account.ingress = total;
    m_sharedUsed += std::min(size, total - kReserve);
  }
  m_ports[out].accounts[traffic_class].egress += size;
}

void SharedBuffer::Release(std::uint32_t in, std::uint32_t out, std::uint8_t traffic_class,
                           std::uint32_t size) {
  Account& account = m_ports[in].accounts[traffic_class];
  const std::uint32_t from_headroom = std::min(account.headroom, size);
  const std::uint32_t from_shared = std::min(size - from_headroom, Used(account));
  account.headroom -= from_headroom;
  account.ingress -= size - from_headroom;
  m_sharedUsed -= from_shared;
  m_ports[out].accounts[traffic_class].egress -= size;
}

bool SharedBuffer::MustPause(std::uint32_t in, std::uint8_t traffic_class) const {
  const Account& account = m_ports[in].accounts[traffic_class];
  return !account.paused && (account.headroom > 0 || Used(account) >= Threshold(m_ports[in]));
}

bool SharedBuffer::MayResume(std::uint32_t in, std::uint8_t traffic_class) const {
  const Account& account = m_ports[in].accounts[traffic_class];
  if (!account.paused || account.headroom > 0) return false;
  const std::uint32_t used = Used(account);
  return used == 0 || used + kResumeOffset <= Threshold(m_ports[in]);
}

void SharedBuffer::SetPaused(std::uint32_t in, std::uint8_t traffic_class, bool paused) {
  m_ports[in].accounts[traffic_class].paused = paused;
}

std::uint32_t SharedBuffer::EgressBytes(std::uint32_t out, std::uint8_t traffic_class) const {
  return m_ports[out].accounts[traffic_class].egress;
}

bool SharedBuffer::IsEmpty() const {
  return m_sharedUsed == 0 && std::all_of(m_ports.begin(), m_ports.end(), [](const Port& port) {
           return std::all_of(port.accounts.begin(), port.accounts.end(), [](const Account& account) {
             return account.ingress == 0 && account.headroom == 0 && account.egress == 0;
           });
         });
}

}  // namespace hpcmoe::rdma
