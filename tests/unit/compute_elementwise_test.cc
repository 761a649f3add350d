// Activations, pooling, axpy, and the project's own exp and log.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "reference/compute/cpu.h"
#include "reference/compute/exp_log.h"
#include "tests/unit/naive_layers.h"

namespace ddproof::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Relu, KeepsPositiveValuesAndNan) {
  Cpu<float> cpu;
  const Values<float> x = {-1.5f, -0.0f, 0.0f, 2.5f, kNan, -kInfinity, kInfinity};
  Values<float> y(x.size());
  cpu.relu_forward(x.data(), y.data(), static_cast<Index>(x.size()));
  EXPECT_EQ(Values<float>(y.begin(), y.begin() + 4), (Values<float>{0, 0, 0, 2.5f}));
  EXPECT_FALSE(std::signbit(y[1]));
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 0);
  EXPECT_EQ(y[6], kInfinity);
}

TEST(Relu, PassesTheGradientWhereTheOutputIsPositive) {
  Cpu<float> cpu;
  const Values<float> y = {0, 2.5f, 0, 1e-40f};
  Values<float> gradient = {1, 2, kNan, 4};
  cpu.relu_backward(y.data(), gradient.data(), gradient.data(), 4);
  EXPECT_EQ(gradient, (Values<float>{0, 2, 0, 4}));
}

// From the definition, at lengths around one and two rounds of the lanes.
template <class T>
void expect_lane_sums(LaneSum kind, Index count) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(count));
  const Values<T> x = random_values<T>(engine, count);
  Values<T> expected(kSumLanes), sums(kSumLanes, T(7));
  for (Index i = 0; i < count; ++i) {
    T& sum = expected[static_cast<std::size_t>(i % kSumLanes)];
    const T value = x[static_cast<std::size_t>(i)];
    sum = std::fma(kind == LaneSum::kSquares ? value : T(0), value, sum);
  }
  Cpu<T> cpu;
  cpu.lane_sums(kind, x.data(), sums.data(), count);
  EXPECT_EQ(sums, expected) << count;
}

TEST(LaneSums, EveryLaneIsOneChain) {
  for (const Index count : {0, 1, 9, 1023, 1024, 1025, 2051, 5000}) {
    expect_lane_sums<float>(LaneSum::kSquares, count);
    expect_lane_sums<double>(LaneSum::kSquares, count);
    expect_lane_sums<float>(LaneSum::kZeros, count);
  }
}

TEST(LaneSums, ZerosTellWhatIsNotFinite) {
  Cpu<float> cpu;
  Values<float> x(3000, 1e38f);  // whose squares are not finite
  for (const float odd : {kNan, kInfinity, -kInfinity}) {
    x[2500] = odd;
    Values<float> sums(kSumLanes);
    cpu.lane_sums(LaneSum::kZeros, x.data(), sums.data(), static_cast<Index>(x.size()));
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      EXPECT_EQ(std::isnan(sums[lane]), lane == 2500 - 2 * kSumLanes) << lane;
    }
  }
}

struct PoolResult {
  Values<float> y, dx;
};

PoolResult pool(const Pool2dShape& s, Isa isa, const Values<float>& x, const Values<float>& dy) {
  Cpu<float> cpu(isa);
  PoolResult r{Values<float>(dy.size()), Values<float>(x.size())};
  cpu.max_pool2d_forward(s, x.data(), r.y.data());
  cpu.max_pool2d_backward(s, x.data(), dy.data(), r.dx.data());
  return r;
}

// From the definition: PyTorch's comparison is value > best or value is NaN.
PoolResult naive_pool(const Pool2dShape& s, const Values<float>& x, const Values<float>& dy) {
  PoolResult r{{}, Values<float>(x.size())};
  for (Index p = 0; p < s.planes; ++p) {
    for (Index oh = 0; oh < s.out_height(); ++oh) {
      for (Index ow = 0; ow < s.out_width(); ++ow) {
        Index best = -1;
        for (Index k = 0; k < s.kernel * s.kernel; ++k) {
          const Index row = oh * s.stride + k / s.kernel;
          const Index index = (p * s.height + row) * s.width + ow * s.stride + k % s.kernel;
          if (best < 0 || at(x, index) > at(x, best) || std::isnan(at(x, index))) best = index;
        }
        at(r.dx, best) += at(dy, static_cast<Index>(r.y.size()));
        r.y.push_back(at(x, best));
      }
    }
  }
  return r;
}

bool equal_with_nans(const Values<float>& a, const Values<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
  }
  return true;
}

