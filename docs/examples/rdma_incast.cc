// Seven hosts send to the eighth through one switch, under DCQCN: the RDMA model of hpcmoe in a plain
// ns-3 program. It prints when each message was acknowledged in full, and what the switch did.
//
//   rdma_incast [--Bytes=1000000] [--Rate=100Gbps] [--hpcmoe::rdma::Dcqcn::Gain=0.00390625 ...]

#include <cstdint>
#include <iostream>
#include <vector>

#include "backends/ns3/dcqcn.hh"
#include "backends/ns3/host.hh"
#include "backends/ns3/switch.hh"
#include "ns3/command-line.h"
#include "ns3/simulator.h"

namespace rdma = hpcmoe::rdma;

namespace {

constexpr std::uint32_t kHosts = 8;

ns3::Ipv4Address AddressOf(std::uint32_t host) { return ns3::Ipv4Address(0x0a000001 + host); }

void PrintFinished(ns3::Ptr<rdma::QueuePair> qp) {
  const std::uint32_t source = qp->Request().tuple.source - AddressOf(0).Get();
  std::cout << ns3::Simulator::Now().GetNanoSeconds() << " ns: host " << source << " done\n";
}

// A cable from a host to the switch, which reaches that host through it.
void Connect(ns3::Ptr<rdma::Host> host, ns3::Ptr<rdma::Switch> fabric, std::uint32_t id, ns3::DataRate rate) {
  const auto link =
      ns3::CreateObjectWithAttributes<rdma::Link>("Delay", ns3::TimeValue(ns3::MicroSeconds(1)));
  const auto card = ns3::CreateObjectWithAttributes<rdma::HostPort>("DataRate", ns3::DataRateValue(rate));
  const auto port = ns3::CreateObjectWithAttributes<rdma::SwitchPort>("DataRate", ns3::DataRateValue(rate));
  link->Attach(card);
  link->Attach(port);
  host->AddPort(card);
  fabric->AddPort(port, rate.GetBitRate());
  fabric->AddRoute(AddressOf(id), port->GetIfIndex());
  for (std::uint32_t other = 0; other < kHosts; ++other) host->AddRoute(AddressOf(other), card->GetIfIndex());
}

}  // namespace

int main(int argc, char* argv[]) {
  std::uint64_t bytes = 1'000'000;
  ns3::DataRate rate("100Gbps");
  ns3::CommandLine command(__FILE__);
  command.AddValue("Bytes", "Size of each message", bytes);
  command.AddValue("Rate", "Rate of every link", rate);
  command.Parse(argc, argv);

  const auto fabric = ns3::CreateObject<rdma::Switch>();
  fabric->SetMarkingThreshold(rate.GetBitRate(), {100'000, 400'000, 0.2});
  ns3::ObjectFactory control;
  control.SetTypeId(rdma::Dcqcn::GetTypeId());
  std::vector<ns3::Ptr<rdma::Host>> hosts;
  for (std::uint32_t id = 0; id < kHosts; ++id) {
    hosts.push_back(ns3::CreateObject<rdma::Host>());
    hosts[id]->SetCongestionControl(control);
    hosts[id]->TraceConnectWithoutContext("Finished", ns3::MakeCallback(&PrintFinished));
    Connect(hosts[id], fabric, id, rate);
  }
  for (std::uint32_t id = 1; id < kHosts; ++id) {
    rdma::QueuePairRequest request;
    request.tuple = {AddressOf(id).Get(), AddressOf(0).Get(), 10000, rdma::kServicePort};
    request.bytes = bytes;
    request.base_rtt = ns3::MicroSeconds(4);
    hosts[id]->Send(request);
  }
  ns3::Simulator::Run();
  std::cout << fabric->GetPort(0)->GetCounters(ns3::Simulator::Now()).marks << " marks, "
            << fabric->GetPausesSent() << " pauses, " << fabric->GetDrops() << " drops\n";
  ns3::Simulator::Destroy();
}
