#include "backends/ns3/frame.hh"

#include <algorithm>

#include "ns3/fatal-error.h"
#include "ns3/ppp-header.h"

namespace hpcmoe::rdma {
namespace {

constexpr std::uint8_t kUdpProtocol = 0x11;
constexpr std::uint8_t kAckProtocol = 0xFC;
constexpr std::uint8_t kNackProtocol = 0xFD;
constexpr std::uint8_t kPauseProtocol = 0xFE;
constexpr std::uint16_t kPppIpv4 = 0x0021;
constexpr std::uint8_t kTimeToLive = 64;
// Acknowledgements are padded as if the link layer header had fourteen bytes.
constexpr std::uint32_t kShortestAckBody = 26;

std::uint32_t Rotate(std::uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

std::uint32_t Blend(std::uint32_t state, std::uint32_t word) {
  word = Rotate(word * 0xcc9e2d51U, 15) * 0x1b873593U;
  return Rotate(state ^ word, 13) * 5 + 0xe6546b64U;
}

void SetAddresses(Frame& frame, std::uint32_t source, std::uint32_t destination, std::uint8_t protocol) {
  frame.ip.SetSource(ns3::Ipv4Address(source));
  frame.ip.SetDestination(ns3::Ipv4Address(destination));
  frame.ip.SetProtocol(protocol);
  frame.ip.SetTtl(kTimeToLive);
}

std::uint8_t ProtocolOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::ack:
      return kAckProtocol;
    case FrameKind::nack:
      return kNackProtocol;
    case FrameKind::pause:
      return kPauseProtocol;
    default:
      return kUdpProtocol;
  }
}

// Reads the headers of a packet without taking them off, which costs far less.
class LabelReader : public ns3::Header {
 public:
  static ns3::TypeId GetTypeId() {
    static const ns3::TypeId tid = ns3::TypeId("hpcmoe::rdma::LabelReader").SetParent<Header>();
    return tid;
  }
  ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
  std::uint32_t GetSerializedSize() const override { return 0; }
  void Serialize(ns3::Buffer::Iterator) const override {}
  void Print(std::ostream&) const override {}

  std::uint32_t Deserialize(ns3::Buffer::Iterator start) override {
    ns3::Buffer::Iterator at = start;
    ns3::PppHeader ppp;
    at.Next(ppp.Deserialize(at));
    ns3::Ipv4Header ip;
    at.Next(ip.Deserialize(at));
    label.kind = KindOf(ip);
    if (label.kind == FrameKind::pause) {
      label.traffic_class = kControlClass;
      return at.GetDistanceFrom(start);
    }
    label.tuple = {ip.GetSource().Get(), ip.GetDestination().Get(), at.ReadNtohU16(), at.ReadNtohU16()};
    // Behind the ports: length, checksum and sequence number of data, the flags of an acknowledgement.
    at.Next(label.kind == FrameKind::data ? 8 : 2);
    const Group group = Group::Unpack(at.ReadNtohU16());
    label.traffic_class = group.traffic_class;
    label.telemetry = group.telemetry;
    label.local = group.local;
    return at.GetDistanceFrom(start);
  }

  Label label;
};

}  // namespace

std::uint32_t FlowHash(const FlowTuple& tuple, std::uint32_t seed) {
  std::uint32_t h = Blend(seed, tuple.source);
  h = Blend(h, tuple.destination);
  h = Blend(h, tuple.source_port | std::uint32_t{tuple.destination_port} << 16);
  h ^= 12;
  h = (h ^ h >> 16) * 0x85ebca6bU;
  h = (h ^ h >> 13) * 0xc2b2ae35U;
  return h ^ h >> 16;
}

FlowTuple Frame::Tuple() const {
  const std::uint32_t source = ip.GetSource().Get(), destination = ip.GetDestination().Get();
  if (kind == FrameKind::data) {
    return {source, destination, udp.GetSourcePort(), udp.GetDestinationPort()};
  }
  return {source, destination, ack.source_port, ack.destination_port};
}

