#include "backends/ns3/headers.hh"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint32_t kHopBytes = 8, kHopCountBytes = 2;
constexpr std::uint32_t kStampFieldBytes = 8;
constexpr std::uint16_t kCongestionFlag = 1;

std::uint64_t PackHop(const IntHop& hop) {
  return std::uint64_t{hop.rate_code} << 61 | std::uint64_t{hop.time} << 37 | std::uint64_t{hop.bytes} << 17 |
         hop.queue;
}

IntHop UnpackHop(std::uint64_t bits) {
  const auto part = [bits](int shift, std::uint32_t mask) {
    return static_cast<std::uint32_t>(bits >> shift) & mask;
  };
  return {part(61, 0x7), part(37, 0xffffff), part(17, 0xfffff), part(0, 0x1ffff)};
}

}  // namespace

std::uint32_t IntField::Size() const {
  if (kind == IntKind::hops) return slots * kHopBytes + kHopCountBytes;
  return kind == IntKind::stamp ? kStampFieldBytes : 0;
}

void IntField::Serialize(ns3::Buffer::Iterator& at) const {
  if (kind == IntKind::stamp) at.WriteHtonU64(stamp_ns);
  if (kind != IntKind::hops) return;
  for (std::uint32_t i = 0; i < slots; ++i) at.WriteHtonU64(PackHop(hops[i]));
  at.WriteHtonU16(hop_count);
}

void IntField::Deserialize(ns3::Buffer::Iterator& at) {
  if (kind == IntKind::stamp) stamp_ns = at.ReadNtohU64();
  if (kind != IntKind::hops) return;
  for (std::uint32_t i = 0; i < slots; ++i) hops[i] = UnpackHop(at.ReadNtohU64());
  hop_count = at.ReadNtohU16();
}

std::uint16_t Group::Pack() const {
  return static_cast<std::uint16_t>(traffic_class | static_cast<int>(telemetry) << 8 | slots << 10 |
                                    (local ? 1 << 13 : 0));
}

Group Group::Unpack(std::uint16_t bits) {
  return {static_cast<std::uint8_t>(bits & 0xff), static_cast<IntKind>(bits >> 8 & 3),
          static_cast<std::uint8_t>(bits >> 10 & 7), (bits >> 13 & 1) != 0};
}

NS_OBJECT_ENSURE_REGISTERED(SequenceHeader);

ns3::TypeId SequenceHeader::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::SequenceHeader").SetParent<Header>().AddConstructor<SequenceHeader>();
  return tid;
}

void SequenceHeader::Serialize(ns3::Buffer::Iterator at) const {
  at.WriteHtonU32(sequence);
  at.WriteHtonU16(group.Pack());
  field.Serialize(at);
}

std::uint32_t SequenceHeader::Deserialize(ns3::Buffer::Iterator at) {
  sequence = at.ReadNtohU32();
  group = Group::Unpack(at.ReadNtohU16());
  field.kind = group.telemetry;
  field.slots = group.slots;
  field.Deserialize(at);
  return GetSerializedSize();
}

void SequenceHeader::Print(std::ostream& os) const {
  os << "sequence=" << sequence << " class=" << +group.traffic_class;
}

NS_OBJECT_ENSURE_REGISTERED(AckHeader);

ns3::TypeId AckHeader::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::AckHeader").SetParent<Header>().AddConstructor<AckHeader>();
  return tid;
}

void AckHeader::Serialize(ns3::Buffer::Iterator at) const {
  at.WriteHtonU16(source_port);
  at.WriteHtonU16(destination_port);
  at.WriteHtonU16(congestion ? kCongestionFlag : 0);
  at.WriteHtonU16(group.Pack());
  at.WriteHtonU32(sequence);
  field.Serialize(at);
}

std::uint32_t AckHeader::Deserialize(ns3::Buffer::Iterator at) {
  source_port = at.ReadNtohU16();
  destination_port = at.ReadNtohU16();
  congestion = (at.ReadNtohU16() & kCongestionFlag) != 0;
  group = Group::Unpack(at.ReadNtohU16());
  sequence = at.ReadNtohU32();
  field.kind = group.telemetry;
  field.slots = group.slots;
  field.Deserialize(at);
  return GetSerializedSize();
}

void AckHeader::Print(std::ostream& os) const {
  os << source_port << " > " << destination_port << " sequence=" << sequence
     << (congestion ? " congestion" : "");
}

NS_OBJECT_ENSURE_REGISTERED(PauseHeader);

ns3::TypeId PauseHeader::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::PauseHeader").SetParent<Header>().AddConstructor<PauseHeader>();
  return tid;
}

void PauseHeader::Serialize(ns3::Buffer::Iterator at) const {
  at.WriteHtonU32(time_us);
  at.WriteHtonU32(queue_bytes);
  at.WriteU8(traffic_class);
}

std::uint32_t PauseHeader::Deserialize(ns3::Buffer::Iterator at) {
  time_us = at.ReadNtohU32();
  queue_bytes = at.ReadNtohU32();
  traffic_class = at.ReadU8();
  return GetSerializedSize();
}

void PauseHeader::Print(std::ostream& os) const {
  os << (time_us == 0 ? "resume" : "pause") << " class=" << +traffic_class;
}

}  // namespace hpcmoe::rdma
