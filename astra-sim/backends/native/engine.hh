// The native packet engine, one instantiation per congestion controller.
//
// An event handler does exactly what the RDMA model prescribes, in its program order, because equal
// times run in order of scheduling. Members are grouped by who acts: host, switch, link, clock.
// A packet is handed on by reference: to the event that brought it, which stays where it is until its
// handler returns, or to the front of a port's queue, which stays until it is popped. Queue pairs go by
// index: any call that may create one may move their pool.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/native/native_network.hh"
#include "core/event_wheel.hh"
#include "core/mrg32k3a.hh"
#include "network/congestion/ack_info.hh"
#include "network/int_pool.hh"
#include "network/nic.hh"
#include "network/path_table.hh"
#include "network/port.hh"
#include "network/queue_pair.hh"
#include "network/routing.hh"
#include "network/shared_buffer.hh"

namespace hpcmoe {

template <class Control>
class Engine final : public NativeNetwork {
 public:
  Engine(const NetworkParams& params, TopologySpec spec);

  // NetworkBackend
  TimeNs now() const override { return wheel_.now(); }
  void schedule_timer(std::uint32_t rank, TimeNs delay_ns) override;
  void start_flow(const FlowRequest& request) override;
  void stop() override { stopped_ = true; }

  // NativeNetwork
  bool is_host(std::uint32_t node) const override {
    return node < topology_.nodes() && topology_.is_host(node);
  }
  void set_client(NetworkClient* client) override { client_ = client; }
  RunStatus run(std::uint64_t max_events, TimeNs until_ns) override;
  bool is_at_rest() const override;
  void offset_records(TimeNs offset_ns) override { record_offset_ = offset_ns; }
  NetworkTotals totals() const override;
  NetworkRecords& records() override { return records_; }
  std::vector<LinkCounters> link_counters() const override;
  std::string broken_invariant() const override;
  std::string describe_unfinished(std::size_t most) const override;
  TimeNs max_rtt_ns() const override { return routing_.max_rtt_ns(); }
  std::uint64_t max_bdp_bytes() const override { return routing_.max_bdp_bytes(); }

  // What controllers may ask for and do.
  QueuePair& queue_pair(std::uint32_t flow) { return flows_[flow]; }
  RateBps int_rate(std::uint32_t flow, std::uint32_t hop) const;
  void set_rate(std::uint32_t flow, RateBps rate);
  void change_rate(std::uint32_t flow, RateBps rate);  // also re-times the next packet
  void schedule_control(EventKind kind, std::uint32_t flow, std::uint32_t generation, TimeNs delay);

 private:
  // set-up
  void make_ports();
  void make_tx_tables(std::uint32_t max_wire);
  void make_switches();
  void set_ecn_thresholds();
  void make_hosts();
  void make_error_models();

  // clock
  void dispatch(const Event& event);
  bool outgrows_cache() const;
  void prepare(const Event& event) const;
  void arrive(const Event& packet);
  void on_tx_done(std::uint32_t port);
  void drop_packet(const Event& packet);
  void end_packet(const Event& packet);
  bool lost_on_link(std::uint32_t port);
  void restart_counters();

  // link
  template <class Amend>
  void transmit(std::uint32_t port, EventKind kind, std::uint32_t wire, const Event& packet, Amend amend);
  void transmit_first(std::uint32_t port, EventQueue& queue);
  void receive_pfc(const Event& packet);
  Event make_pfc(bool pause);

  // switch
  void switch_receive(const Event& packet);
  void switch_try_send(std::uint32_t port);
  bool leave_switch(std::uint32_t port, const Event& packet);
  bool draw_mark(Port& port);
  std::uint8_t push_int(const Port& port, const Event& packet);
  void send_pfc(std::uint32_t port, bool pause);

  // host
  void begin_flow(std::uint32_t flow);
  void host_try_send(std::uint32_t port);
  std::optional<std::uint32_t> pick_flow(Nic& nic, bool paused);
  std::optional<std::size_t> find_sendable(const Nic& nic, std::size_t from, std::size_t to) const;
  std::size_t remove_finished(Nic& nic, std::size_t from, std::size_t chosen);
  void forget_queue_pairs(Nic& nic);
  void send_data(std::uint32_t port, std::uint32_t flow);
  TimeNs tx_time_at(const QueuePair& qp, RateBps rate) const;
  void plan_wake_up(Nic& nic);
  void schedule_wake_up(Nic& nic, TimeNs time);
  void on_wake_up(const Event& event);
  void refresh(std::uint32_t flow);
  void receive_data(const Event& packet);
  void reply(const Event& packet, EventKind kind, std::uint32_t seq);
  void receive_ack(const Event& packet);
  void complete(std::uint32_t flow);
  void maybe_pause_nic(std::uint32_t flow);
  void send_host_pfc(std::uint32_t port, bool pause);

  // flows
  std::uint32_t new_flow();
  void set_path(std::uint32_t flow, std::uint32_t src, std::uint32_t dst);
  std::size_t pair_index(std::uint32_t src, std::uint32_t dst) const;
  std::uint16_t next_source_port(std::uint32_t src, std::uint32_t dst);
  std::uint32_t source_of(const QueuePair& qp) const { return ports_[qp.nic_port].node; }
  std::uint32_t destination_of(const QueuePair& qp) const { return ports_[qp.ack_port].node; }
  void record_flow(const QueuePair& qp);

  // monitors
  bool depends_on_absolute_state() const;
  void sample_queues(TimeNs until);
  void monitor_queues();
  void resume_monitor();

  NetworkParams params_;
  Topology topology_;
  Routing routing_;
  Control control_;
  EventWheel wheel_;
  NetworkClient* client_ = nullptr;

  Pool<Port> ports_;
  std::vector<SharedBuffer> buffers_;  // one per switch
  std::vector<Nic> nics_;              // one per host port
  std::vector<HostPause> host_pauses_;
  std::vector<std::vector<std::uint32_t>> tx_tables_;
  std::vector<RateBps> int_rates_;  // per port, as the sender understands the INT record

  Pool<QueuePair> flows_;
  std::vector<std::uint32_t> free_flows_;
  PathTable paths_;
  std::vector<std::uint32_t> walked_;  // scratch of set_path
  struct PortCounter {
    std::uint16_t next = 0;
    std::uint32_t epoch = 0;
  };
  std::vector<PortCounter> source_ports_;
  IntPool int_records_;  // of packets in the network, when the controller reads INT

  StreamPerDraw ecn_streams_;
  std::optional<Mrg32k3a> common_errors_;
  std::vector<std::optional<Mrg32k3a>> link_errors_;

  std::uint32_t acked_flow_ = kNil;  // whose ACK is being processed
  TimeNs acked_next_avail_ = 0;      // by pacing, once it has left its NIC's list

  std::uint32_t epoch_ = 1;  // counts restarts of the counters
  TimeNs epoch_start_ = 0;
  TimeNs record_offset_ = 0;
  std::uint32_t live_flows_ = 0;  // started, last ACK not processed
  std::uint64_t packets_ = 0;     // in the network
  std::uint64_t pending_rank_timers_ = 0;
  TimeNs last_progress_ = 0;
  TimeNs next_sample_ = kNever;
  bool monitor_parked_ = false;  // while the network is empty
  TimeNs parked_at_ = 0;
  bool has_errors_ = false;
  bool lossy_ = false;  // a packet was lost or sent again: old packets may outlive their flow
  bool stopped_ = false;
  bool stalled_ = false;
  NetworkTotals totals_;
  NetworkRecords records_;
};

}  // namespace hpcmoe
