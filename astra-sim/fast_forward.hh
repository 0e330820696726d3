// Exact fast-forward over equal layers.
//
// When the network is empty and every rank computes or waits, the future depends only on the ranks'
// positions, on what is left of their computations and collectives, and on round robins (random
// streams, source ports and INT counters restart whenever the network is empty). If that state equals
// an earlier one and the traces go on to repeat what lies between, the copies are added: time,
// counters and traffic times the count, records once with a repeat count. Nothing is added that the
// comparison does not prove; where there is no such moment the run is simulated in full.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/packet_network.hh"
#include "system/system_layer.hh"

namespace hpcmoe {

class FastForward {
 public:
  FastForward(PacketNetwork& network, SystemLayer& system) : network_(network), system_(system) {}

  // At a quiet stop of the network: remembers the state, or jumps when it has been seen before.
  void on_quiet();

  TimeNs added_ns() const { return added_ns_; }
  std::uint64_t added_layers() const { return added_layers_; }
  std::uint64_t quiet_moments() const { return quiet_moments_; }
  const std::vector<RecordRepeat>& repeats() const { return repeats_; }
  // Adds what was not simulated to what was.
  void add_to(NetworkTotals& totals) const;
  void add_to(std::vector<LinkCounters>& links) const;

 private:
  struct Mark {
    QuietState ranks;
    TimeNs time = 0;
    NetworkTotals totals;
    std::vector<LinkCounters> links;
    std::size_t flows = 0, pauses = 0, queues = 0;
  };

  bool make_mark(Mark& mark) const;
  void jump(const Mark& first, const Mark& second);

  PacketNetwork& network_;
  SystemLayer& system_;
  std::vector<Mark> marks_;
  std::vector<RecordRepeat> repeats_;
  NetworkTotals added_totals_;
  std::vector<LinkCounters> added_links_;
  TimeNs added_ns_ = 0;
  std::uint64_t added_layers_ = 0;
  std::uint64_t quiet_moments_ = 0;
};

}  // namespace hpcmoe
