#include "backends/api/placement.h"

#include <algorithm>

namespace ddproof {

Placement place_in_blocks(int world_size, int ranks_per_node) {
  Placement placement;
  for (int rank = 0; rank < world_size; ++rank) placement.push_back(rank / ranks_per_node);
  return placement;
}

Placement place_in_turns(int world_size, const std::vector<int>& nodes) {
  Placement placement;
  for (int rank = 0; rank < world_size; ++rank) {
    placement.push_back(nodes[static_cast<std::size_t>(rank) % nodes.size()]);
  }
  return placement;
}

int node_of(const Placement& placement, int rank) {
  return placement.empty() ? 0 : placement[static_cast<std::size_t>(rank)];
}

int local_rank_of(const Placement& placement, int rank) {
  if (placement.empty()) return rank;
  const auto self = placement.begin() + rank;
  return static_cast<int>(std::count(placement.begin(), self, *self));
}

int local_size_of(const Placement& placement, int world_size, int rank) {
  if (placement.empty()) return world_size;
  return static_cast<int>(std::ranges::count(placement, node_of(placement, rank)));
}

}  // namespace ddproof
