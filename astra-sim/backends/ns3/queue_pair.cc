#include "backends/ns3/queue_pair.hh"

#include "backends/ns3/host_port.hh"
#include "ns3/simulator.h"
#include "ns3/trace-source-accessor.h"

namespace hpcmoe::rdma {

NS_OBJECT_ENSURE_REGISTERED(QueuePair);

ns3::TypeId QueuePair::GetTypeId() {
  static const ns3::TypeId tid =
      ns3::TypeId("hpcmoe::rdma::QueuePair")
          .SetParent<Object>()
          .AddConstructor<QueuePair>()
          .AddTraceSource("Rate", "The sending rate changes; old and new rate in bit/s.",
                          ns3::MakeTraceSourceAccessor(&QueuePair::m_rateTrace),
                          "hpcmoe::rdma::QueuePair::RateTracedCallback");
  return tid;
}

void QueuePair::Setup(const QueuePairRequest& request, ns3::Ptr<CongestionControl> control, HostPort* port) {
  m_request = request;
  m_control = control;
  m_port = port;
  m_start = ns3::Simulator::Now();
  next_allowed = m_start;
  m_rate = m_maxRate = port->GetDataRate().GetBitRate();
  m_control->Start(*this);
}

bool QueuePair::IsWindowBound(bool follow_rate) const {
  std::uint64_t window = m_request.window_bytes;
  if (window == 0) return false;
  if (follow_rate) {
    window = window * m_rate / m_maxRate;
    if (window == 0) window = 1;
  }
  return next - acknowledged >= window;
}

void QueuePair::SetRate(std::uint64_t rate_bps) {
  if (rate_bps != m_rate) m_rateTrace(m_rate, rate_bps);
  m_rate = rate_bps;
}

void QueuePair::ChangeRate(std::uint64_t rate_bps) {
  const ns3::Time planned = ns3::DataRate(m_rate).CalculateBytesTxTime(last_packet_bytes);
  next_allowed += ns3::DataRate(rate_bps).CalculateBytesTxTime(last_packet_bytes) - planned;
  m_port->WakeNoLaterThan(next_allowed);
  SetRate(rate_bps);
}

void QueuePair::DoDispose() {
  if (m_control) m_control->Stop();
  m_control = nullptr;
  m_port = nullptr;
  Object::DoDispose();
}

}  // namespace hpcmoe::rdma
