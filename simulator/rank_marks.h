// A set of ranks that only grows.
#pragma once

#include <cstddef>
#include <vector>

namespace ddproof::sim {

class RankMarks {
 public:
  explicit RankMarks(std::size_t ranks) : has_(ranks, 0) {}

  // Requires: 0 <= rank < ranks.
  bool has(int rank) const { return has_[static_cast<std::size_t>(rank)] != 0; }
  // False when it was there before. Requires: 0 <= rank < ranks.
  bool add(int rank) {
    char& mark = has_[static_cast<std::size_t>(rank)];
    if (mark != 0) return false;
    mark = 1;
    return true;
  }
  // Ascending.
  std::vector<int> members() const {
    std::vector<int> result;
    for (std::size_t rank = 0; rank < has_.size(); ++rank) {
      if (has_[rank] != 0) result.push_back(static_cast<int>(rank));
    }
    return result;
  }

 private:
  std::vector<char> has_;
};

}  // namespace ddproof::sim
