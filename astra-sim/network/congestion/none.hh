// No rate control: line rate, constant window, marks ignored (CC_MODE 0, 12 and others).
#pragma once

#include "network/congestion/ack_info.hh"
#include "network/parameters.hh"

namespace hpcmoe {

struct NoControl {
  static constexpr bool kReadsInt = false;
  explicit NoControl(const NetworkParams&) {}
  static std::uint32_t int_bytes(const NetworkParams&) { return 0; }
  template <class Engine>
  void on_begin(Engine&, std::uint32_t) {}
  template <class Engine>
  void on_mark(Engine&, std::uint32_t) {}
  template <class Engine>
  void on_ack(Engine&, std::uint32_t, const AckInfo&) {}
  template <class Engine>
  bool on_timer(Engine&, const Event&) {
    return false;
  }
  void on_finish(std::uint32_t) {}
};

}  // namespace hpcmoe
