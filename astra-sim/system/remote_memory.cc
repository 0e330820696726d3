#include "system/remote_memory.hh"

namespace hpcmoe {

namespace {

std::uint64_t channel_count(const SystemParams& params, std::uint32_t ranks) {
  if (params.memory_type == kMemoryPerNode) return (ranks - 1) / params.memory_npus_per_node + 1;
  return params.memory_type == kMemoryPool ? 1 : 0;
}

}  // namespace

RemoteMemory::RemoteMemory(const SystemParams& params, std::uint32_t ranks)
    : params_(params), channels_(channel_count(params, ranks)) {}

void RemoteMemory::access(EventTable& events, std::uint32_t node, std::uint64_t bytes) {
  const TimeNs runtime = params_.remote_mem_latency_ns + bytes / params_.remote_mem_bw_gbps;
  if (params_.memory_type == kMemoryPerNpu) return events.schedule(runtime, {RankEventKind::node_done, node});
  const std::uint64_t channel =
      params_.memory_type == kMemoryPerNode ? events.rank() / params_.memory_npus_per_node : 0;
  const Request request{&events, node, runtime};
  if (channels_[channel].busy) {
    channels_[channel].waiting.push_back(request);
  } else {
    serve(channel, request);
  }
}

void RemoteMemory::on_free(std::uint64_t index) {
  Channel& channel = channels_[index];
  channel.busy = false;
  if (channel.waiting.empty()) return;
  const Request next = channel.waiting.front();
  channel.waiting.pop_front();
  serve(index, next);
}

// Two events at the end of the access: the node first, then the memory's next request.
void RemoteMemory::serve(std::uint64_t channel, const Request& request) {
  channels_[channel].busy = true;
  request.events->schedule(request.runtime_ns, {RankEventKind::node_done, request.node});
  request.events->schedule(request.runtime_ns, {RankEventKind::memory_free, channel});
}

}  // namespace hpcmoe
