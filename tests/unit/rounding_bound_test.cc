// The bounds against the arithmetic they describe: never violated, and nearly reached where the
// number of terms is small, at gradient scales from 1e-20 to 1e12. Seeded; the references are
// summed in long double, whose own error is 2^-11 of a double's or less.
#include "reference/oracle/rounding_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/oracle/exact_inputs.h"

namespace ddproof {
namespace {

constexpr double kScales[] = {1, 1e-5, 1e-20, 1e12};

// Uniform in (-1, 1), all 53 bits drawn.
double uniform(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(mixed_bits(seed, a, b) >> 11) * 0x1p-52 - 1;
}

template <class T>
std::vector<T> drawn(std::uint64_t seed, std::uint64_t trial, int n, double scale) {
  std::vector<T> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(static_cast<T>(scale * uniform(seed, trial, static_cast<std::uint64_t>(i))));
  }
  return values;
}

template <class T>
T sequential_sum(const std::vector<T>& x) {
  T sum = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return sum;
}

template <class T>
T balanced_sum(std::vector<T> x) {
  while (x.size() > 1) {
    for (std::size_t i = 0; i < x.size() / 2; ++i) x[i] = x[2 * i] + x[2 * i + 1];
    if (x.size() % 2 == 1) x[x.size() / 2] = x.back();
    x.resize((x.size() + 1) / 2);
  }
  return x[0];
}

template <class T>
long double exact_sum(const std::vector<T>& x) {
  long double sum = 0;
  for (T value : x) sum += value;
  return sum;
}

template <class T>
double magnitude(const std::vector<T>& x) {
  double sum = 0;
  for (T value : x) sum += std::abs(static_cast<double>(value));
  return sum;
}

double ratio(long double error, double bound) {
  return static_cast<double>(std::abs(error)) / bound;
}

// The worst |error|/bound over many trials.
template <class Trial>
double worst(int trials, const Trial& trial) {
  double largest = 0;
  for (int t = 0; t < trials; ++t) {
    largest = std::max(largest, trial(static_cast<std::uint64_t>(t)));
  }
  return largest;
}

template <class T>
class RoundingBound : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(RoundingBound, Reals);

TYPED_TEST(RoundingBound, OfASequentialSumHoldsAndIsNearlyReached) {
  for (double scale : kScales) {
    const double largest = worst(20000, [&](std::uint64_t t) {
      const auto x = drawn<TypeParam>(1, t, 4, scale);
      return ratio(sequential_sum(x) - exact_sum(x),
                   sum_bound(sequential_height(4), kPrecisionOf<TypeParam>, magnitude(x)));
    });
    EXPECT_LE(largest, 1) << "scale " << scale;
    EXPECT_GE(largest, 0.4) << "scale " << scale;
  }
}

TYPED_TEST(RoundingBound, OfABalancedSumHoldsAndIsNearlyReached) {
  for (double scale : kScales) {
    const double largest = worst(20000, [&](std::uint64_t t) {
      const auto x = drawn<TypeParam>(2, t, 8, scale);
      return ratio(balanced_sum(x) - exact_sum(x),
                   sum_bound(balanced_height(8), kPrecisionOf<TypeParam>, magnitude(x)));
    });
    EXPECT_LE(largest, 1) << "scale " << scale;
    EXPECT_GE(largest, 0.4) << "scale " << scale;
  }
}

TYPED_TEST(RoundingBound, OfALongSumHolds) {
  const double largest = worst(200, [&](std::uint64_t t) {
    const auto x = drawn<TypeParam>(3, t, 512, 1);
    return ratio(sequential_sum(x) - exact_sum(x),
                 sum_bound(sequential_height(512), kPrecisionOf<TypeParam>, magnitude(x)));
  });
  EXPECT_LE(largest, 1);
}

TYPED_TEST(RoundingBound, OfTwoSumsHoldsBetweenOrders) {
  for (double scale : kScales) {
    const double largest = worst(20000, [&](std::uint64_t t) {
      const auto x = drawn<TypeParam>(4, t, 8, scale);
      return ratio(sequential_sum(x) - balanced_sum(x),
                   two_sums_bound(7, 3, kPrecisionOf<TypeParam>, magnitude(x)));
    });
    EXPECT_LE(largest, 1) << "scale " << scale;
    EXPECT_GE(largest, 0.2) << "scale " << scale;
  }
}

TYPED_TEST(RoundingBound, OfAMeanHoldsForBothWaysToAverage) {
  for (int ranks : {1, 2, 3, 4, 7}) {
    for (double scale : kScales) {
      const auto reciprocal = static_cast<TypeParam>(1.0 / ranks);
      const double largest = worst(5000, [&](std::uint64_t t) {
        const auto x = drawn<TypeParam>(5, t, ranks, scale);
        auto scaled = x;
        for (TypeParam& value : scaled) value *= reciprocal;
        const long double exact = exact_sum(x) / ranks;
        const auto h = sequential_height(ranks);
        const auto& p = kPrecisionOf<TypeParam>;
        const auto n = static_cast<TypeParam>(ranks);
        return std::max(
            ratio(sequential_sum(x) / n - exact, mean_by_division_bound(h, ranks, p, magnitude(x))),
            ratio(sequential_sum(scaled) - exact,
                  mean_by_reciprocal_bound(h, ranks, p, magnitude(x))));
      });
      EXPECT_LE(largest, 1) << ranks << " ranks, scale " << scale;
    }
  }
}

TEST(RoundingBound, OfAMeanNeedsTheSecondRoundingForAReciprocal) {
  // ORACLES section 2: 1.71 u at W=7, where a true division stays below 1 u.
  const float reciprocal = 1.0f / 7;
  const double largest = worst(400000, [&](std::uint64_t t) {
    const auto x = static_cast<float>(uniform(6, t, 0));
    const double exact = static_cast<double>(x) / 7;
    return std::abs((x * reciprocal - exact) / exact) / kPrecisionOf<float>.unit_roundoff;
  });
  EXPECT_GT(largest, 1.5);
  EXPECT_LE(largest, 2.001);
}

TYPED_TEST(RoundingBound, OfADotProductHoldsFusedOrNot) {
  for (double scale : kScales) {
    for (int n : {1, 2, 8, 64}) {
      const double largest = worst(1000, [&](std::uint64_t t) {
        const auto x = drawn<TypeParam>(7, t, n, scale);
        const auto y = drawn<TypeParam>(8, t, n, scale);
        TypeParam fused = 0;
        TypeParam plain = 0;
        long double exact = 0;
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          fused = std::fma(x[i], y[i], fused);
          plain += x[i] * y[i];
          exact += static_cast<long double>(x[i]) * y[i];
          sum += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
        }
        const double bound = dot_product_bound(n, kPrecisionOf<TypeParam>, sum);
        return std::max(ratio(fused - exact, bound), ratio(plain - exact, bound));
      });
      EXPECT_LE(largest, 1) << n << " terms, scale " << scale;
    }
  }
}

