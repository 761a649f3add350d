#include "reference/optim/zero_partition.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace ddproof {

std::vector<int> partition_parameters(std::span<const std::int64_t> counts, int world_size) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return counts[i]; });
  std::vector<std::int64_t> totals(static_cast<std::size_t>(world_size));
  std::vector<int> owners(counts.size());
  for (const std::size_t i : order) {
    const auto smallest = std::ranges::min_element(totals);
    *smallest += counts[i];
    owners[i] = static_cast<int>(smallest - totals.begin());
  }
  return owners;
}

}  // namespace ddproof
