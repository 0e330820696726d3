// Refuses inputs that do not fit together, or with which a run could never end, before it starts.
#pragma once

#include <vector>

#include "system/collective_layout.hh"
#include "system/parameters.hh"
#include "workload/trace.hh"

namespace hpcmoe {

// All throw InputError. Parameters have to be right before layouts can be built from them, and
// both before the traces can be judged.
void check_parameters(const SystemParams& params, std::size_t ranks);
void check_traces(const SystemParams& params, const CollectiveLayouts& layouts,
                  const std::vector<RankTrace>& traces);

}  // namespace hpcmoe
