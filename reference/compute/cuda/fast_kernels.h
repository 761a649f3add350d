// What cuBLAS leaves to do: biases, and windows of images unrolled into columns and folded back.
#pragma once

#include <cstdint>

#include "reference/compute/cuda/layers.h"
#include "reference/compute/host_device.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// y[..][channel][inner] = bias[channel].
template <class T>
struct SpreadBias {
  static constexpr const char* kName = "spread_bias";
  const T* bias;
  T* y;
  std::int64_t channels, inner, count;

  template <class See>
  void operands(See see) const {
    see.reads(bias, channels);
    see.writes(y, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = bias[i / inner % channels]; }
};

// sums[column] += the column's elements, rows ascending. One thread per column.
template <class T>
struct AddColumnSums {
  static constexpr const char* kName = "add_column_sums";
  const T* matrix;
  T* sums;
  std::int64_t rows, columns;

  template <class See>
  void operands(See see) const {
    see.reads(matrix, rows * columns);
    see.updates(sums, columns);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    T sum = sums[i];
    for (std::int64_t row = 0; row < rows; ++row) sum = sum + matrix[row * columns + i];
    sums[i] = sum;
  }
};

// columns[sample][row][position]: the input under tap `row`, and in one more row ones, if wanted.
template <class T>
struct Unroll {
  static constexpr const char* kName = "unroll";
  Conv2dShape s;
  ConvIndex at;
  const T* x;
  T* columns;
  std::int64_t rows;

  std::int64_t count() const { return s.batch * rows * at.positions(); }
  template <class See>
  void operands(See see) const {
    see.reads(x, s.batch * s.in_channels * s.height * s.width);
    see.writes(columns, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t place = i % at.positions(), row = i / at.positions() % rows;
    const std::int64_t position = i / at.positions() / rows * at.positions() + place;
    columns[i] = row == at.taps()
                     ? T(1)
                     : at.input_under(x, static_cast<int>(row), static_cast<int>(position));
  }
};

// dx = the sums of what lies on each input element in columns[sample][tap][position]. One thread
// per element, kernel rows and columns ascending.
template <class T>
struct Fold {
  static constexpr const char* kName = "fold";
  Conv2dShape s;
  ConvIndex at;
  const T* columns;
  T* dx;

  std::int64_t count() const { return s.batch * s.in_channels * at.pixels(); }
  template <class See>
  void operands(See see) const {
    see.reads(columns, s.batch * at.taps() * at.positions());
    see.writes(dx, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const int place = static_cast<int>(i % at.pixels());
    const std::int64_t plane = i / at.pixels();  // of sample and channel
    T sum{};
    for (int tap = 0; tap < at.area(); ++tap) {
      const int down = place / at.width + at.padding - tap / at.kernel * at.dilation;
      const int right = place % at.width + at.padding - tap % at.kernel * at.dilation;
      if (down < 0 || right < 0 || down % at.stride != 0 || right % at.stride != 0) continue;
      const int row = down / at.stride, column = right / at.stride;
      if (row >= at.out_height || column >= at.out_width) continue;
      sum =
          sum + columns[((plane * at.area()) + tap) * at.positions() + row * at.out_width + column];
    }
    dx[i] = sum;
  }
};

// dw and dbias += the samples' parts[sample][out channel][tap, then bias], samples ascending.
// Without dbias there is no such part.
template <class T>
struct AddParts {
  static constexpr const char* kName = "add_parts";
  std::int64_t samples, channels, taps;
  const T* parts;
  T* dw;
  T* dbias;

  DDPROOF_HOST_DEVICE std::int64_t columns() const { return taps + (dbias != nullptr); }
  DDPROOF_HOST_DEVICE std::int64_t count() const { return channels * columns(); }
  template <class See>
  void operands(See see) const {
    see.reads(parts, samples * count());
    see.updates(dw, channels * taps);
    if (dbias != nullptr) see.updates(dbias, channels);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channel = i / columns(), tap = i % columns();
    T* const place = tap < taps ? dw + channel * taps + tap : dbias + channel;
    T sum = *place;
    for (std::int64_t n = 0; n < samples; ++n) sum = sum + parts[n * count() + i];
    *place = sum;
  }
};

}  // namespace ddproof::internal
