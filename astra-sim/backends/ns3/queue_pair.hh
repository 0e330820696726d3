// One message on its way: the sending side of a reliable connection that carries nothing else.
#pragma once

#include <cstdint>

#include "backends/ns3/congestion.hh"
#include "backends/ns3/frame.hh"
#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/traced-callback.h"

namespace hpcmoe::rdma {

class HostPort;

struct QueuePairRequest {
  FlowTuple tuple;
  std::uint64_t bytes = 0;
  std::uint32_t window_bytes = 0;  // 0: unlimited
  ns3::Time base_rtt;
  bool local = false;       // no feedback control
  bool telemetry = true;    // its packets carry the telemetry field of the run
  std::uint64_t token = 0;  // for the owner
};

class QueuePair : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  void Setup(const QueuePairRequest& request, ns3::Ptr<CongestionControl> control, HostPort* port);

  const QueuePairRequest& Request() const { return m_request; }
  CongestionControl& Control() { return *m_control; }
  HostPort& Port() const { return *m_port; }
  ns3::Time StartTime() const { return m_start; }

  bool IsFinished() const { return acknowledged >= m_request.bytes; }
  std::uint64_t BytesLeft() const { return next < m_request.bytes ? m_request.bytes - next : 0; }
  bool IsWindowBound(bool follow_rate) const;
  std::uint64_t MaxRate() const { return m_maxRate; }
  std::uint64_t Rate() const { return m_rate; }
  // From the next packet on; what has been paced stays paced.
  void SetRate(std::uint64_t rate_bps);
  // Also moves the time of the next packet, as if the last one had been paced at the new rate.
  void ChangeRate(std::uint64_t rate_bps);

  std::uint64_t next = 0;          // byte offset of what is sent next
  std::uint64_t acknowledged = 0;  // all bytes before this one have arrived
  ns3::Time next_allowed;          // pacing
  std::uint32_t last_packet_bytes = 0;

 protected:
  void DoDispose() override;

 private:
  QueuePairRequest m_request;
  ns3::Ptr<CongestionControl> m_control;
  HostPort* m_port = nullptr;
  ns3::Time m_start;
  std::uint64_t m_rate = 0, m_maxRate = 0;
  ns3::TracedCallback<std::uint64_t, std::uint64_t> m_rateTrace;
};

}  // namespace hpcmoe::rdma
