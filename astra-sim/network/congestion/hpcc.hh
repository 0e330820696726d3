// HPCC (CC_MODE 3): every ACK brings each switch's queue, bytes and time (INT); the most used link
// sets the rate so that its utilisation stays at eta = u_target.
//
// All arithmetic is IEEE double in the order written, without fused multiply-add.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"
#include "network/queue_pair.hh"

namespace hpcmoe {

class Hpcc {
 public:
  static constexpr bool kReadsInt = true;
  static std::uint32_t int_bytes(const NetworkParams& p) { return p.int_max_hops * 8 + 2; }

  explicit Hpcc(const NetworkParams& p) : p_(&p) {
    if (p.int_max_hops == 0 || p.int_max_hops > kMaxIntSlots) {
      throw InputError("int_max_hops " + std::to_string(p.int_max_hops) + " is not within 1 .. " +
                       std::to_string(kMaxIntSlots));
    }
  }

  template <class Engine>
  void on_begin(Engine& engine, std::uint32_t flow) {
    if (flow >= states_.size()) states_.resize(flow + 1);
    State& s = states_[flow];
    s = State{};
    s.rate = engine.queue_pair(flow).rate;
    if (p_->multi_rate) {
      if (flow >= hop_rates_.size()) hop_rates_.resize(flow + 1);
      hop_rates_[flow].fill(HopRate{1, s.rate, 0});
    }
  }
  template <class Engine>
  void on_mark(Engine&, std::uint32_t) {}
  template <class Engine>
  bool on_timer(Engine&, const Event&) {
    return false;
  }
  void on_finish(std::uint32_t) {}

  template <class Engine>
  void on_ack(Engine& engine, std::uint32_t flow, const AckInfo& ack) {
    State& s = states_[flow];
    const bool full = ack.seq > s.last_seq;
    if (!full && !p_->fast_react) return;
    const auto next = static_cast<std::uint32_t>(engine.queue_pair(flow).snd_nxt);
    const bool usable = ack.int_hops <= p_->int_max_hops;
    if (s.last_seq == 0) {
      s.last_seq = next;
      if (usable) store_records(s, ack);
      return;
    }
    if (usable) update(engine, flow, s, ack, full);
    if (full && next > s.last_seq) s.last_seq = next;
  }

 private:
  struct State {
    RateBps rate = 0;  // the committed rate
    double u = 1;
    std::uint32_t stage = 0;
    std::uint32_t last_seq = 0;
    IntRecords records{};  // by hop, the last ones seen
  };
  // With one rate per hop.
  struct HopRate {
    double u = 1;
    RateBps rate = 0;
    std::uint32_t stage = 0;
  };
  using HopRates = std::array<HopRate, kMaxIntSlots>;
  struct Reaction {
    RateBps rate;
    std::uint32_t stage;
  };

  static void store_records(State& s, const AckInfo& ack) {
    for (std::size_t i = 0; i < ack.int_hops; ++i) s.records[i] = (*ack.records)[i];
  }

  // Rate divided by utilisation / eta, plus the additive step; a quotient that is not finite or
  // beyond the line rate ends at the line rate.
  Reaction react(RateBps from, double u, std::uint32_t stage, RateBps max_rate) const {
    const double c = u / p_->u_target;
    Reaction r{};
    if (c >= 1 || stage >= p_->mi_thresh) {
      const double quotient = static_cast<double>(from) / c;
      r.rate = quotient < static_cast<double>(max_rate) ? static_cast<RateBps>(quotient) + p_->rate_ai_bps
                                                        : max_rate;
      r.stage = 0;
    } else {
      r.rate = from + p_->rate_ai_bps;
      r.stage = stage + 1;
    }
    r.rate = std::min(std::max(r.rate, p_->min_rate_bps), max_rate);
    return r;
  }

