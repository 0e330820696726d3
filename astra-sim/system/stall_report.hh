// What keeps a rank from finishing, in words for the user.
#pragma once

#include <deque>
#include <vector>

#include "system/message_matcher.hh"
#include "system/rank.hh"
#include "system/system_layer.hh"

namespace hpcmoe {

// For every unfinished rank its nodes in flight, or when there are none its first node that did
// not run.
std::vector<StuckNode> stuck_nodes(const std::deque<Rank>& ranks, const SystemParams& params,
                                   const MessageMatcher& matcher);

}  // namespace hpcmoe
