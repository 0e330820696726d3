// Traces in which every node waits for the one before it, and how they repeat.
#pragma once

#include <cstdint>

#include "workload/trace.hh"

namespace hpcmoe {

// One node after the other, compute and collectives only: all that a rank does later follows from
// where it stands.
bool is_chain(const RankTrace& trace);

// How many more times the nodes (from, to] follow after `to` with the same content, `from` and `to`
// being alike as well. Ids and layers
// may differ, but by one and the same step from each copy to the next.
std::uint64_t repeats_after(const RankTrace& trace, std::uint32_t from, std::uint32_t to);

// Whether after those repeats the trace ends with the beginning of one more: with all of it but a barrier
// and the computation `to` behind it. A stretch that came to rest at that barrier then shows how the trace
// ends.
bool ends_as_repeat(const RankTrace& trace, std::uint32_t from, std::uint32_t to);

}  // namespace hpcmoe
