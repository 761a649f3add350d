// Who is in which part of a group that is split by colors and keys.
//
// Threads: as the group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/api/process_group.h"

namespace ddproof {

// Asks all ranks for their color and key. The ranks with this color, ordered by (key, rank): the
// new group's ranks 0, 1, ... A collective call of the group; throws what its all_gather throws.
inline std::vector<int> gather_part(ProcessGroup& group, int color, int key, CallSite site) {
  const std::vector<std::int64_t> mine{color, key};
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(ConstBuffer::of(mine), Buffer::of(all), {"split"}, site)->wait();
  std::vector<int> members;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (all[2 * static_cast<std::size_t>(rank)] == color) members.push_back(rank);
  }
  std::ranges::stable_sort(members, {},
                           [&](int rank) { return all[2 * static_cast<std::size_t>(rank) + 1]; });
  return members;
}

}  // namespace ddproof
