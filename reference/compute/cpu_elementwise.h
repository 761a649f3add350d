// Activations, pooling and the loss as plain loops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/compute/elements.h"
#include "reference/compute/kernels.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// Calls visit(output index, input index of its window's maximum), in order.
template <class T, class Visit>
void for_each_maximum(const Kernels<T>& kernels, const Pool2dShape& s, const T* x, Visit visit) {
  constexpr std::int64_t kChunk = 64;
  std::int32_t choice[kChunk];
  const std::int64_t columns = s.out_width();
  std::int64_t out = 0;
  for (std::int64_t p = 0; p < s.planes; ++p) {
    for (std::int64_t r = 0; r < s.out_height(); ++r) {
      const std::int64_t row = (p * s.height + r * s.stride) * s.width;
      if (s.kernel != 2 || s.stride != 2) {
        for (std::int64_t c = 0; c < columns; ++c) {
          visit(out++, window_maximum(s, x, row + c * s.stride));
        }
        continue;
      }
      for (std::int64_t c = 0; c < columns; c += kChunk) {
        const std::int64_t count = std::min(kChunk, columns - c);
        const std::int64_t first = row + 2 * c;
        kernels.choose_2x2(x + first, x + first + s.width, choice, count);
        for (std::int64_t i = 0; i < count; ++i) {
          visit(out++, first + 2 * i + (choice[i] & 1) + (choice[i] >> 1) * s.width);
        }
      }
    }
  }
}

template <class T>
void max_pool2d_forward(const Kernels<T>& kernels, const Pool2dShape& s, const T* x, T* y) {
  for_each_maximum(kernels, s, x, [&](std::int64_t out, std::int64_t in) { y[out] = x[in]; });
}

template <class T>
void max_pool2d_backward(const Kernels<T>& kernels, const Pool2dShape& s, const T* x, const T* dy,
                         T* dx) {
  std::fill_n(dx, s.planes * s.height * s.width, T{});
  for_each_maximum(kernels, s, x,
                   [&](std::int64_t out, std::int64_t in) { dx[in] = dx[in] + dy[out]; });
}

template <class T>
void relu_forward(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = x[i];
    y[i] = relu_value(value);
  }
}

template <class T>
void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T gradient = dy[i];
    dx[i] = relu_gradient(y[i], gradient);
  }
}

template <class T>
void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                           const std::int64_t* targets, T* loss, T* gradient) {
  for (std::int64_t r = 0; r < rows; ++r, logits += classes, gradient += classes) {
    softmax_cross_entropy_row(classes, logits, targets[r], loss[r], gradient);
  }
}

}  // namespace ddproof::internal
