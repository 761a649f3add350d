// The arithmetic by itself: what the contract tests see only through a whole all_reduce.
#include "backends/api/reduce_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace ddproof {
namespace {

template <class T>
T reduced(ReduceOp op, T a, T b) {
  T out{};
  reduce_function(element_of<T>(), op)(&out, &a, &b, 1);
  return out;
}

TEST(ReduceFunctions, MinAndMaxAreSymmetricInEveryBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{nan, -nan, 0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY};
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (float a : values) {
      for (float b : values) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(reduced(op, a, b)),
                  std::bit_cast<std::uint32_t>(reduced(op, b, a)))
            << a << " " << b;
        EXPECT_EQ(reduced(op, BFloat16(a), BFloat16(b)), reduced(op, BFloat16(b), BFloat16(a)));
        EXPECT_EQ(reduced(op, Float16(a), Float16(b)), reduced(op, Float16(b), Float16(a)));
      }
    }
  }
}

TEST(ReduceFunctions, TheResultMayReplaceEitherInput) {
  const ReduceFunction sum = reduce_function(element_of<float>(), ReduceOp::kSum);
  std::vector<float> a{1, 2, 3}, b{10, 20, 30};
  sum(a.data(), a.data(), b.data(), 3);
  EXPECT_EQ(a, (std::vector<float>{11, 22, 33}));
  sum(b.data(), a.data(), b.data(), 3);
  EXPECT_EQ(b, (std::vector<float>{21, 42, 63}));
}

struct Complex {
  static constexpr std::string_view kElementName = "complex";
  double re = 0, im = 0;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend bool operator==(Complex a, Complex b) = default;
};

TEST(ReduceFunctions, ACustomSumMayReplaceEitherInputOrNone) {
  const ReduceFunction sum = reduce_function(element_of<Complex>(), ReduceOp::kSum);
  std::vector<Complex> a{{1, 2}}, b{{10, 20}}, out(1);
  const Complex expected{11, 22};
  sum(out.data(), a.data(), b.data(), 1);
  EXPECT_EQ(out[0], expected);
  EXPECT_EQ(a[0], (Complex{1, 2}));
  EXPECT_EQ(b[0], (Complex{10, 20}));
  out = b;
  sum(out.data(), a.data(), out.data(), 1);
  EXPECT_EQ(out[0], expected);
  sum(a.data(), a.data(), b.data(), 1);
  EXPECT_EQ(a[0], expected);
}

TEST(ReduceFunctions, DividingByMoreThanTheTypeHoldsIsNoOverflow) {
  std::vector<std::uint8_t> data{255};
  divide(Buffer::of(std::span(data)), 256);
  EXPECT_EQ(data[0], 0);
  std::vector<std::int8_t> negative{-128};
  divide(Buffer::of(std::span(negative)), 1000);
  EXPECT_EQ(negative[0], 0);
}

TEST(ReduceFunctions, DividingTheSmallestIntegersTruncates) {
  std::vector<std::int64_t> data{std::numeric_limits<std::int64_t>::min(), -7, 7};
  divide(Buffer::of(std::span(data)), 2);
  EXPECT_EQ(data, (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min() / 2, -3, 3}));
}

}  // namespace
}  // namespace ddproof
