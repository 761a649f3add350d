// Which rank keeps which parameter's optimizer state: ZeroRedundancyOptimizer's partition
// (SEMANTICS section 11). Rajbhandari et al. 2020, "ZeRO", stage 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ddproof {

// By parameter, the rank that owns it, given their numbers of elements: from the largest down (in
// order where equal), each goes to the rank that has the fewest elements so far, the lowest where
// equal. A rank may own none. Requires: world_size >= 1.
std::vector<int> partition_parameters(std::span<const std::int64_t> counts, int world_size);

}  // namespace ddproof
