// Remote memory shared by ranks: by none (each rank has its own), by the ranks of a node, by all.
// A shared one serves one transaction at a time, first come first served.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "system/event_table.hh"
#include "system/parameters.hh"

namespace hpcmoe {

constexpr std::uint32_t kNoRemoteMemory = 0, kMemoryPerNpu = 1, kMemoryPerNode = 2, kMemoryPool = 3;

class RemoteMemory {
 public:
  RemoteMemory(const SystemParams& params, std::uint32_t ranks);

  // Registers node_done for the node on the rank's event table when the access ends.
  void access(EventTable& events, std::uint32_t node, std::uint64_t bytes);
  void on_free(std::uint64_t channel);

 private:
  struct Request {
    EventTable* events;
    std::uint32_t node;
    TimeNs runtime_ns;
  };
  struct Channel {
    bool busy = false;
    std::deque<Request> waiting;
  };

  void serve(std::uint64_t channel, const Request& request);

  const SystemParams& params_;
  std::vector<Channel> channels_;
};

}  // namespace hpcmoe
