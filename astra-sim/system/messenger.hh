// Messages of all ranks: starts flows, tells sender and receiver, optional rendezvous.
#pragma once

#include <cstdint>
#include <vector>

#include "system/message_matcher.hh"
#include "system/network_api.hh"

namespace hpcmoe {

// Streams of collectives and the tags of SEND/RECV nodes live in separate halves of the tag space;
// rendezvous control messages sit above both.
constexpr std::uint32_t kTagSpace = 500'000'000;
constexpr std::uint32_t kRendezvousTag = 1'000'000'000;
constexpr std::uint64_t kRendezvousBytes = 8192;
constexpr std::uint64_t kMaxMessageBytes = (std::uint64_t{1} << 31) - 1;

class NodeSink {
 public:
  virtual void node_completed(std::uint32_t rank, std::uint32_t node) = 0;

 protected:
  ~NodeSink() = default;
};

class Messenger {
 public:
  Messenger(NetworkBackend& network, NodeSink& sink, std::uint32_t ranks, bool rendezvous);

  void send(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label, const Completion& sent);
  // True when the bytes have arrived already: the receive is complete and `received` is not called.
  bool try_receive(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
                   const Completion& received);
  // Calls `received` in any case, before it returns when the bytes have arrived already.
  void receive(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label,
               const Completion& received);
  void on_flow_finished(std::uint64_t token);

  // Counts traffic that was not simulated.
  void add_traffic(std::uint32_t rank, std::uint64_t sent, std::uint64_t received) {
    sent_[rank] += sent;
    received_[rank] += received;
  }
  std::uint64_t bytes_sent(std::uint32_t rank) const { return sent_[rank]; }
  std::uint64_t bytes_received(std::uint32_t rank) const { return received_[rank]; }
  const MessageMatcher& matcher() const { return matcher_; }

 private:
  struct Flow {
    MessageKey key;
    std::uint64_t bytes = 0;
    Completion sent;
  };
  // A send that waits for the receiver's control message, or a receive that waits until its
  // control message has been delivered.
  struct Deferred {
    bool is_send = false;
    Flow flow;
    FlowLabel label;
  };

  void start_flow(const MessageKey& key, std::uint64_t bytes, const FlowLabel& label, const Completion& sent);
  Completion defer(const Deferred& record);
  void resume(std::uint32_t index);
  void complete(const Completion& completion);

  NetworkBackend& network_;
  NodeSink& sink_;
  bool rendezvous_;
  MessageMatcher matcher_;
  std::vector<Flow> flows_;  // by token
  std::vector<std::uint32_t> spare_flows_;
  std::vector<Deferred> deferred_;
  std::vector<std::uint32_t> spare_deferred_;
  std::vector<std::uint64_t> sent_, received_;  // payload bytes of finished flows by rank
};

}  // namespace hpcmoe
