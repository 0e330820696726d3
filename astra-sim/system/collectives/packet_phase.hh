// The machinery that ring, direct and halving-doubling share. A rank inserts `parallel` packets at
// the start and one per received message; each becomes a credit after its bundle event, and each
// credit posts the send and the receive of the oldest packet not yet used. Packet j is a function
// of j alone, so the FIFO of packets is two counters.
#pragma once

#include "system/collectives/phase.hh"

namespace hpcmoe {

class PacketPhase : public Phase {
 public:
  void start() override;
  void on_receipt() override;
  bool on_bundle() override;
  void append_signature(std::vector<std::uint64_t>& signature) const override {
    signature.insert(signature.end(), {left_, credits_, inserted_, posted_, received_, plain_left_,
                                       reducing_left_, odd_round_ ? 1u : 0u});
  }

 protected:
  struct Packet {
    std::uint32_t to = 0;
    std::uint32_t from = 0;
    std::uint64_t bytes = 0;
  };
  struct Shape {
    std::uint64_t parallel = 1;          // packets inserted at the start
    std::uint64_t reducing_inserts = 0;  // inserts of a round that follow the first `parallel` ones
    std::uint64_t messages = 0;          // to send (and to receive) in all
  };

  PacketPhase(const PhaseSpec& spec, Stream& stream, PhaseHost& host, const Shape& shape)
      : Phase(spec, stream, host), shape_(shape), left_(shape.messages) {}

  // The j-th message of this rank; also asked for one past the last.
  virtual Packet packet(std::uint64_t j) const = 0;

  void post_next();  // if there is a packet, a credit and something left to send
  void add_credit() { ++credits_; }
  bool is_over() const { return left_ == 0 && credits_ == shape_.parallel; }
  const Shape& shape() const { return shape_; }
  std::uint64_t messages_left() const { return left_; }
  std::uint64_t received() const { return received_; }

 private:
  void insert();

  Shape shape_;
  std::uint64_t left_;
  std::uint64_t credits_ = 0;
  std::uint64_t inserted_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
  // A round is `parallel` plain inserts followed by the reducing ones; only odd rounds of an
  // all-reduce do reduce.
  std::uint64_t plain_left_ = 0;
  std::uint64_t reducing_left_ = 0;
  bool odd_round_ = false;
};

}  // namespace hpcmoe
