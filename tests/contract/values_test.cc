// The values that standards leave open (ReduceOp in backends/api/call.h), and caller-defined ones.
#include <cmath>
#include <limits>

#include "tests/contract/contract.h"

namespace ddproof::contract {
namespace {

class Values : public PeerContract {
 protected:
  // The all-reduce of one element per rank.
  template <class T>
  std::vector<T> all_reduced(const std::vector<T>& by_rank, ReduceOp op) const {
    std::vector<T> results(by_rank.size());
    run(static_cast<int>(by_rank.size()), [&](RankContext& rank) {
      const auto index = static_cast<std::size_t>(rank.group.rank());
      std::vector<T> data{by_rank[index]};
      rank.group.all_reduce(buffer(data), op)->wait();
      results[index] = data[0];
    });
    return results;
  }
  template <class T>
  void expect_everywhere(const std::vector<T>& by_rank, ReduceOp op, T expected) const {
    EXPECT_EQ(all_reduced(by_rank, op), std::vector<T>(by_rank.size(), expected)) << to_string(op);
  }
};
DDPROOF_CONTRACT(Values);

TEST_P(Values, IntegersWrap) {
  expect_everywhere<std::int8_t>({120, 100}, ReduceOp::kSum, -36);
  expect_everywhere<std::uint8_t>({200, 100}, ReduceOp::kSum, 44);
  constexpr auto kMax32 = std::numeric_limits<std::int32_t>::max();
  expect_everywhere<std::int32_t>({kMax32, kMax32}, ReduceOp::kSum, -2);
  constexpr auto kMax64 = std::numeric_limits<std::int64_t>::max();
  expect_everywhere<std::int64_t>({kMax64, 1}, ReduceOp::kSum,
                                  std::numeric_limits<std::int64_t>::min());
  expect_everywhere<std::int8_t>({100, 3}, ReduceOp::kProduct, 44);
  expect_everywhere<std::int64_t>({kMax64, kMax64}, ReduceOp::kProduct, 1);
}

TEST_P(Values, AverageDividesTheWrappedSumRoundingTowardZero) {
  expect_everywhere<std::int8_t>({120, 100}, ReduceOp::kAverage, -18);
  expect_everywhere<std::int32_t>({-4, -3}, ReduceOp::kAverage, -3);
  expect_everywhere<std::int32_t>({4, 3}, ReduceOp::kAverage, 3);
  expect_everywhere<std::uint64_t>({~std::uint64_t{0} - 1, 0}, ReduceOp::kAverage,
                                   (~std::uint64_t{0} - 1) / 2);
}

TEST_P(Values, AverageIsOneTrueDivision) {
  expect_everywhere<float>({1, 0, 0}, ReduceOp::kAverage, 1.0f / 3.0f);
  expect_everywhere<double>({5, 0, 0}, ReduceOp::kAverage, 5.0 / 3.0);
}

TEST_P(Values, HalfPrecisionSumsRoundAndOverflowToInfinity) {
  const Float16 large(40000.0f);
  expect_everywhere<Float16>({large, large}, ReduceOp::kSum,
                             Float16(std::numeric_limits<float>::infinity()));
  expect_everywhere<Float16>({Float16(2048.0f), Float16(1.0f)}, ReduceOp::kSum, Float16(2048.0f));
  expect_everywhere<BFloat16>({BFloat16(256.0f), BFloat16(1.0f)}, ReduceOp::kSum, BFloat16(256.0f));
  expect_everywhere<float>({16777216.0f, 1.0f}, ReduceOp::kSum, 16777216.0f);
}

TEST_P(Values, NanWinsInMinAndMaxWhereverItIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
    for (std::size_t where = 0; where < 3; ++where) {
      std::vector<float> data{1, 2, 3};
      data[where] = nan;
      for (float result : all_reduced(data, op)) EXPECT_TRUE(std::isnan(result)) << where;
      std::vector<Float16> half{Float16(1.0f), Float16(2.0f), Float16(3.0f)};
      half[where] = Float16(nan);
      for (Float16 result : all_reduced(half, op)) {
        EXPECT_TRUE(std::isnan(static_cast<float>(result))) << where;
      }
    }
  }
}

TEST_P(Values, NegativeZeroIsLessThanZero) {
  for (const std::vector<double>& data : {std::vector<double>{0.0, -0.0}, {-0.0, 0.0}}) {
    for (double result : all_reduced(data, ReduceOp::kMin)) EXPECT_TRUE(std::signbit(result));
    for (double result : all_reduced(data, ReduceOp::kMax)) EXPECT_FALSE(std::signbit(result));
  }
}

TEST_P(Values, InfinityMinusInfinityIsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float result : all_reduced<float>({infinity, -infinity}, ReduceOp::kSum)) {
    EXPECT_TRUE(std::isnan(result));
  }
  for (float result : all_reduced<float>({0, infinity}, ReduceOp::kProduct)) {
    EXPECT_TRUE(std::isnan(result));
  }
}

// A caller-defined element, of a size that is no power of two.
struct ModSeven {
  static constexpr std::string_view kElementName = "mod7";
  std::uint8_t value = 0;
  std::uint8_t padding[2] = {};
  friend ModSeven operator+(ModSeven a, ModSeven b) {
    return {static_cast<std::uint8_t>((a.value + b.value) % 7), {}};
  }
};

class CustomElements : public Contract {
 protected:
  void SetUp() override {
    if (!make_tested_backend(GetParam())->capabilities().custom_elements) GTEST_SKIP();
  }
};
DDPROOF_CONTRACT(CustomElements);

TEST_P(CustomElements, AreSummedByTheirOwnSum) {
  for (int size : world_sizes()) {
    for (std::size_t count : {1u, 7u, 1000u, 400'000u}) {
      run(size, [count](RankContext& rank) {
        std::vector<ModSeven> data(count);
        for (std::size_t i = 0; i < count; ++i) {
          data[i].value = static_cast<std::uint8_t>((i + 5 * rank.group.rank()) % 7);
        }
        rank.group.all_reduce(buffer(data))->wait();
        for (std::size_t i = 0; i < count; ++i) {
          int expected = 0;
          for (int r = 0; r < rank.group.size(); ++r) expected += static_cast<int>(i + 5 * r) % 7;
          ASSERT_EQ(data[i].value, expected % 7) << i;
        }
      });
    }
  }
}

TEST_P(CustomElements, MoveLikeAnyOther) {
  run(world_sizes().back(), [](RankContext& rank) {
    std::vector<ModSeven> in(5);
    for (ModSeven& element : in) element.value = static_cast<std::uint8_t>(rank.group.rank() % 7);
    std::vector<ModSeven> out(in.size() * static_cast<std::size_t>(rank.group.size()));
    rank.group.all_gather(buffer(in), buffer(out))->wait();
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].value, i / in.size() % 7);
  });
}

TEST_P(CustomElements, OtherReductionsAreRefused) {
  run(1, [](RankContext& rank) {
    std::vector<ModSeven> data(2);
    const CommError error =
        comm_error_of([&] { rank.group.all_reduce(buffer(data), ReduceOp::kMax); });
    EXPECT_EQ(error.kind(), CommErrorKind::kUnsupported);
  });
}

}  // namespace
}  // namespace ddproof::contract
