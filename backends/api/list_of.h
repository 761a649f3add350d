// Ranks in messages.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "backends/api/time.h"

namespace ddproof {

// "rank 3", "ranks 1, 3".
inline std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

// "ranks 1, 3 did not come within 300 ms".
inline std::string did_not_come(const std::vector<int>& ranks, Duration timeout) {
  const auto waited = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return list_of(ranks) + " did not come within " + std::to_string(waited) + " ms";
}

}  // namespace ddproof
