// Batch norm: the bodies that the CPU's loops and the kernels of a CUDA device share. What they
// compute is in device.h.
//
// A plane is one sample's channel. First each plane is summed, then each channel's planes; both the
// mean and the squares about it. The mean in between keeps its digits (Chan, Golub, LeVeque,
// "Algorithms for computing the sample variance", The American Statistician 37(3), 1983: the
// two-pass algorithm).
//
// Stateless; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "reference/compute/host_device.h"
#include "reference/compute/scalar.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// What sums over a channel are made in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Of a channel's planes, samples ascending; `planes` begins at the channel's first one.
template <class W>
DDPROOF_HOST_DEVICE W channel_sum(const BatchNormShape& s, const W* planes) {
  W sum{};
  for (std::int64_t n = 0; n < s.batch; ++n) sum = sum + planes[n * s.channels];
  return sum;
}

// Zero where a channel has no values.
template <class W>
DDPROOF_HOST_DEVICE W channel_mean(const BatchNormShape& s, const W* planes) {
  const std::int64_t n = s.per_channel();
  return n > 0 ? channel_sum(s, planes) / from_integer<W>(n) : W{};
}

template <class T>
DDPROOF_HOST_DEVICE T inverse_deviation(const T& variance, double eps) {
  const Wide<T> sum = static_cast<Wide<T>>(variance) + static_cast<Wide<T>>(eps);
  return static_cast<T>(Wide<T>(1) / std::sqrt(sum));
}

template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T normalized(const T& x, const T& mean,
                                                               const T& inverse_deviation) {
  return (x - mean) * inverse_deviation;
}

// The terms of the three sums of a plane: what `sum` becomes with one more position.
template <class T>
struct PlaneSum {
  const T* x;
  [[gnu::always_inline]] DDPROOF_HOST_DEVICE void add(std::int64_t, std::int64_t at,
                                                      Wide<T>& sum) const {
    sum = sum + static_cast<Wide<T>>(x[at]);
  }
};

template <class T>
struct PlaneSquares {
  const T* x;
  const Wide<T>* means;
  [[gnu::always_inline]] DDPROOF_HOST_DEVICE void add(std::int64_t channel, std::int64_t at,
                                                      Wide<T>& sum) const {
    const Wide<T> distance = static_cast<Wide<T>>(x[at]) - means[channel];
    sum = multiply_add(distance, distance, sum);
  }
};

template <class T>
struct PlaneProducts {
  const T* x;
  const T* dy;
  const T* mean;
  const T* inverse_deviation;
  [[gnu::always_inline]] DDPROOF_HOST_DEVICE void add(std::int64_t channel, std::int64_t at,
                                                      Wide<T>& sum) const {
    const T value = normalized(x[at], mean[channel], inverse_deviation[channel]);
    sum = multiply_add(static_cast<Wide<T>>(dy[at]), static_cast<Wide<T>>(value), sum);
  }
};

template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T batch_norm_value(const T& x, const T& mean,
                                                                     const T& inverse_deviation,
                                                                     const T& w, const T& bias) {
  return multiply_add(w, normalized(x, mean, inverse_deviation), bias);
}

// `scale` is inverse_deviation * w.
template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T batch_norm_gradient(
    const T& x, const T& dy, const T& mean, const T& inverse_deviation, const T& scale,
    const T& mean_dy, const T& mean_dy_x) {
  const T value = normalized(x, mean, inverse_deviation);
  return multiply_add(value, -mean_dy_x, dy - mean_dy) * scale;
}

// Of a layer without parameters.
template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T or_one(const T* w, std::int64_t channel) {
  return w != nullptr ? w[channel] : T(1);
}
template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T or_zero(const T* bias, std::int64_t channel) {
  return bias != nullptr ? bias[channel] : T{};
}

}  // namespace ddproof::internal
