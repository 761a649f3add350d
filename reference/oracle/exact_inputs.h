// Inputs on which arithmetic is exact in any order, so that a reduction can be compared bit by bit
// with its serial result, for every element type.
//
// Addends: integers times a power of two that the element's ranks share, small enough that no
// partial sum needs more bits than the type has. Factors: signed powers of two whose partial
// products stay in range. Integer types use all their bits: they wrap, which is exact too.
// Everything is a pure function of (seed, element index, rank), so any part can be made alone.
//
// Sources: the idea is that of nccl-tests' verifiable inputs; ORACLES section 3.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "backends/api/check.h"
#include "backends/api/half.h"

namespace ddproof {

// 64 well-mixed bits that depend on nothing but the three numbers (SplitMix64's finaliser, over
// each in turn; Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t mixed_bits(std::uint64_t seed, std::uint64_t a, std::uint64_t b);

// Runs `body` and returns true when no floating-point operation in it was inexact: none rounded,
// overflowed or underflowed. The proof that inputs are what they claim to be.
bool runs_exactly(const std::function<void()>& body);

// The floating-point formats as integers times powers of two.
template <class T>
struct FloatShape {
  static constexpr int kPrecision = std::numeric_limits<T>::digits;
  static constexpr int kMaxExponent = std::numeric_limits<T>::max_exponent - 1;
  static constexpr int kMinExponent =  // of the smallest subnormal
      std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
};
template <>
struct FloatShape<Float16> {
  static constexpr int kPrecision = 11;
  static constexpr int kMaxExponent = 15;
  static constexpr int kMinExponent = -24;
};
template <>
struct FloatShape<BFloat16> {
  static constexpr int kPrecision = 8;
  static constexpr int kMaxExponent = 127;
  static constexpr int kMinExponent = -133;
};

template <class T>
class ExactInputs {
 public:
  // Requires: world_size >= 1, and at most 256: bfloat16 then still has 1 for each rank.
  ExactInputs(std::uint64_t seed, int world_size) : seed_(seed), world_size_(world_size) {
    DDPROOF_CHECK(1 <= world_size && world_size <= 256);
  }

  // Rank's element for sum, average, min and max.
  T addend(std::int64_t index, int rank) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(bits(index, rank));
    else
      return scaled(integer(index, rank), exponent(index));
  }
  // Rank's element for product.
  T factor(std::int64_t index, int rank) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(bits(index, rank) | 1);
    else
      return scaled((bits(index, rank) & 1) != 0 ? -1 : 1, factor_exponent(index, rank));
  }

  // The results of the reductions over all ranks.
  T sum(std::int64_t index) const {
    if constexpr (std::is_integral_v<T>) {
      return fold(index, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    } else {
      return scaled(integer_sum(index), exponent(index));
    }
  }
  // The sum, then one true division by the world size.
  T average(std::int64_t index) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(sum(index) / signed_size());
    else if constexpr (sizeof(T) == 2)
      return T(static_cast<float>(sum(index)) / world_size_);
    else
      return sum(index) / static_cast<T>(world_size_);
  }
  T product(std::int64_t index) const {
    if constexpr (std::is_integral_v<T>) {
      std::uint64_t product = 1;
      for (int r = 0; r < world_size_; ++r) {
        product *= static_cast<std::uint64_t>(factor(index, r));
      }
      return static_cast<T>(product);
    } else {
      std::int64_t sign = 1;
      int exponent = 0;
      for (int r = 0; r < world_size_; ++r) {
        if ((bits(index, r) & 1) != 0) sign = -sign;
        exponent += factor_exponent(index, r);
      }
      return scaled(sign, exponent);
    }
  }
  T minimum(std::int64_t index) const { return extreme(index, -1); }
  T maximum(std::int64_t index) const { return extreme(index, 1); }

 private:
  std::uint64_t bits(std::int64_t index, int rank) const {
    return mixed_bits(seed_, static_cast<std::uint64_t>(index),
                      static_cast<std::uint64_t>(rank) + 1);
  }
  // Bits that all ranks of an element share.
  std::uint64_t shared_bits(std::int64_t index) const { return bits(index, -1); }

  // At most 2^p / W in magnitude, so that W of them stay below 2^p.
  std::int64_t integer(std::int64_t index, int rank) const {
    const std::int64_t limit = (std::int64_t{1} << FloatShape<T>::kPrecision) / world_size_;
    const auto range = static_cast<std::uint64_t>(2 * limit + 1);
    return static_cast<std::int64_t>((bits(index, rank) >> 1) % range) - limit;
  }
  std::int64_t integer_sum(std::int64_t index) const {
    std::int64_t total = 0;
    for (int r = 0; r < world_size_; ++r) total += integer(index, r);
    return total;
  }
  // From the subnormals up to where the largest sum still fits.
  int exponent(std::int64_t index) const {
    const int low = FloatShape<T>::kMinExponent;
    const int high = FloatShape<T>::kMaxExponent - FloatShape<T>::kPrecision;
    return low + static_cast<int>(shared_bits(index) % static_cast<std::uint64_t>(high - low + 1));
  }
  // At most E / W in magnitude, E where both 2^E and 2^-E are normal.
  int factor_exponent(std::int64_t index, int rank) const {
    const int limit = (FloatShape<T>::kMaxExponent - 1) / world_size_;
    return static_cast<int>((bits(index, rank) >> 1) % static_cast<std::uint64_t>(2 * limit + 1)) -
           limit;
  }

  // integer * 2^exponent. Exact by the ranges above.
  static T scaled(std::int64_t integer, int exponent) {
    if constexpr (sizeof(T) == 2) {
      return T(std::ldexp(static_cast<float>(integer), exponent));
    } else {
      return std::ldexp(static_cast<T>(integer), exponent);
    }
  }

  template <class Operation>
  T fold(std::int64_t index, Operation operation) const {
    std::uint64_t total = 0;
    for (int r = 0; r < world_size_; ++r) {
      total = operation(total, static_cast<std::uint64_t>(addend(index, r)));
    }
    return static_cast<T>(total);
  }

  // The largest of sign * element.
  T extreme(std::int64_t index, int sign) const {
    int best = 0;
    for (int r = 1; r < world_size_; ++r) {
      const T candidate = addend(index, r);
      const T champion = addend(index, best);
      if (sign > 0 ? less(champion, candidate) : less(candidate, champion)) best = r;
    }
    return addend(index, best);
  }
  static bool less(T a, T b) {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
      return static_cast<float>(a) < static_cast<float>(b);
    } else {
      return a < b;
    }
  }

  // The divisor in T's own signedness: an unsigned sum must not become signed.
  auto signed_size() const {
    if constexpr (std::is_signed_v<T>)
      return std::int64_t{world_size_};
    else
      return static_cast<std::uint64_t>(world_size_);
  }

  std::uint64_t seed_;
  int world_size_;
};

}  // namespace ddproof
