#include "system/messenger.hh"

#include <cassert>

#include "system/collectives/phase.hh"

namespace hpcmoe {

namespace {

// A free place in `items`, which grows when there is none.
template <class Item>
std::uint32_t take_place(std::vector<Item>& items, std::vector<std::uint32_t>& spare) {
  if (spare.empty()) {
    items.emplace_back();
    return static_cast<std::uint32_t>(items.size() - 1);
  }
  const std::uint32_t place = spare.back();
  spare.pop_back();
  return place;
}

MessageKey control_key(const MessageKey& data) { return {data.tag + kRendezvousTag, data.dst, data.src}; }

}  // namespace

Messenger::Messenger(NetworkBackend& network, NodeSink& sink, std::uint32_t ranks, bool rendezvous)
    : network_(network), sink_(sink), rendezvous_(rendezvous), sent_(ranks), received_(ranks) {}

void Messenger::send(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
                     const Completion& sent) {
  if (!rendezvous_) return start_flow(key, bytes, label, sent);
  const Completion data = defer({true, {key, bytes, sent}, label});
  if (matcher_.receive(control_key(key), kRendezvousBytes, data)) complete(data);
}

bool Messenger::try_receive(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
                            const Completion& received) {
  if (!rendezvous_) return matcher_.receive(key, bytes, received);
  start_flow(control_key(key), kRendezvousBytes, label, defer({false, {key, bytes, received}, label}));
  return false;
}

void Messenger::receive(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
                        const Completion& received) {
  if (try_receive(key, bytes, label, received)) complete(received);
}

void Messenger::on_flow_finished(std::uint64_t token) {
  assert(token < flows_.size());
  const Flow flow = flows_[token];
  spare_flows_.push_back(static_cast<std::uint32_t>(token));
  sent_[flow.key.src] += flow.bytes;
  received_[flow.key.dst] += flow.bytes;
  complete(flow.sent);  // the sender learns first
  complete(matcher_.arrive(flow.key, flow.bytes));
}

void Messenger::start_flow(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
                           const Completion& sent) {
  assert(bytes > 0 && bytes <= kMaxMessageBytes);
  const std::uint32_t token = take_place(flows_, spare_flows_);
  flows_[token] = {key, bytes, sent};
  network_.start_flow({key.src, key.dst, bytes, token, label});
}

Completion Messenger::defer(const Deferred& record) {
  const std::uint32_t index = take_place(deferred_, spare_deferred_);
  deferred_[index] = record;
  return {Completion::Kind::deferred, 0, index, nullptr};
}

void Messenger::resume(std::uint32_t index) {
  const Deferred record = deferred_[index];
  spare_deferred_.push_back(index);
  const Flow& flow = record.flow;
  if (record.is_send) return start_flow(flow.key, flow.bytes, record.label, flow.sent);
  if (matcher_.receive(flow.key, flow.bytes, flow.sent)) complete(flow.sent);
}

void Messenger::complete(const Completion& completion) {
  switch (completion.kind) {
    case Completion::Kind::none:
      return;
    case Completion::Kind::receipt:
      return completion.phase->on_receipt();
    case Completion::Kind::node:
      return sink_.node_completed(completion.rank, completion.index);
    case Completion::Kind::deferred:
      return resume(completion.index);
  }
}

}  // namespace hpcmoe
