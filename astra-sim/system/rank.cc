#include "system/rank.hh"

#include <utility>

namespace hpcmoe {

Rank::Rank(std::uint32_t rank, RankTrace trace, const RankEnvironment& environment, RankObserver& observer)
    : environment_(environment),
      observer_(observer),
      events_(environment.timers, rank),
      engine_(environment.params, environment.layouts, events_, environment.messenger, *this),
      workload_(std::move(trace), environment.params, *this) {}

void Rank::on_timer() {
  events_.drain([this](const RankEvent& event) { run_event(event); });
}

void Rank::run_event(const RankEvent& event) {
  switch (event.kind) {
    case RankEventKind::bundle_fires:
      return engine_.on_bundle(*static_cast<Phase*>(event.target));
    case RankEventKind::reduction_starts:
      return engine_.on_reduction(*static_cast<Phase*>(event.target), event.value);
    case RankEventKind::node_done:
      return complete(static_cast<std::uint32_t>(event.value));
    case RankEventKind::memory_free:
      return environment_.memory.on_free(event.value);
    case RankEventKind::bus_sent:
    case RankEventKind::bus_received:
    case RankEventKind::bus_reduced:
      return engine_.on_bus_event(event);
  }
}

void Rank::skip(std::uint32_t from, std::uint32_t to, const Jump& jump) {
  workload_.skip(from, to, jump);
  if (environment_.compute_clock.is_computing(rank())) environment_.compute_clock.move(rank(), position());
  if (environment_.barrier.is_waiting(rank())) environment_.barrier.move(rank(), position());
  if (engine_.is_active()) engine_.move_to(position(), workload_.node(position()));
}

void Rank::run_for(std::uint32_t node, TimeNs runtime_ns) {
  const bool by_rank =
      environment_.params.compute_ties == kByRank && slot_of(workload_.node(node)) == Slot::compute;
  if (by_rank) return environment_.compute_clock.start(rank(), node, runtime_ns);
  events_.schedule(runtime_ns, {RankEventKind::node_done, node});
}

void Rank::start_collective(std::uint32_t node) { engine_.start(node, workload_.node(node)); }

void Rank::post_send(std::uint32_t index) {
  const TraceNode& node = workload_.node(index);
  environment_.messenger.send({node.tag % kTagSpace, rank(), node.peer}, node.comm_bytes,
                              {node.id, node.layer, 0, 0}, {Completion::Kind::node, rank(), index, nullptr});
}

bool Rank::post_receive(std::uint32_t index) {
  const TraceNode& node = workload_.node(index);
  return environment_.messenger.try_receive({node.tag % kTagSpace, node.peer, rank()}, node.comm_bytes,
                                            {node.id, node.layer, 0, 0},
                                            {Completion::Kind::node, rank(), index, nullptr});
}

void Rank::access_remote_memory(std::uint32_t index) {
  environment_.memory.access(events_, index, workload_.node(index).tensor_bytes);
}

}  // namespace hpcmoe
