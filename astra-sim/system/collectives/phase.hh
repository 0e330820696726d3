// One phase of a chunk: one algorithm on one ring of one logical dimension, as one rank runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "system/parameters.hh"
#include "workload/trace.hh"

namespace hpcmoe {

// The ranks that take part, as seen by one of them. Rings of logical dimensions are evenly spaced;
// rings of a communicator subgroup list their members.
struct Ring {
  std::uint32_t size = 1;
  std::uint32_t index = 0;  // of this rank
  std::uint32_t base = 0;   // rank at index 0
  std::uint32_t stride = 1;
  const std::uint32_t* members = nullptr;  // subgroup only, owned by the parameters

  bool is_subgroup() const { return members != nullptr; }
  std::uint32_t rank_at(std::uint32_t i) const { return members ? members[i] : base + i * stride; }
  // `steps` (at most size) further along the ring.
  std::uint32_t rank_after(std::uint64_t steps, bool clockwise) const {
    const std::uint64_t forward = clockwise ? steps : size - steps;
    return rank_at(static_cast<std::uint32_t>((index + forward) % size));
  }
};

struct PhaseSpec {
  CollectiveType op = CollectiveType::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::int64_t window = -1;
  bool clockwise = true;
  bool max_tree = true;  // double binary tree: which of the two
  std::uint32_t queue = 0;
  std::uint64_t bytes = 0;  // input of the phase
  Ring ring;
};

// The way of a bundle through the shared bus. Without that model all take the endpoint delay.
enum class BundleRoute : std::uint8_t {
  outbound,   // towards the network
  inbound,    // from the network, stays
  turnaround  // from the network, goes out again
};

class Phase;
struct Stream;

// What a phase can ask for.
class PhaseHost {
 public:
  virtual void send(Phase& phase, std::uint32_t to, std::uint64_t bytes) = 0;
  virtual void receive(Phase& phase, std::uint32_t from, std::uint64_t bytes) = 0;
  // Calls phase.on_bundle() after the endpoint delay, and after the reduction delay of `bytes` on
  // top when `reduce`.
  virtual void schedule_bundle(Phase& phase, std::uint64_t bytes, bool reduce, BundleRoute route) = 0;

 protected:
  ~PhaseHost() = default;
};

class Phase {
 public:
  virtual ~Phase() = default;
  virtual void start() = 0;
  virtual void on_receipt() = 0;
  virtual bool on_bundle() = 0;  // true: the phase is over and may be destroyed
  // All that its future depends on besides its specification.
  virtual void append_signature(std::vector<std::uint64_t>& signature) const = 0;

  const PhaseSpec& spec() const { return spec_; }
  Stream& stream() const { return stream_; }

 protected:
  Phase(const PhaseSpec& spec, Stream& stream, PhaseHost& host) : spec_(spec), stream_(stream), host_(host) {}
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  PhaseHost& host() { return host_; }
  std::uint32_t ring_size() const { return spec_.ring.size; }

 private:
  PhaseSpec spec_;
  Stream& stream_;
  PhaseHost& host_;
};

std::unique_ptr<Phase> make_phase(const PhaseSpec& spec, Stream& stream, PhaseHost& host);

// Input size of the following phase.
std::uint64_t phase_output_bytes(Algorithm algorithm, CollectiveType op, std::uint32_t ring_size,
                                 std::uint64_t bytes);
std::uint64_t largest_message_bytes(Algorithm algorithm, CollectiveType op, std::uint32_t ring_size,
                                    std::uint64_t bytes);

}  // namespace hpcmoe
