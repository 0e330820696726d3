// A host's network card: acknowledgements first, then its queue pairs in turn, each paced and windowed.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "backends/ns3/device.hh"
#include "backends/ns3/queue_pair.hh"
#include "ns3/event-id.h"

namespace hpcmoe::rdma {

class Host;

class HostPort : public Device {
 public:
  static ns3::TypeId GetTypeId();

  void SetHost(Host* host) { m_host = host; }
  void AddQueuePair(ns3::Ptr<QueuePair> qp);
  void EnqueueReply(Frame frame);
  // Every queue pair has finished: the list and its round robin start anew.
  void ForgetQueuePairs();
  void TrySend() override;
  void SendPause(std::uint8_t traffic_class, std::uint32_t time_us) override;
  // A queue pair may send earlier than had been planned.
  void WakeNoLaterThan(ns3::Time time);
  std::uint64_t QueuedBytes() const override { return m_replyBytes; }

 protected:
  void Deliver(ns3::Ptr<ns3::Packet> packet, const Label& label) override;
  void DoDispose() override;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  bool MaySend(const QueuePair& qp) const;
  // The queue pair whose turn it is, after the finished ones that were passed have left; or kNone.
  std::size_t ChooseQueuePair();
  std::size_t RemoveFinished(std::size_t from, std::size_t chosen);
  void SendReply();
  void SendData(QueuePair& qp);
  void PlanWakeUp();

  Host* m_host = nullptr;
  std::deque<std::pair<ns3::Ptr<ns3::Packet>, Label>> m_replies;
  std::uint64_t m_replyBytes = 0;
  std::vector<ns3::Ptr<QueuePair>> m_queuePairs;  // in order of creation
  std::size_t m_last = 0;                         // the one that sent last
  ns3::EventId m_wakeUp;
};

}  // namespace hpcmoe::rdma
