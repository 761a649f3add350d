// Kernels that give images another size or layout, with one thread per element of the result.
#pragma once

#include <cstdint>

#include "reference/compute/bilinear.h"
#include "reference/compute/host_device.h"

namespace ddproof::internal {

// One thread per element of `from`.
template <class T>
struct Transpose {
  static constexpr const char* kName = "transpose";
  std::int64_t batch, rows, columns;
  const T* from;
  T* to;

  std::int64_t count() const { return batch * rows * columns; }
  template <class See>
  void operands(See see) const {
    see.reads(from, count());
    see.writes(to, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % columns, row = i / columns % rows, n = i / columns / rows;
    to[(n * columns + column) * rows + row] = from[i];
  }
};

template <class T>
struct BilinearForward {
  static constexpr const char* kName = "bilinear_forward";
  BilinearShape s;
  const T* x;
  T* y;

  std::int64_t count() const { return s.planes * s.out_height * s.out_width; }
  template <class See>
  void operands(See see) const {
    see.reads(x, s.planes * s.height * s.width);
    see.writes(y, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % s.out_width, row = i / s.out_width % s.out_height;
    const std::int64_t plane = i / s.out_width / s.out_height;
    y[i] = bilinear_value(x + plane * s.height * s.width, s.width,
                          neighbours<T>(s.height, s.out_height, row),
                          neighbours<T>(s.width, s.out_width, column));
  }
};

// One thread per element of dx, which asks the output elements that may have read it, in order: so
// no two threads write one place, and the order of the sum is fixed.
template <class T>
struct BilinearBackward {
  static constexpr const char* kName = "bilinear_backward";
  BilinearShape s;
  const T* dy;
  T* dx;

  std::int64_t count() const { return s.planes * s.height * s.width; }
  template <class See>
  void operands(See see) const {
    see.reads(dy, s.planes * s.out_height * s.out_width);
    see.writes(dx, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % s.width, row = i / s.width % s.height;
    const T* const plane = dy + i / s.width / s.height * s.out_height * s.out_width;
    T sum{};
    for (std::int64_t r = first_reader(s.height, s.out_height, row); r < s.out_height; ++r) {
      const Neighbours<T> rows = neighbours<T>(s.height, s.out_height, r);
      if (rows.low > row) break;
      if (rows.high < row) continue;
      for (std::int64_t c = first_reader(s.width, s.out_width, column); c < s.out_width; ++c) {
        const Neighbours<T> columns = neighbours<T>(s.width, s.out_width, c);
        if (columns.low > column) break;
        const T gradient = plane[r * s.out_width + c];
        for_each_neighbour(s.width, rows, columns, [&](std::int64_t at, const T& weight) {
          if (at == row * s.width + column) sum = multiply_add(weight, gradient, sum);
        });
      }
    }
    dx[i] = sum;
  }
};

}  // namespace ddproof::internal
