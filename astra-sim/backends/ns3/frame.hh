// A packet taken apart: what hosts and switches read and change, and what they only pass on.
#pragma once

#include <cstdint>

#include "backends/ns3/headers.hh"
#include "ns3/ipv4-header.h"
#include "ns3/packet.h"
#include "ns3/ptr.h"
#include "ns3/udp-header.h"

namespace hpcmoe::rdma {

enum class FrameKind : std::uint8_t { data, ack, nack, pause };

constexpr std::uint32_t kClasses = 8;
constexpr std::uint8_t kDataClass = 3;       // data and acknowledgements
constexpr std::uint8_t kControlClass = 0;    // pause frames; never paused itself
constexpr std::uint16_t kServicePort = 100;  // destination port of every flow

// Addresses and ports as the header of the packet itself has them.
struct FlowTuple {
  std::uint32_t source = 0, destination = 0;
  std::uint16_t source_port = 0, destination_port = 0;
};

// MurmurHash3 (x86, 32 bit) of the tuple's twelve bytes: chooses among equal-cost next hops.
std::uint32_t FlowHash(const FlowTuple& tuple, std::uint32_t seed);

// What a switch has to know of a packet that it only passes on.
struct Label {
  FrameKind kind = FrameKind::data;
  std::uint8_t traffic_class = kDataClass;
  IntKind telemetry = IntKind::none;
  bool local = false;
  std::uint32_t bytes = 0;  // on the wire
  FlowTuple tuple;
};
Label ReadLabel(const ns3::Packet& packet);

struct Frame {
  FrameKind kind = FrameKind::data;
  ns3::Ipv4Header ip;
  ns3::UdpHeader udp;       // data
  SequenceHeader sequence;  // data
  AckHeader ack;            // ack, nack
  PauseHeader pause;        // pause
  ns3::Ptr<ns3::Packet> payload;

  FlowTuple Tuple() const;
};

Frame TakeApart(ns3::Ptr<ns3::Packet> packet);
ns3::Ptr<ns3::Packet> PutTogether(Frame& frame);  // consumes the payload

// What kind of packet it is, and nothing else of it.
FrameKind KindOf(const ns3::Ipv4Header& ip);

Frame MakeData(const FlowTuple& tuple, const SequenceHeader& header, std::uint32_t payload_bytes);
// The answer to a data packet, with ports and addresses swapped and its telemetry returned.
Frame MakeReply(FrameKind kind, const Frame& data, std::uint32_t sequence);
Frame MakePause(std::uint8_t traffic_class, std::uint32_t time_us, std::uint32_t queue_bytes);

}  // namespace hpcmoe::rdma