FrameKind KindOf(const ns3::Ipv4Header& ip) {
  switch (ip.GetProtocol()) {
    case kUdpProtocol:
      return FrameKind::data;
    case kAckProtocol:
      return FrameKind::ack;
    case kNackProtocol:
      return FrameKind::nack;
    case kPauseProtocol:
      return FrameKind::pause;
    default:
      NS_FATAL_ERROR("IP protocol " << +ip.GetProtocol() << " has no place in an RDMA network");
  }
}

Label ReadLabel(const ns3::Packet& packet) {
  LabelReader reader;
  packet.PeekHeader(reader);
  reader.label.bytes = packet.GetSize();
  return reader.label;
}

Frame TakeApart(ns3::Ptr<ns3::Packet> packet) {
  Frame frame;
  ns3::PppHeader ppp;
  packet->RemoveHeader(ppp);
  packet->RemoveHeader(frame.ip);
  frame.kind = KindOf(frame.ip);
  if (frame.kind == FrameKind::data) {
    packet->RemoveHeader(frame.udp);
    packet->RemoveHeader(frame.sequence);
  } else if (frame.kind == FrameKind::pause) {
    packet->RemoveHeader(frame.pause);
  } else {
    packet->RemoveHeader(frame.ack);
  }
  frame.payload = packet;
  return frame;
}

ns3::Ptr<ns3::Packet> PutTogether(Frame& frame) {
  const ns3::Ptr<ns3::Packet> packet = frame.payload;
  frame.payload = nullptr;
  if (frame.kind == FrameKind::data) {
    packet->AddHeader(frame.sequence);
    packet->AddHeader(frame.udp);
  } else if (frame.kind == FrameKind::pause) {
    packet->AddHeader(frame.pause);
  } else {
    packet->AddHeader(frame.ack);
  }
  frame.ip.SetPayloadSize(static_cast<std::uint16_t>(packet->GetSize()));
  packet->AddHeader(frame.ip);
  ns3::PppHeader ppp;
  ppp.SetProtocol(kPppIpv4);
  packet->AddHeader(ppp);
  return packet;
}

Frame MakeData(const FlowTuple& tuple, const SequenceHeader& header, std::uint32_t payload_bytes) {
  Frame frame;
  SetAddresses(frame, tuple.source, tuple.destination, kUdpProtocol);
  frame.udp.SetSourcePort(tuple.source_port);
  frame.udp.SetDestinationPort(tuple.destination_port);
  frame.sequence = header;
  frame.payload = ns3::Create<ns3::Packet>(payload_bytes);
  return frame;
}

Frame MakeReply(FrameKind kind, const Frame& data, std::uint32_t sequence) {
  Frame frame;
  frame.kind = kind;
  SetAddresses(frame, data.ip.GetDestination().Get(), data.ip.GetSource().Get(), ProtocolOf(kind));
  frame.ack.source_port = data.udp.GetDestinationPort();
  frame.ack.destination_port = data.udp.GetSourcePort();
  frame.ack.congestion = data.ip.GetEcn() != ns3::Ipv4Header::ECN_NotECT && !data.sequence.group.local;
  frame.ack.sequence = sequence;
  frame.ack.group = data.sequence.group;
  frame.ack.field = data.sequence.field;
  const std::uint32_t body = frame.ack.GetSerializedSize();
  frame.payload = ns3::Create<ns3::Packet>(kShortestAckBody - std::min(body, kShortestAckBody));
  return frame;
}

Frame MakePause(std::uint8_t traffic_class, std::uint32_t time_us, std::uint32_t queue_bytes) {
  Frame frame;
  frame.kind = FrameKind::pause;
  SetAddresses(frame, 0, ns3::Ipv4Address::GetBroadcast().Get(), kPauseProtocol);
  frame.pause.traffic_class = traffic_class;
  frame.pause.time_us = time_us;
  frame.pause.queue_bytes = queue_bytes;
  frame.payload = ns3::Create<ns3::Packet>();
  return frame;
}

}  // namespace hpcmoe::rdma