TEST(MaxPool, EqualsItsDefinitionWithTiesAndNans) {
  const std::vector<Pool2dShape> shapes = {{3, 28, 28, 2, 2},  {2, 14, 14, 2, 2}, {2, 7, 9, 2, 2},
                                           {1, 9, 8, 3, 2},    {2, 5, 5, 2, 1},   {1, 4, 4, 4, 4},
                                           {1, 10, 150, 2, 2}, {2, 11, 11, 3, 4}};
  std::mt19937_64 engine(21);
  for (const Pool2dShape& s : shapes) {
    Values<float> x = random_integers<float>(engine, s.planes * s.height * s.width);
    for (std::size_t i = 0; i < x.size(); i += 13) x[i] = kNan;
    const Values<float> dy =
        random_integers<float>(engine, s.planes * s.out_height() * s.out_width());
    const PoolResult expected = naive_pool(s, x, dy);
    for (Isa isa : supported_isas()) {
      const PoolResult actual = pool(s, isa, x, dy);
      EXPECT_TRUE(equal_with_nans(actual.y, expected.y)) << to_string(isa) << " " << s.width;
      EXPECT_TRUE(equal_with_nans(actual.dx, expected.dx)) << to_string(isa) << " " << s.width;
    }
  }
}

TEST(Axpy, IsOneFusedMultiplyAddPerElement) {
  std::mt19937_64 engine(22);
  for (Index count : {0, 1, 7, 8, 9, 31, 64, 100}) {
    const auto x = random_values<float>(engine, count);
    const auto y = random_values<float>(engine, count);
    Values<float> expected = y;
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = std::fma(0.3f, x[i], y[i]);
    for (Isa isa : supported_isas()) {
      Cpu<float> cpu(isa);
      Values<float> actual = y;
      cpu.axpy(actual.data(), x.data(), 0.3f, count);
      EXPECT_EQ(actual, expected) << to_string(isa) << " " << count;
    }
  }
}

// |actual - exact| in units of the last place of the result.
double error_in_ulps(double actual, long double exact) {
  const double rounded = static_cast<double>(exact);
  const double ulp = std::nextafter(std::fabs(rounded), HUGE_VAL) - std::fabs(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / ulp);
}

// The reference is libm's 64-bit-mantissa function, itself within 1 ulp of its type: 2^-11 here.
TEST(FixedExp, IsWithinOneUlp) {
  std::mt19937_64 engine(23);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = (static_cast<double>(engine() >> 11) * 0x1p-53 - 0.5) * 1400;
    const double near_zero = x * 0x1p-12;
    worst = std::max(worst, error_in_ulps(fixed_exp(x), std::exp(static_cast<long double>(x))));
    worst = std::max(
        worst, error_in_ulps(fixed_exp(near_zero), std::exp(static_cast<long double>(near_zero))));
  }
  std::printf("worst error of exp: %.4f ulp\n", worst);
  EXPECT_LE(worst, 1.0 + 0x1p-10);
}

TEST(FixedExp, CoversTheEdgesOfItsRange) {
  EXPECT_EQ(fixed_exp(0.0), 1.0);
  EXPECT_EQ(fixed_exp(-0.0), 1.0);
  EXPECT_EQ(fixed_exp(710.0), HUGE_VAL);
  EXPECT_EQ(fixed_exp(HUGE_VAL), HUGE_VAL);
  EXPECT_EQ(fixed_exp(-746.0), 0.0);
  EXPECT_EQ(fixed_exp(-HUGE_VAL), 0.0);
  EXPECT_TRUE(std::isnan(fixed_exp(std::nan(""))));

  for (double x : {709.78, -708.0, -709.5, -720.0, -740.0, -745.0}) {
    EXPECT_LE(error_in_ulps(fixed_exp(x), std::exp(static_cast<long double>(x))), 1.0 + 0x1p-10)
        << x;
  }
  EXPECT_EQ(fixed_exp(-104.0f), 0.0f);
  EXPECT_EQ(fixed_exp(89.0f), kInfinity);
}

TEST(FixedLog, IsWithinOneUlp) {
  std::mt19937_64 engine(24);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double near_one = 0.5 + 1.5 * (static_cast<double>(engine() >> 11) * 0x1p-53);
    const double x = std::ldexp(near_one, static_cast<int>(engine() % 2000) - 1000);
    worst = std::max(worst, error_in_ulps(fixed_log(x), std::log(static_cast<long double>(x))));
    worst = std::max(
        worst, error_in_ulps(fixed_log(near_one), std::log(static_cast<long double>(near_one))));
  }
  std::printf("worst error of log: %.4f ulp\n", worst);
  EXPECT_LE(worst, 1.0 + 0x1p-10);
  EXPECT_EQ(fixed_log(1.0), 0.0);
  EXPECT_EQ(fixed_log(HUGE_VAL), HUGE_VAL);
  EXPECT_TRUE(std::isnan(fixed_log(std::nan(""))));
}

}  // namespace
}  // namespace ddproof::testing
