// Bilinear interpolation as loops over the output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/compute/bilinear.h"

namespace ddproof::internal {

template <class T>
std::vector<Neighbours<T>> all_neighbours(std::int64_t in, std::int64_t out) {
  std::vector<Neighbours<T>> all;
  for (std::int64_t place = 0; place < out; ++place) all.push_back(neighbours<T>(in, out, place));
  return all;
}

template <class T>
void bilinear_forward(const BilinearShape& s, const T* x, T* y) {
  const auto rows = all_neighbours<T>(s.height, s.out_height);
  const auto columns = all_neighbours<T>(s.width, s.out_width);
  for (std::int64_t plane = 0; plane < s.planes; ++plane, x += s.height * s.width) {
    for (const Neighbours<T>& row : rows) {
      for (const Neighbours<T>& column : columns) *y++ = bilinear_value(x, s.width, row, column);
    }
  }
}

template <class T>
void bilinear_backward(const BilinearShape& s, const T* dy, T* dx) {
  const auto rows = all_neighbours<T>(s.height, s.out_height);
  const auto columns = all_neighbours<T>(s.width, s.out_width);
  std::fill_n(dx, s.planes * s.height * s.width, T{});
  for (std::int64_t plane = 0; plane < s.planes; ++plane, dx += s.height * s.width) {
    for (const Neighbours<T>& row : rows) {
      for (const Neighbours<T>& column : columns) {
        const T gradient = *dy++;
        for_each_neighbour(s.width, row, column, [&](std::int64_t at, const T& weight) {
          dx[at] = multiply_add(weight, gradient, dx[at]);
        });
      }
    }
  }
}

}  // namespace ddproof::internal
