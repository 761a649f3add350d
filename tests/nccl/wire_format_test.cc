// Minimum and maximum of floats, as integers on the wire.
#include "backends/nccl/wire_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/api/half.h"

namespace ddproof::nccl {
namespace {

template <class T, class Key>
void expect_order_of(const std::vector<T>& ascending, DType dtype) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const WireFormat format = wire_format(dtype, op);
    ASSERT_EQ(format.element_bytes, sizeof(Key));
    std::vector<Key> keys(ascending.size());
    format.encode(keys.data(), ascending.data(), ascending.size());
    EXPECT_TRUE(std::ranges::is_sorted(keys)) << to_string(op);
    EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end()) << "two values are one number";
    std::vector<T> back(ascending.size());
    format.decode(back.data(), keys.data(), keys.size());
    EXPECT_EQ(std::memcmp(back.data(), ascending.data(), back.size() * sizeof(T)), 0);
  }
}

template <class T>
std::vector<T> values() {
  using Limits = std::numeric_limits<T>;
  return {-Limits::infinity(),
          Limits::lowest(),
          -1,
          -Limits::min(),
          -Limits::denorm_min(),
          -T(0),
          T(0),
          Limits::denorm_min(),
          Limits::min(),
          1,
          Limits::max(),
          Limits::infinity()};
}

TEST(NcclWireFormat, IntegersAreInTheOrderOfTheValues) {
  expect_order_of<float, std::int32_t>(values<float>(), DType::kFloat32);
  expect_order_of<double, std::int64_t>(values<double>(), DType::kFloat64);
}

// Every value that is no NaN, in the order of the values.
template <class Half>
std::vector<Half> all_halves() {
  std::vector<Half> all;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    if (!std::isnan(static_cast<float>(half))) all.push_back(half);
  }
  std::ranges::sort(all, [](Half a, Half b) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    return x == y ? std::signbit(x) && !std::signbit(y) : x < y;
  });
  return all;
}

TEST(NcclWireFormat, AllHalvesComeBackBitForBit) {
  expect_order_of<Float16, std::int32_t>(all_halves<Float16>(), DType::kFloat16);
  expect_order_of<BFloat16, std::int32_t>(all_halves<BFloat16>(), DType::kBFloat16);
}

TEST(NcclWireFormat, NanIsBeyondBothEnds) {
  const std::vector<float> nans{std::numeric_limits<float>::quiet_NaN(),
                                -std::numeric_limits<float>::quiet_NaN(),
                                std::bit_cast<float>(0x7f800001u)};
  const std::vector<float> ends{-std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::infinity()};
  const WireFormat least = wire_format(DType::kFloat32, ReduceOp::kMin);
  const WireFormat largest = wire_format(DType::kFloat32, ReduceOp::kMax);
  std::int32_t low = 0, high = 0, nan_low = 0, nan_high = 0;
  least.encode(&low, &ends[0], 1);
  largest.encode(&high, &ends[1], 1);
  for (const float& nan : nans) {
    least.encode(&nan_low, &nan, 1);
    largest.encode(&nan_high, &nan, 1);
    EXPECT_LT(nan_low, low);
    EXPECT_GT(nan_high, high);
    float back = 0;
    least.decode(&back, &nan_low, 1);
    EXPECT_TRUE(std::isnan(back));
    largest.decode(&back, &nan_high, 1);
    EXPECT_TRUE(std::isnan(back));
  }
}

TEST(NcclWireFormat, AllElseGoesAsItIs) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kProduct}) {
    const WireFormat format = wire_format(DType::kBFloat16, op);
    EXPECT_EQ(format.encode, nullptr);
    EXPECT_EQ(format.type, ncclBfloat16);
    EXPECT_EQ(format.op, op == ReduceOp::kProduct ? ncclProd : ncclSum) << to_string(op);
  }
  EXPECT_EQ(wire_format(DType::kUint8, ReduceOp::kMin).encode, nullptr);
}

}  // namespace
}  // namespace ddproof::nccl
