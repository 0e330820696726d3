// Random numbers of a network that do not depend on what else the process has drawn.
#pragma once

#include <cstdint>

#include "ns3/object.h"

namespace hpcmoe::rdma {

// One is shared by all nodes of a network. By default every draw, and every pause frame, takes the next
// stream of the generator and uses its first number only, so a draw depends on all draws before it. With
// Keyed a number depends on who sends to whom and on how many packets that port has sent.
class Draws : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  // Uniform in [0, 1). The keys: node id << 32 | id of the peer, and the packet's number at that port.
  double Next(std::uint64_t direction, std::uint64_t count);
  void SkipStream() { ++m_next; }  // a pause frame has been made

 private:
  bool m_keyed = false;
  std::uint32_t m_seed = 1;
  std::uint64_t m_next = 0;
};

}  // namespace hpcmoe::rdma
