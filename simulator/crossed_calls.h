// Ranks that called on different groups: two calls, each missing ranks that wait in the other one.
//
// Such ranks can never go on, like those of a deadlock, but what is wrong with them is what they
// called: "mismatch" is the verdict, and who is not where most are is the odd one.
#pragma once

#include <optional>
#include <vector>

#include "simulator/wait_graph.h"

namespace ddproof::sim {

// Two calls of two groups cross when nobody leaves either before all its ranks have come; when each
// misses ranks; when all of these wait in the other call; and when one of them on each side waits
// in nothing else, so that whatever others do does not help. A circle of three calls or more is
// none.
//
// Returns the ranks to blame, ascending, of all pairs that cross: who misses a call in which more
// than half of its ranks wait; there may be none. Nothing when no two calls cross.
// Requires: `waits` are those of ranks that are stuck, and no message of theirs was lost.
std::optional<std::vector<int>> find_crossed_calls(const std::vector<RankWait>& waits);

}  // namespace ddproof::sim
