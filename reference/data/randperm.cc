#include "reference/data/randperm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "backends/api/check.h"

namespace ddproof {
namespace internal {

template <class Index>
std::vector<Index> forward_shuffle(std::int64_t n, std::mt19937& generator) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  // The targets of a block of swaps are drawn first and prefetched: at millions of samples nearly
  // every swap misses the caches, and this way the misses overlap.
  constexpr std::int64_t kBlock = 64;
  std::array<std::size_t, kBlock> targets{};
  for (std::int64_t begin = 0; begin < n - 1; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n - 1);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto draw = static_cast<std::uint32_t>(generator());
      // Lengths of 2^32 and more never come here, but the 64-bit division keeps any length right.
      const std::uint64_t left = static_cast<std::uint64_t>(n - i);
      const std::uint64_t skip = left <= std::numeric_limits<std::uint32_t>::max()
                                     ? draw % static_cast<std::uint32_t>(left)
                                     : draw;
      targets[static_cast<std::size_t>(i - begin)] = static_cast<std::size_t>(i) + skip;
      __builtin_prefetch(&order[static_cast<std::size_t>(i) + skip], 1);
    }
    for (std::int64_t i = begin; i < end; ++i) {
      std::swap(order[static_cast<std::size_t>(i)],
                order[targets[static_cast<std::size_t>(i - begin)]]);
    }
  }
  return order;
}

template <class Index>
std::vector<Index> inside_out_shuffle(std::int64_t n, std::mt19937& generator) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t high = generator();
    const std::uint64_t low = generator();
    const std::size_t target = ((high << 32) | low) % (i + 1);
    order[i] = static_cast<Index>(i);
    std::swap(order[i], order[target]);
  }
  return order;
}

template std::vector<std::uint32_t> forward_shuffle(std::int64_t, std::mt19937&);
template std::vector<std::int64_t> forward_shuffle(std::int64_t, std::mt19937&);
template std::vector<std::uint32_t> inside_out_shuffle(std::int64_t, std::mt19937&);
template std::vector<std::int64_t> inside_out_shuffle(std::int64_t, std::mt19937&);

}  // namespace internal

template <class Index>
std::vector<Index> randperm(std::int64_t n, std::mt19937& generator) {
  DDPROOF_CHECK(n >= 0);
  DDPROOF_CHECK(n == 0 || static_cast<std::uint64_t>(n - 1) <= std::numeric_limits<Index>::max());
  return n < kRandpermWideLength ? internal::forward_shuffle<Index>(n, generator)
                                 : internal::inside_out_shuffle<Index>(n, generator);
}

template <class Index>
std::vector<Index> randperm(std::int64_t n, std::uint64_t seed) {
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  return randperm<Index>(n, generator);
}

template std::vector<std::uint32_t> randperm(std::int64_t, std::mt19937&);
template std::vector<std::int64_t> randperm(std::int64_t, std::mt19937&);
template std::vector<std::uint32_t> randperm(std::int64_t, std::uint64_t);
template std::vector<std::int64_t> randperm(std::int64_t, std::uint64_t);

}  // namespace ddproof
