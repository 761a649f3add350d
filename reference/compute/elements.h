// What one element, window or row of an operation is: the bodies that the CPU's loops and the
// kernels of a CUDA device share.
//
// Stateless; any thread.
#pragma once

#include <cstdint>

#include "reference/compute/exp_log.h"
#include "reference/compute/host_device.h"
#include "reference/compute/scalar.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

template <class T>
DDPROOF_HOST_DEVICE T relu_value(const T& x) {
  const T zero{};
  return x <= zero ? zero : x;
}

template <class T>
DDPROOF_HOST_DEVICE T relu_gradient(const T& y, const T& dy) {
  const T zero{};
  return y <= zero ? zero : dy;
}

// Index of the first largest element of the window that begins at `first`; a NaN wins, the last if
// there are several.
template <class T>
DDPROOF_HOST_DEVICE std::int64_t window_maximum(const Pool2dShape& s, const T* plane,
                                                std::int64_t first) {
  std::int64_t best = first;
  for (std::int64_t r = 0; r < s.kernel; ++r) {
    for (std::int64_t c = 0; c < s.kernel; ++c) {
      const std::int64_t at = first + r * s.width + c;
      if (plane[at] > plane[best] || plane[at] != plane[at]) best = at;
    }
  }
  return best;
}

// log softmax = (x - max) - log(sum of exp(x - max)): no overflow for any finite logits. A negative
// target: the row counts for nothing.
template <class T>
DDPROOF_HOST_DEVICE void softmax_cross_entropy_row(std::int64_t classes, const T* logits,
                                                   std::int64_t target, T& loss, T* gradient) {
  if (target < 0) {
    loss = T{};
    for (std::int64_t j = 0; j < classes; ++j) gradient[j] = T{};
    return;
  }
  T largest = logits[0];
  for (std::int64_t j = 1; j < classes; ++j) {
    if (logits[j] > largest || logits[j] != logits[j]) largest = logits[j];
  }
  T sum{};
  for (std::int64_t j = 0; j < classes; ++j) {
    gradient[j] = fixed_exp(logits[j] - largest);
    sum = sum + gradient[j];
  }
  for (std::int64_t j = 0; j < classes; ++j) gradient[j] = gradient[j] / sum;
  gradient[target] = gradient[target] - from_integer<T>(1);
  loss = fixed_log(sum) - (logits[target] - largest);
}

}  // namespace ddproof::internal
