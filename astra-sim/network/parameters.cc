#include "network/parameters.hh"

#include <string>

namespace hpcmoe {

void check_parameters(const NetworkParams& p) {
  constexpr std::uint32_t kLargestPayload = 65000;
  if (p.payload_bytes == 0 || p.payload_bytes > kLargestPayload) {
    throw InputError("payload_bytes " + std::to_string(p.payload_bytes) + " is not within 1 .. " +
                     std::to_string(kLargestPayload));
  }
  if (p.l2_ack_interval_bytes == 0) throw InputError("l2_ack_interval_bytes must be at least 1");
  if (p.l2_chunk_bytes == 0 && (p.l2_ack_interval_bytes > 1 || p.l2_back_to_zero)) {
    throw InputError("l2_chunk_bytes 0 is allowed only with an ACK interval of 1 and no back-to-zero");
  }
  if (p.int_multi == 0) throw InputError("int_multi must be at least 1");
  if (p.min_rate_bps == 0) throw InputError("min_rate_bps must be at least 1 bit/s");
}

}  // namespace hpcmoe
