// Transport headers of RDMA over converged Ethernet as this network model sends them. A data packet is
// PPP, IPv4, UDP, SequenceHeader, payload; an acknowledgement PPP, IPv4, AckHeader, padding; a pause
// frame PPP, IPv4, PauseHeader.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>

#include "ns3/header.h"

namespace hpcmoe::rdma {

// What in-band telemetry a packet has room for.
enum class IntKind : std::uint8_t { none = 0, hops = 1, stamp = 2 };

// One switch's record, in the units of the wire: 3 + 24 + 20 + 17 bits.
struct IntHop {
  std::uint32_t rate_code = 0;
  std::uint32_t time = 0;   // ns modulo 2^24
  std::uint32_t bytes = 0;  // sent by the port, in 128 bytes * multiplier, modulo 2^20
  std::uint32_t queue = 0;  // waiting at the port, in 80 bytes * multiplier, modulo 2^17
};

constexpr std::uint32_t kIntSlots = 5;  // at most

// The telemetry field that data packets carry and acknowledgements return.
struct IntField {
  IntKind kind = IntKind::none;
  std::uint8_t slots = kIntSlots;  // records it has room for
  std::uint16_t hop_count = 0;     // records pushed; beyond the slots they overwrite the first ones
  std::array<IntHop, kIntSlots> hops{};
  std::uint64_t stamp_ns = 0;

  std::uint32_t Size() const;
  void Push(const IntHop& hop) { hops[hop_count++ % slots] = hop; }
  void Serialize(ns3::Buffer::Iterator& at) const;
  void Deserialize(ns3::Buffer::Iterator& at);  // kind and slots are known from the header before it
};

// The 16-bit priority group field: the class in its low byte, above it what the simulator needs to know
// about the flow.
struct Group {
  std::uint8_t traffic_class = 0;
  IntKind telemetry = IntKind::none;
  std::uint8_t slots = kIntSlots;
  bool local = false;  // a flow without feedback control

  std::uint16_t Pack() const;
  static Group Unpack(std::uint16_t bits);
};

// Follows UDP in data packets: byte offset of the payload, priority group, telemetry.
class SequenceHeader : public ns3::Header {
 public:
  static ns3::TypeId GetTypeId();
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return 6 + field.Size(); }
  void Serialize(ns3::Buffer::Iterator start) const override;
  std::uint32_t Deserialize(ns3::Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  std::uint32_t sequence = 0;
  Group group;
  IntField field;
};

// An acknowledgement of all bytes before `sequence`, or, by IP protocol, the request to go back there.
class AckHeader : public ns3::Header {
 public:
  static ns3::TypeId GetTypeId();
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return 12 + field.Size(); }
  void Serialize(ns3::Buffer::Iterator start) const override;
  std::uint32_t Deserialize(ns3::Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  std::uint16_t source_port = 0, destination_port = 0;
  bool congestion = false;  // the data packet had been marked
  std::uint32_t sequence = 0;
  Group group;
  IntField field;
};

// Priority flow control: a time of zero resumes the class, any other pauses it until a resume comes.
class PauseHeader : public ns3::Header {
 public:
  static ns3::TypeId GetTypeId();
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return 9; }
  void Serialize(ns3::Buffer::Iterator start) const override;
  std::uint32_t Deserialize(ns3::Buffer::Iterator start) override;
  void Print(std::ostream& os) const override;

  std::uint32_t time_us = 0;
  std::uint32_t queue_bytes = 0;
  std::uint8_t traffic_class = 0;
};

}  // namespace hpcmoe::rdma
