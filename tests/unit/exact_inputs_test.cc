// Crafted inputs are exact in any order: shown by the processor's own inexact flag, and by summing
// them forwards, backwards and in pairs.
#include "reference/oracle/exact_inputs.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/api/half.h"

namespace ddproof {
namespace {

constexpr std::uint64_t kSeed = 20240601;
constexpr std::int64_t kElements = 512;

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else {
    return a + b;
  }
}

template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(a) * static_cast<float>(b));
  } else {
    return a * b;
  }
}

template <class T>
class ExactInputsOf : public testing::Test {};
using Elements = testing::Types<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                                std::int64_t, std::uint64_t, Float16, BFloat16, float, double>;
TYPED_TEST_SUITE(ExactInputsOf, Elements);

TYPED_TEST(ExactInputsOf, SumToTheSameValueInEveryOrder) {
  for (int ranks : {1, 2, 3, 8, 64}) {
    const ExactInputs<TypeParam> inputs(kSeed, ranks);
    for (std::int64_t i = 0; i < kElements; ++i) {
      TypeParam forwards = inputs.addend(i, 0);
      TypeParam backwards = inputs.addend(i, ranks - 1);
      for (int r = 1; r < ranks; ++r) {
        forwards = plus(forwards, inputs.addend(i, r));
        backwards = plus(backwards, inputs.addend(i, ranks - 1 - r));
      }
      ASSERT_TRUE(forwards == inputs.sum(i)) << "element " << i << ", " << ranks << " ranks";
      ASSERT_TRUE(backwards == inputs.sum(i)) << "element " << i << ", " << ranks << " ranks";
    }
  }
}

TYPED_TEST(ExactInputsOf, MultiplyToTheSameValueInEveryOrder) {
  for (int ranks : {1, 2, 3, 8, 64}) {
    const ExactInputs<TypeParam> inputs(kSeed, ranks);
    for (std::int64_t i = 0; i < kElements; ++i) {
      TypeParam forwards = inputs.factor(i, 0);
      TypeParam backwards = inputs.factor(i, ranks - 1);
      for (int r = 1; r < ranks; ++r) {
        forwards = times(forwards, inputs.factor(i, r));
        backwards = times(backwards, inputs.factor(i, ranks - 1 - r));
      }
      ASSERT_TRUE(forwards == inputs.product(i)) << "element " << i << ", " << ranks << " ranks";
      ASSERT_TRUE(backwards == inputs.product(i)) << "element " << i << ", " << ranks << " ranks";
    }
  }
}

TYPED_TEST(ExactInputsOf, DifferBetweenRanksAndElements) {
  const ExactInputs<TypeParam> inputs(kSeed, 4);
  int equal = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    if (inputs.addend(i, 0) == inputs.addend(i, 1)) ++equal;
    if (inputs.addend(i, 2) == inputs.addend(i + 1, 2)) ++equal;
  }
  EXPECT_LT(equal, 8);
}

TYPED_TEST(ExactInputsOf, HaveTheirExtremesAmongTheRanks) {
  const ExactInputs<TypeParam> inputs(kSeed, 5);
  const auto number = [](TypeParam value) {
    if constexpr (std::is_integral_v<TypeParam>)
      return value;
    else
      return static_cast<double>(
          static_cast<std::conditional_t<sizeof(TypeParam) == 2, float, double>>(value));
  };
  for (std::int64_t i = 0; i < kElements; ++i) {
    bool smallest = false;
    bool largest = false;
    for (int r = 0; r < 5; ++r) {
      ASSERT_LE(number(inputs.minimum(i)), number(inputs.addend(i, r)));
      ASSERT_GE(number(inputs.maximum(i)), number(inputs.addend(i, r)));
      smallest = smallest || inputs.minimum(i) == inputs.addend(i, r);
      largest = largest || inputs.maximum(i) == inputs.addend(i, r);
    }
    ASSERT_TRUE(smallest && largest);
  }
}

TEST(ExactInputs, AverageTruncatesIntegersAndDividesReals) {
  const ExactInputs<std::int8_t> bytes(kSeed, 3);
  const ExactInputs<double> reals(kSeed, 3);
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(bytes.average(i), static_cast<std::int8_t>(bytes.sum(i) / 3));
    EXPECT_EQ(reals.average(i), reals.sum(i) / 3);
  }
}

TEST(ExactInputs, ReachTheSubnormalsAndTheLargestNumbers) {
  const ExactInputs<float> inputs(kSeed, 2);
  float smallest = 1;
  float largest = 1;
  for (std::int64_t i = 0; i < 20000; ++i) {
    const float value = std::abs(inputs.addend(i, 0));
    if (value > 0) smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  EXPECT_LT(smallest, std::numeric_limits<float>::min());
  EXPECT_GT(largest, 1e37f);
}

TEST(RunsExactly, IsTrueForCraftedSumsAndFalseForOthers) {
  const ExactInputs<float> inputs(kSeed, 64);
  volatile float sum = 0;
  EXPECT_TRUE(runs_exactly([&] {
    for (std::int64_t i = 0; i < kElements; ++i) {
      sum = 0;
      for (int r = 0; r < 64; ++r) sum = sum + inputs.addend(i, r);
    }
  }));
  EXPECT_FALSE(runs_exactly([&] { sum = sum / 3; }));
  volatile float tenth = 0.1f;
  EXPECT_FALSE(runs_exactly([&] { sum = tenth + 1; }));
}

TEST(MixedBits, DependOnEachOfTheirArguments) {
  EXPECT_EQ(mixed_bits(1, 2, 3), mixed_bits(1, 2, 3));
  EXPECT_NE(mixed_bits(1, 2, 3), mixed_bits(2, 2, 3));
  EXPECT_NE(mixed_bits(1, 2, 3), mixed_bits(1, 3, 3));
  EXPECT_NE(mixed_bits(1, 2, 3), mixed_bits(1, 2, 4));
  EXPECT_NE(mixed_bits(1, 2, 3), mixed_bits(1, 3, 2));
}

}  // namespace
}  // namespace ddproof
