// Activations, pooling and the loss as plain loops.
#pragma once

#include <cstdint>

#include "reference/compute/exp_log.h"
#include "reference/compute/scalar.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// Index of the first largest element of one window, relative to `plane`; a NaN wins.
template <class T>
std::int64_t window_maximum(const Pool2dShape& s, const T* plane, std::int64_t first) {
  std::int64_t best = first;
  for (std::int64_t r = 0; r < s.kernel; ++r) {
    for (std::int64_t c = 0; c < s.kernel; ++c) {
      const std::int64_t at = first + r * s.width + c;
      if (plane[at] > plane[best] || plane[at] != plane[at]) best = at;
    }
  }
  return best;
}

template <class T>
void max_pool2d_forward(const Pool2dShape& s, const T* x, T* y) {
  for (std::int64_t p = 0; p < s.planes; ++p, x += s.height * s.width) {
    for (std::int64_t r = 0; r < s.out_height(); ++r) {
      for (std::int64_t c = 0; c < s.out_width(); ++c) {
        *y++ = x[window_maximum(s, x, (r * s.width + c) * s.stride)];
      }
    }
  }
}

template <class T>
void max_pool2d_backward(const Pool2dShape& s, const T* x, const T* dy, T* dx) {
  std::fill_n(dx, s.planes * s.height * s.width, T{});
  for (std::int64_t p = 0; p < s.planes; ++p, x += s.height * s.width, dx += s.height * s.width) {
    for (std::int64_t r = 0; r < s.out_height(); ++r) {
      for (std::int64_t c = 0; c < s.out_width(); ++c) {
        T& target = dx[window_maximum(s, x, (r * s.width + c) * s.stride)];
        target = target + *dy++;
      }
    }
  }
}

template <class T>
void relu_forward(const T* x, T* y, std::int64_t count) {
  const T zero{};
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] <= zero ? zero : x[i];
}

template <class T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) {
  const T zero{};
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] <= zero ? zero : dy[i];
}

// log softmax = (x - max) - log(sum of exp(x - max)): no overflow for any finite logits.
template <class T>
void softmax_cross_entropy_row(std::int64_t classes, const T* logits, std::int64_t target, T& loss,
                               T* gradient) {
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

template <class T>
void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                           const std::int64_t* targets, T* loss, T* gradient) {
  for (std::int64_t r = 0; r < rows; ++r, logits += classes, gradient += classes) {
    if (targets[r] < 0) {
      loss[r] = T{};
      std::fill_n(gradient, classes, T{});
    } else {
      softmax_cross_entropy_row(classes, logits, targets[r], loss[r], gradient);
    }
  }
}

}  // namespace ddproof::internal
