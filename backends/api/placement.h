// Where the ranks of a world are: which node each of them shares with which others.
//
// Values. Threads: any.
#pragma once

#include <vector>

namespace ddproof {

// The node of each rank, 0 or more; empty: all are on node 0. A node may have no rank.
using Placement = std::vector<int>;

// Fills one node after the other, as torchrun and `mpirun --map-by slot` do. Requires:
// ranks_per_node >= 1.
Placement place_in_blocks(int world_size, int ranks_per_node);
// Rank r is on nodes[r modulo their number]; {0, 1} takes two nodes in turns, as `mpirun --map-by
// node` does. Requires: there is a node.
Placement place_in_turns(int world_size, const std::vector<int>& nodes);

// Requires of these: the placement is empty or has this rank, or so many ranks.
int node_of(const Placement& placement, int rank);
// LOCAL_RANK: how many lower ranks its node has.
int local_rank_of(const Placement& placement, int rank);
// LOCAL_WORLD_SIZE: how many ranks its node has.
int local_size_of(const Placement& placement, int world_size, int rank);

}  // namespace ddproof
