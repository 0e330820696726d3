// INT records of the packets in the network.
#pragma once

#include <cstdint>
#include <vector>

#include "core/huge_pages.hh"
#include "network/congestion/ack_info.hh"

namespace hpcmoe {

class IntPool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      records_.emplace_back();
      return static_cast<std::uint32_t>(records_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give(std::uint32_t index) { free_.push_back(index); }
  IntRecords& operator[](std::uint32_t index) { return records_[index]; }

 private:
  Pool<IntRecords> records_;
  std::vector<std::uint32_t> free_;
};

}  // namespace hpcmoe
