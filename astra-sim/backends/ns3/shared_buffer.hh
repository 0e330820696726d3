// The memory of a switch, shared by its ports: who may still put a packet in, and who must be paused.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/ns3/frame.hh"

namespace hpcmoe::rdma {

// Every port and class has a reserve; beyond it a packet counts as shared memory until the port's
// dynamic threshold, and as the port's headroom after that. All quantities are bytes in 32 bits, and wrap
// as those of the hardware model that this follows: headroom and reserves above the buffer give a
// threshold that nothing reaches.
class SharedBuffer {
 public:
  explicit SharedBuffer(std::uint32_t bytes) : m_bytes(bytes) {}

  // Ports are numbered in order of this call. Faster ports than `nic_bps` may take a larger share.
  void AddPort(std::uint64_t rate_bps, std::uint64_t nic_bps, std::uint64_t delay_ns, double headroom_factor);

  bool Admits(std::uint32_t in, std::uint8_t traffic_class, std::uint32_t size) const;
  void Store(std::uint32_t in, std::uint32_t out, std::uint8_t traffic_class, std::uint32_t size);
  void Release(std::uint32_t in, std::uint32_t out, std::uint8_t traffic_class, std::uint32_t size);

  bool MustPause(std::uint32_t in, std::uint8_t traffic_class) const;
  bool MayResume(std::uint32_t in, std::uint8_t traffic_class) const;
  void SetPaused(std::uint32_t in, std::uint8_t traffic_class, bool paused);

  std::uint32_t EgressBytes(std::uint32_t out, std::uint8_t traffic_class) const;
  bool IsEmpty() const;

 private:
  struct Account {
    std::uint32_t ingress = 0, headroom = 0, egress = 0;
    bool paused = false;
  };
  struct Port {
    std::uint32_t headroom_limit = 0;
    std::uint32_t shift = 0;
    std::array<Account, kClasses> accounts;
  };

  std::uint32_t Threshold(const Port& port) const;
  static std::uint32_t Used(const Account& account);

  std::uint32_t m_bytes;
  std::uint32_t m_headroomTotal = 0;
  std::uint32_t m_sharedUsed = 0;
  std::vector<Port> m_ports;
};

}  // namespace hpcmoe::rdma
