// Who is in which part of a group that is split by colors and keys. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ddproof {

// The ranks with this color, ordered by (key, rank): the new group's ranks 0, 1, ...
// `colors_and_keys` holds a color and a key of each rank.
inline std::vector<int> members_of_part(std::span<const std::int64_t> colors_and_keys, int color) {
  std::vector<int> members;
  for (std::size_t rank = 0; 2 * rank < colors_and_keys.size(); ++rank) {
    if (colors_and_keys[2 * rank] == color) members.push_back(static_cast<int>(rank));
  }
  std::ranges::stable_sort(members, {}, [&](int rank) {
    return colors_and_keys[2 * static_cast<std::size_t>(rank) + 1];
  });
  return members;
}

}  // namespace ddproof