// One update as reference/optim/sgd.h defines it, without fused operations: the more roundings.
template <class T>
struct Updated {
  T weight;
  T buffer;
};
template <class T>
Updated<T> update(const SgdStepMagnitudes& s, T w, T v, T gradient) {
  const T g = gradient + static_cast<T>(s.weight_decay) * w;
  const T fresh = static_cast<T>(1 - s.dampening);
  const T buffer = s.first_step ? g : static_cast<T>(s.momentum) * v + fresh * g;
  const T step = s.nesterov ? g + static_cast<T>(s.momentum) * buffer : buffer;
  return {w - static_cast<T>(s.lr) * step, buffer};
}

TYPED_TEST(RoundingBound, OfAnSgdStepHoldsForEveryRule) {
  for (int rule = 0; rule < 16; ++rule) {
    for (double scale : kScales) {
      SgdStepMagnitudes s{.lr = 0.125, .momentum = 0.75, .weight_decay = 0.0625};
      s.nesterov = (rule & 1) != 0;
      s.dampening = (rule & 2) != 0 ? 0.25 : 0;
      s.first_step = (rule & 4) != 0;
      if ((rule & 8) != 0) s.weight_decay = 0;
      const double largest = worst(2000, [&](std::uint64_t t) {
        const auto x = drawn<TypeParam>(9, t, 4, scale);
        const TypeParam other = x[2] + x[2] * static_cast<TypeParam>(1e-6 * uniform(10, t, 0));
        const auto a = update<TypeParam>(s, x[0], x[1], x[2]);
        const auto b = update<TypeParam>(s, x[0], x[1], other);
        s.weight = std::abs(x[0]);
        s.buffer = std::abs(x[1]);
        s.gradient = std::max(std::abs(x[2]), std::abs(other));
        s.gradient_bound = std::abs(static_cast<double>(x[2]) - static_cast<double>(other));
        return std::max(ratio(a.weight - b.weight, sgd_weight_bound(s, kPrecisionOf<TypeParam>)),
                        ratio(a.buffer - b.buffer, sgd_buffer_bound(s, kPrecisionOf<TypeParam>)));
      });
      EXPECT_LE(largest, 1) << "rule " << rule << ", scale " << scale;
    }
  }
}

TEST(RoundingBound, HeightsAreThoseOfTheTrees) {
  EXPECT_EQ(sequential_height(0), 0);
  EXPECT_EQ(sequential_height(1), 0);
  EXPECT_EQ(sequential_height(8), 7);
  EXPECT_EQ(balanced_height(1), 0);
  EXPECT_EQ(balanced_height(8), 3);
  EXPECT_EQ(balanced_height(9), 4);
  EXPECT_EQ(all_reduce_height(4, 8), 10);
}

TEST(RoundingBound, SaysNothingWhenTheTermsAreTooMany) {
  EXPECT_EQ(gamma(256, kPrecisionOf<BFloat16>), std::numeric_limits<double>::infinity());
  EXPECT_EQ(gamma(0, kPrecisionOf<float>), 0);
  EXPECT_NEAR(gamma(63, kPrecisionOf<BFloat16>), 0.33, 0.01);  // ORACLES: useless at W=64
}

}  // namespace
}  // namespace ddproof
