// Ports that each message's packets leave by, hop by hop: data, then ACKs. Half as wide where port numbers
// allow it, because with many messages under way every look-up comes from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/huge_pages.hh"
#include "core/types.hh"

namespace hpcmoe {

class PathTable {
 public:
  // `longest`: most ports of one path.
  PathTable(std::size_t ports, std::uint32_t longest)
      : stride_(longest), narrow_(ports <= std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1) {}

  void resize(std::size_t flows) {
    if (narrow_) {
      narrow_ports_.resize(flows * 2 * stride_);
    } else {
      wide_ports_.resize(flows * 2 * stride_);
    }
  }
  void set(std::uint32_t flow, bool is_ack, const std::vector<std::uint32_t>& ports) {
    for (std::uint32_t hop = 0; hop < ports.size(); ++hop) {
      const std::size_t i = index(flow, is_ack, hop);
      if (narrow_) {
        narrow_ports_[i] = static_cast<std::uint16_t>(ports[hop]);
      } else {
        wide_ports_[i] = ports[hop];
      }
    }
  }

  // Hop 0 is the sending host's port.
  std::uint32_t port(std::uint32_t flow, bool is_ack, std::uint32_t hop) const {
    const std::size_t i = index(flow, is_ack, hop);
    return narrow_ ? narrow_ports_[i] : wide_ports_[i];
  }
  HPCMOE_INLINE void prefetch(std::uint32_t flow, bool is_ack, std::uint32_t hop) const {
    const std::size_t i = index(flow, is_ack, hop);
    if (narrow_) {
      __builtin_prefetch(&narrow_ports_[i]);
    } else {
      __builtin_prefetch(&wide_ports_[i]);
    }
  }

 private:
  std::size_t index(std::uint32_t flow, bool is_ack, std::uint32_t hop) const {
    return (std::size_t{flow} * 2 + (is_ack ? 1 : 0)) * stride_ + hop;
  }

  std::uint32_t stride_;
  bool narrow_;
  Pool<std::uint16_t> narrow_ports_;
  Pool<std::uint32_t> wide_ports_;
};

}  // namespace hpcmoe
