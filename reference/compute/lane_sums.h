// Sums over an array in an order that is fast everywhere and the same everywhere: kSumLanes chains,
// lane l over the elements l, l + kSumLanes, ... ascending. Whoever wants one sum adds the lanes in
// ascending order.
//
// So vectors and the threads of a device hold lanes, never parts of a chain.
#pragma once

#include <cstdint>

#include "reference/compute/scalar.h"

namespace ddproof {

inline constexpr std::int64_t kSumLanes = 1024;

enum class LaneSum : std::uint8_t {
  kSquares,  // of x * x
  kZeros,    // of 0 * x: zero where every x of the lane is finite, else NaN
};

namespace internal {

template <class T, LaneSum kSum>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T lane_term(const T& x, const T& sum) {
  return multiply_add(kSum == LaneSum::kSquares ? x : T{}, x, sum);
}

template <class T, LaneSum kSum>
[[gnu::always_inline]] inline void lane_loop(const T* __restrict x, T* __restrict sums,
                                             std::int64_t count) {
  for (std::int64_t l = 0; l < kSumLanes; ++l) sums[l] = T{};
  for (std::int64_t begin = 0; begin < count; begin += kSumLanes) {
    const std::int64_t lanes = count - begin < kSumLanes ? count - begin : kSumLanes;
    for (std::int64_t l = 0; l < lanes; ++l) {
      sums[l] = lane_term<T, kSum>(x[begin + l], sums[l]);
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void lane_loops(LaneSum kind, const T* x, T* sums,
                                              std::int64_t count) {
  if (kind == LaneSum::kSquares) return lane_loop<T, LaneSum::kSquares>(x, sums, count);
  lane_loop<T, LaneSum::kZeros>(x, sums, count);
}

}  // namespace internal

// Requires: `sums` holds kSumLanes elements, which need not be set.
template <class T>
void lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) {
  internal::lane_loops(kind, x, sums, count);
}
template <>
void lane_sums(LaneSum kind, const float* x, float* sums, std::int64_t count);
template <>
void lane_sums(LaneSum kind, const double* x, double* sums, std::int64_t count);

}  // namespace ddproof
