// The exact binomial distribution, for tests of hit rates with fixed seeds.
#pragma once

#include <cmath>
#include <cstdint>

namespace ddproof::test {

// P(X <= hits) for X ~ Binomial(runs, p). Requires: 0 < p < 1.
inline double at_most(std::uint64_t hits, std::uint64_t runs, double p) {
  const auto n = static_cast<double>(runs);
  double sum = 0;
  for (std::uint64_t i = 0; i <= hits && i <= runs; ++i) {
    const auto x = static_cast<double>(i);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                    x * std::log(p) + (n - x) * std::log1p(-p));
  }
  return sum;
}

// P(X >= hits).
inline double at_least(std::uint64_t hits, std::uint64_t runs, double p) {
  return at_most(runs - hits, runs, 1 - p);
}

}  // namespace ddproof::test
