#include "system/collective_engine.hh"

#include <algorithm>
#include <cassert>
#include <limits>

namespace hpcmoe {

namespace {

constexpr TimeNs kSubgroupEndpointDelayNs = 10;        // upstream's constant, whatever is configured
constexpr std::uint64_t kStreamsPerGroup = 1'000'000;  // distance between the ids of two groups

std::uint16_t saturated(std::uint32_t value) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(value, std::numeric_limits<std::uint16_t>::max()));
}

}  // namespace

TimeNs reduction_delay_ns(std::uint64_t bytes, double local_mem_bw_gbps) {
  if (local_mem_bw_gbps == 0) return 0;
  // In this order: the division first decides which exact multiples truncate one too low.
  const double seconds = static_cast<double>(bytes) / (local_mem_bw_gbps * 1e9);
  return 3 * static_cast<TimeNs>(seconds * 1e9);
}

CollectiveEngine::CollectiveEngine(const SystemParams& params, const CollectiveLayouts& layouts,
                                   EventTable& events, Messenger& messenger, CollectiveClient& client)
    : params_(params),
      layouts_(layouts),
      events_(events),
      messenger_(messenger),
      client_(client),
      streams_per_queue_((params.active_chunks_per_dimension + params.num_queues_per_dim - 1) /
                         params.num_queues_per_dim),
      selector_(static_cast<std::uint32_t>(params.logical_dims.size()), params.num_queues_per_dim),
      queues_(params.logical_dims.size() * params.num_queues_per_dim),
      bus_(params, events, *this) {}

void CollectiveEngine::start(std::uint32_t node_index, const TraceNode& node) {
  assert(!is_active());
  const Scope scope = layouts_.scope_of(node);
  const ChunkSizes chunks =
      chunk_sizes(node.comm_type, node.comm_bytes, params_.preferred_dataset_splits, layouts_.ranks());
  const std::vector<PlannedPhase> plan = layouts_.phases(scope, node.comm_type, chunks.bytes);
  assert(chunks.count > 0 && !plan.empty());
  node_index_ = node_index;
  node_id_ = node.id;
  layer_ = node.layer;
  unfinished_chunks_ = chunks.count;
  for (std::uint64_t i = 0; i < chunks.count; ++i) {
    Stream& stream = new_stream();
    stream.tag = next_tag(scope.group);
    stream.chunk = static_cast<std::uint32_t>(i);
    assign_phases(stream, scope, node.comm_type, plan);
    enter_queue(stream);
    start_waiting(stream.phases.front().queue);
  }
}

void CollectiveEngine::append_signature(std::vector<std::uint64_t>& signature, std::uint64_t base) const {
  selector_.append_signature(signature);
  for (const auto& [tree, count] : tree_counters_) {
    signature.insert(signature.end(), {static_cast<std::uint64_t>(tree.first), tree.second, count % 2});
  }
  signature.insert(signature.end(), {world_streams() - base, unfinished_chunks_});
  if (!is_active()) return;
  for (const StreamQueue& queue : queues_) queue.append_signature(signature);
  for (const Stream& stream : streams_) {
    if (stream.current >= stream.phases.size()) continue;
    signature.insert(signature.end(),
                     {stream.tag - kTagSpace - base, stream.chunk, stream.current, stream.steps});
    signature.push_back(stream.phase ? 1 : 0);
    if (stream.phase) stream.phase->append_signature(signature);
  }
}

std::uint64_t CollectiveEngine::world_streams() const {
  const auto counter = stream_counters_.find(0);
  return counter == stream_counters_.end() ? 0 : counter->second;
}

void CollectiveEngine::move_to(std::uint32_t node_index, const TraceNode& node) {
  node_index_ = node_index;
  node_id_ = node.id;
  layer_ = node.layer;
}

Stream& CollectiveEngine::new_stream() {
  if (spare_streams_.empty()) return streams_.emplace_back();
  Stream& stream = *spare_streams_.back();
  spare_streams_.pop_back();
  stream.steps = stream.current = 0;
  stream.phases.clear();
  return stream;
}

std::uint32_t CollectiveEngine::next_tag(std::int32_t group) {
  const std::uint64_t id = static_cast<std::uint64_t>(group) * kStreamsPerGroup + stream_counters_[group]++;
  return static_cast<std::uint32_t>(id % kTagSpace) + kTagSpace;
}

