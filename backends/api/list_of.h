// Ranks in messages: "rank 3", "ranks 1, 3".
#pragma once

#include <string>
#include <vector>

namespace ddproof {

inline std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace ddproof
