// How a sender reacts to what acknowledgements tell. Each queue pair has a controller of its own.
#pragma once

#include <cstdint>

#include "backends/ns3/headers.hh"
#include "ns3/object.h"

namespace hpcmoe::rdma {

class QueuePair;

// The base class is the controller that does nothing: line rate for ever.
class CongestionControl : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  // What the packets of the run carry for it.
  virtual IntKind Telemetry() const { return IntKind::none; }
  virtual std::uint8_t TelemetrySlots() const { return kIntSlots; }
  virtual void Start(QueuePair&) {}
  // Every ACK and NACK of a live queue pair, the one that finishes it included.
  virtual void OnAck(QueuePair&, const AckHeader&) {}
  virtual void Stop() {}  // no timer runs from here on
};

// The integer part of a rate, and 2^63 for what no integer holds.
std::uint64_t WholeRate(double rate_bps);

}  // namespace hpcmoe::rdma
