// Bilinear interpolation: what one element is, for the CPU's loops and the kernels of a CUDA
// device. What the operations compute is in device.h.
//
// Stateless; any thread.
#pragma once

#include <cstdint>

#include "reference/compute/host_device.h"
#include "reference/compute/scalar.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// The two input places that an output place lies between, along one side of the image. They are the
// same one at the end.
template <class T>
struct Neighbours {
  std::int64_t low, high;
  T low_weight, high_weight;
};

// Pixels are areas, whose centres are half a pixel from the edge (PyTorch: align_corners False).
template <class T>
DDPROOF_HOST_DEVICE Neighbours<T> neighbours(std::int64_t in, std::int64_t out,
                                             std::int64_t place) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  double centre = scale * (static_cast<double>(place) + 0.5) - 0.5;
  if (centre < 0) centre = 0;
  std::int64_t low = static_cast<std::int64_t>(centre);
  if (low > in - 1) low = in - 1;
  const T weight = static_cast<T>(centre - static_cast<double>(low));
  return {low, low + 1 < in ? low + 1 : low, T(1) - weight, weight};
}

template <class T>
DDPROOF_HOST_DEVICE T bilinear_value(const T* plane, std::int64_t width, const Neighbours<T>& row,
                                     const Neighbours<T>& column) {
  const T* const top = plane + row.low * width;
  const T* const bottom = plane + row.high * width;
  const T above =
      multiply_add(column.high_weight, top[column.high], column.low_weight * top[column.low]);
  const T below =
      multiply_add(column.high_weight, bottom[column.high], column.low_weight * bottom[column.low]);
  return multiply_add(row.high_weight, below, row.low_weight * above);
}

// Calls add(index of an input element, its weight) for the four that an output element reads.
template <class T, class Add>
DDPROOF_HOST_DEVICE void for_each_neighbour(std::int64_t width, const Neighbours<T>& row,
                                            const Neighbours<T>& column, Add add) {
  add(row.low * width + column.low, row.low_weight * column.low_weight);
  add(row.low * width + column.high, row.low_weight * column.high_weight);
  add(row.high * width + column.low, row.high_weight * column.low_weight);
  add(row.high * width + column.high, row.high_weight * column.high_weight);
}

// The first output place that may lie between input places of which one is `place`: never too late.
DDPROOF_HOST_DEVICE inline std::int64_t first_reader(std::int64_t in, std::int64_t out,
                                                     std::int64_t place) {
  const std::int64_t first = (place - 1) * out / in - 1;
  return first > 0 ? first : 0;
}

}  // namespace ddproof::internal