  // Utilisation of one hop since its last record: bytes sent against capacity, plus queue.
  double utilisation(const IntRecord& now, const IntRecord& before, std::uint64_t elapsed, RateBps line_rate,
                     const QueuePair& qp) const {
    const std::uint64_t units = (now.bytes() - before.bytes()) & 0xFFFFF;
    const std::uint64_t sent = units * 128 * p_->int_multi;
    const double tx_rate = static_cast<double>(sent) * 8.0 / (static_cast<double>(elapsed) * 1e-9);
    const auto queue =
        static_cast<double>(std::uint64_t{std::min(now.queue(), before.queue())} * 80 * p_->int_multi);
    const auto line = static_cast<double>(line_rate);
    return tx_rate / line + queue * static_cast<double>(qp.max_rate) / line / static_cast<double>(qp.window);
  }

  static double smooth(double old, double sample, std::uint64_t elapsed, TimeNs t) {
    return (old * static_cast<double>(t - elapsed) + sample * static_cast<double>(elapsed)) /
           static_cast<double>(t);
  }

  template <class Engine>
  void update(Engine& engine, std::uint32_t flow, State& s, const AckInfo& ack, bool full) {
    const QueuePair& qp = engine.queue_pair(flow);
    const TimeNs t = qp.base_rtt_ns;
    double largest = 0;
    std::uint64_t largest_elapsed = 0;
    std::uint32_t used = 0;  // bit per hop
    for (std::uint32_t i = 0; i < ack.int_hops; ++i) {
      const IntRecord record = (*ack.records)[i];
      if (p_->sample_feedback && record.queue() == 0 && !full) continue;
      used |= 1U << i;
      std::uint64_t elapsed = (record.time() - s.records[i].time()) & 0xFFFFFF;
      const double u = utilisation(record, s.records[i], elapsed, engine.int_rate(flow, i), qp);
      if (!p_->multi_rate) {
        if (u > largest) {
          largest = u;
          largest_elapsed = elapsed;
        }
      } else {
        elapsed = std::min<std::uint64_t>(elapsed, t);
        double& smoothed = hop_rates_[flow][i].u;
        smoothed = smooth(smoothed, u, elapsed, t);
      }
      s.records[i] = record;
    }
    if (used == 0 && !p_->multi_rate) return;
    if (p_->multi_rate) {
      react_per_hop(engine, flow, s, used, ack.int_hops, full);
      return;
    }
    largest_elapsed = std::min<std::uint64_t>(largest_elapsed, t);
    s.u = smooth(s.u, largest, largest_elapsed, t);
    const Reaction r = react(s.rate, s.u, s.stage, qp.max_rate);
    engine.change_rate(flow, r.rate);
    if (full) {
      s.rate = r.rate;
      s.stage = r.stage;
    }
  }

  template <class Engine>
  void react_per_hop(Engine& engine, std::uint32_t flow, State& s, std::uint32_t used, std::uint32_t hops,
                     bool full) {
    HopRates& hops_of = hop_rates_[flow];
    const RateBps max_rate = engine.queue_pair(flow).max_rate;
    RateBps rate = max_rate;
    std::array<Reaction, kMaxIntSlots> reactions{};
    for (std::uint32_t i = 0; i < hops; ++i) {
      if ((used >> i & 1U) == 0) {
        rate = std::min(rate, hops_of[i].rate);
        continue;
      }
      reactions[i] = react(hops_of[i].rate, hops_of[i].u, hops_of[i].stage, max_rate);
      rate = std::min(rate, reactions[i].rate);
    }
    if (used == 0) return;
    engine.change_rate(flow, rate);
    if (!full) return;
    s.rate = rate;
    for (std::uint32_t i = 0; i < hops; ++i) {
      if ((used >> i & 1U) == 0) continue;
      hops_of[i].rate = reactions[i].rate;
      hops_of[i].stage = reactions[i].stage;
    }
  }

  const NetworkParams* p_;
  std::vector<State> states_;
  std::vector<HopRates> hop_rates_;  // by flow, with one rate per hop
};

}  // namespace hpcmoe