void CollectiveEngine::assign_phases(Stream& stream, const Scope& scope, CollectiveType op,
                                     const std::vector<PlannedPhase>& plan) {
  for (const PlannedPhase& planned : plan) {
    const CollectiveImpl& impl = scope.layout->dims[planned.dim].impl;
    const QueueChoice choice = selector_.next(planned.dim, planned.use);
    PhaseSpec& spec = stream.phases.emplace_back();
    spec.op = planned.op;
    spec.algorithm = impl.algorithm;
    spec.window = impl.window;
    spec.clockwise = choice.clockwise;
    spec.queue = choice.queue;
    spec.bytes = planned.bytes;
    spec.ring = scope.layout->ring(planned.dim, events_.rank());
    if (impl.algorithm == Algorithm::double_binary_tree) {
      spec.max_tree = tree_counters_[{op, planned.dim}]++ % 2 == 0;
    }
  }
}

void CollectiveEngine::enter_queue(Stream& stream) {
  queues_[stream.phases[stream.current].queue].enter(stream);
}

void CollectiveEngine::start_waiting(std::uint32_t queue) {
  while (Stream* stream = queues_[queue].start_next(streams_per_queue_)) {
    stream->phase = make_phase(stream->phases[stream->current], *stream, *this);
    stream->phase->start();
  }
}

// The node completes, and may issue the next collective, before the finished chunk gives up its
// place in the queue.
void CollectiveEngine::exit_phase(Stream& stream) {
  const std::uint32_t old_queue = stream.phases[stream.current].queue;
  stream.phase.reset();
  const bool last = ++stream.current == stream.phases.size();
  if (last && --unfinished_chunks_ == 0) client_.collective_finished(node_index_);
  if (!last) enter_queue(stream);
  queues_[old_queue].leave();
  start_waiting(old_queue);
  if (last) {
    spare_streams_.push_back(&stream);
  } else {
    start_waiting(stream.phases[stream.current].queue);
  }
}

void CollectiveEngine::on_bundle(Phase& phase) {
  Stream& stream = phase.stream();
  if (phase.on_bundle()) exit_phase(stream);
}

void CollectiveEngine::on_reduction(Phase& phase, std::uint64_t bytes) {
  events_.schedule(reduction_delay_ns(bytes, params_.local_mem_bw_gbps),
                   {RankEventKind::bundle_fires, 0, &phase});
}

void CollectiveEngine::on_carried(Phase& phase, std::uint64_t bytes, bool reduce) {
  reduce ? on_reduction(phase, bytes) : on_bundle(phase);
}

void CollectiveEngine::on_bus_event(const RankEvent& event) { bus_.on_event(event); }

FlowLabel CollectiveEngine::next_label(Stream& stream) const {
  return {node_id_, layer_, saturated(stream.chunk), saturated(stream.steps++)};
}

void CollectiveEngine::send(Phase& phase, std::uint32_t to, std::uint64_t bytes) {
  Stream& stream = phase.stream();
  messenger_.send({stream.tag, events_.rank(), to}, bytes, next_label(stream), {});
}

void CollectiveEngine::receive(Phase& phase, std::uint32_t from, std::uint64_t bytes) {
  Stream& stream = phase.stream();
  const FlowLabel label{node_id_, layer_, saturated(stream.chunk), saturated(stream.steps)};
  messenger_.receive({stream.tag, from, events_.rank()}, bytes, label,
                     {Completion::Kind::receipt, events_.rank(), node_index_, &phase});
}

void CollectiveEngine::schedule_bundle(Phase& phase, std::uint64_t bytes, bool reduce, BundleRoute route) {
  const bool subgroup = phase.spec().ring.is_subgroup();
  if (params_.model_shared_bus && !subgroup) return bus_.carry(phase, bytes, reduce, route);
  const TimeNs delay = subgroup ? kSubgroupEndpointDelayNs : params_.endpoint_delay_ns;
  const RankEventKind next = reduce ? RankEventKind::reduction_starts : RankEventKind::bundle_fires;
  events_.schedule(delay, {next, bytes, &phase});
}

std::string CollectiveEngine::describe_chunks() const {
  std::string text;
  for (const Stream& stream : streams_) {
    if (stream.current >= stream.phases.size()) continue;
    if (!text.empty()) text += ", ";
    text += "chunk " + std::to_string(stream.chunk) + (stream.phase ? " in phase " : " queued for phase ") +
            std::to_string(stream.current + 1) + " of " + std::to_string(stream.phases.size());
  }
  return text;
}

}  // namespace hpcmoe
