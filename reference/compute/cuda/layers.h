// Linear and convolution layers as the product of product_kernel.h: which matrices they are, and
// where their elements lie. The chains are device.h's.
//
// The bias of a parameter gradient is one more column, whose b is 1: exact. A convolution may have
// none.
#pragma once

#include <cstdint>

#include "reference/compute/host_device.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// C = y. Chain over `in`.
template <class T>
struct LinearForward {
  using Scalar = T;
  static constexpr const char* kName = "linear_forward";
  static constexpr bool kDepthFirstA = true, kDepthFirstB = true;
  LinearShape s;
  const T* x;
  const T* w;
  const T* bias;
  T* y;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.batch; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return s.out; }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return s.in; }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const { return x[i * s.in + k]; }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const { return w[j * s.in + k]; }
  DDPROOF_HOST_DEVICE T start(std::int64_t, std::int64_t j) const { return bias[j]; }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    y[i * s.out + j] = value;
  }
  template <class See>
  void operands(See see) const {
    see.reads(x, s.batch * s.in);
    see.reads(w, s.out * s.in);
    see.reads(bias, s.out);
    see.writes(y, s.batch * s.out);
  }
};

// C = dx. Chain over `out`.
template <class T>
struct LinearBackwardInput {
  using Scalar = T;
  static constexpr const char* kName = "linear_backward_input";
  static constexpr bool kDepthFirstA = true, kDepthFirstB = false;
  LinearShape s;
  const T* dy;
  const T* w;
  T* dx;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.batch; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return s.in; }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return s.out; }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const { return dy[i * s.out + k]; }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const { return w[k * s.in + j]; }
  DDPROOF_HOST_DEVICE T start(std::int64_t, std::int64_t) const { return T{}; }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    dx[i * s.in + j] = value;
  }
  template <class See>
  void operands(See see) const {
    see.reads(dy, s.batch * s.out);
    see.reads(w, s.out * s.in);
    see.writes(dx, s.batch * s.in);
  }
};

// C = dw and dbias. Chain over samples.
template <class T>
struct LinearBackwardParameters {
  using Scalar = T;
  static constexpr const char* kName = "linear_backward_parameters";
  static constexpr bool kDepthFirstA = false, kDepthFirstB = false;
  LinearShape s;
  const T* dy;
  const T* x;
  T* dw;
  T* dbias;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.out; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return s.in + 1; }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return s.batch; }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const { return dy[k * s.out + i]; }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const {
    return j < s.in ? x[k * s.in + j] : T(1);
  }
  DDPROOF_HOST_DEVICE T start(std::int64_t i, std::int64_t j) const { return *place(i, j); }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    *place(i, j) = value;
  }
  DDPROOF_HOST_DEVICE T* place(std::int64_t i, std::int64_t j) const {
    return j < s.in ? dw + i * s.in + j : dbias + i;
  }
  template <class See>
  void operands(See see) const {
    see.reads(dy, s.batch * s.out);
    see.reads(x, s.batch * s.in);
    see.updates(dw, s.out * s.in);
    see.updates(dbias, s.out);
  }
};

// A convolution's sizes in 32 bits, in which a device divides faster. Requires: the positions of a
// whole batch, and the taps, are fewer than 2^31.
struct ConvIndex {
  int in_channels, height, width, out_channels, kernel, stride, padding, dilation;
  int out_height, out_width;

  explicit ConvIndex(const Conv2dShape& s)
      : in_channels(static_cast<int>(s.in_channels)),
        height(static_cast<int>(s.height)),
        width(static_cast<int>(s.width)),
        out_channels(static_cast<int>(s.out_channels)),
        kernel(static_cast<int>(s.kernel)),
        stride(static_cast<int>(s.stride)),
        padding(static_cast<int>(s.padding)),
        dilation(static_cast<int>(s.dilation)),
        out_height(static_cast<int>(s.out_height())),
        out_width(static_cast<int>(s.out_width())) {}

  DDPROOF_HOST_DEVICE int area() const { return kernel * kernel; }
  DDPROOF_HOST_DEVICE int taps() const { return in_channels * area(); }
  DDPROOF_HOST_DEVICE int positions() const { return out_height * out_width; }
  DDPROOF_HOST_DEVICE int pixels() const { return height * width; }

  // x under a tap at an output position of the batch; zero in the padding.
  template <class T>
  DDPROOF_HOST_DEVICE T input_under(const T* x, int tap, int position) const {
    const int sample = position / positions(), place = position % positions();
    const int row = place / out_width * stride - padding + tap / kernel % kernel * dilation;
    const int column = place % out_width * stride - padding + tap % kernel * dilation;
    if (row < 0 || row >= height || column < 0 || column >= width) return T{};
    return x[(std::int64_t{sample} * in_channels + tap / area()) * pixels() + row * width + column];
  }

  // dy where a tap (out channel, kernel row, kernel column) lies on an input position of the batch;
  // zero where there is none.
  template <class T>
  DDPROOF_HOST_DEVICE T gradient_under(const T* dy, int tap, int position) const {
    const int sample = position / pixels(), place = position % pixels();
    const int down = place / width + padding - tap / kernel % kernel * dilation;
    const int right = place % width + padding - tap % kernel * dilation;
    if (down < 0 || right < 0 || down % stride != 0 || right % stride != 0) return T{};
    const int row = down / stride, column = right / stride;
    if (row >= out_height || column >= out_width) return T{};
    return dy[(std::int64_t{sample} * out_channels + tap / area()) * positions() + row * out_width +
              column];
  }
};

// C = y, by output channel and position of the batch. Chain over taps.
template <class T>
struct ConvForward {
  using Scalar = T;
  static constexpr const char* kName = "conv2d_forward";
  static constexpr bool kDepthFirstA = true, kDepthFirstB = false;
  Conv2dShape s;
  ConvIndex at;
  const T* x;
  const T* w;
  const T* bias;
  T* y;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.out_channels; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return s.batch * at.positions(); }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return at.taps(); }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const { return w[i * at.taps() + k]; }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const {
    return at.input_under(x, static_cast<int>(k), static_cast<int>(j));
  }
  DDPROOF_HOST_DEVICE T start(std::int64_t i, std::int64_t) const {
    return bias != nullptr ? bias[i] : T{};
  }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    const int sample = static_cast<int>(j) / at.positions();
    const int place = static_cast<int>(j) % at.positions();
    y[(sample * s.out_channels + i) * at.positions() + place] = value;
  }
  template <class See>
  void operands(See see) const {
    see.reads(x, s.batch * s.in_channels * s.height * s.width);
    see.reads(w, s.out_channels * s.taps());
    if (bias != nullptr) see.reads(bias, s.out_channels);
    see.writes(y, s.out_channels * columns());
  }
};

// C = dx, by input channel and position of the batch. Chain over (out channel, kernel row, kernel
// column).
template <class T>
struct ConvBackwardInput {
  using Scalar = T;
  static constexpr const char* kName = "conv2d_backward_input";
  static constexpr bool kDepthFirstA = true, kDepthFirstB = false;
  Conv2dShape s;
  ConvIndex at;
  const T* dy;
  const T* w;
  T* dx;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.in_channels; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return s.batch * at.pixels(); }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return s.out_channels * at.area(); }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const {
    const int channel = static_cast<int>(k) / at.area(), tap = static_cast<int>(k) % at.area();
    return w[(channel * s.in_channels + i) * at.area() + tap];
  }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const {
    return at.gradient_under(dy, static_cast<int>(k), static_cast<int>(j));
  }
  DDPROOF_HOST_DEVICE T start(std::int64_t, std::int64_t) const { return T{}; }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    const int sample = static_cast<int>(j) / at.pixels(), place = static_cast<int>(j) % at.pixels();
    dx[(sample * s.in_channels + i) * at.pixels() + place] = value;
  }
  template <class See>
  void operands(See see) const {
    see.reads(dy, s.batch * s.out_channels * at.positions());
    see.reads(w, s.out_channels * s.taps());
    see.writes(dx, s.in_channels * columns());
  }
};

// C = dw and dbias, by output channel and tap. Chain over the output positions of the batch.
template <class T>
struct ConvBackwardParameters {
  using Scalar = T;
  static constexpr const char* kName = "conv2d_backward_parameters";
  static constexpr bool kDepthFirstA = true, kDepthFirstB = true;
  Conv2dShape s;
  ConvIndex at;
  const T* dy;
  const T* x;
  T* dw;
  T* dbias;

  DDPROOF_HOST_DEVICE std::int64_t rows() const { return s.out_channels; }
  DDPROOF_HOST_DEVICE std::int64_t columns() const { return at.taps() + (dbias != nullptr); }
  DDPROOF_HOST_DEVICE std::int64_t depth() const { return s.batch * at.positions(); }
  DDPROOF_HOST_DEVICE T a(std::int64_t i, std::int64_t k) const {
    const int sample = static_cast<int>(k) / at.positions();
    const int place = static_cast<int>(k) % at.positions();
    return dy[(sample * s.out_channels + i) * at.positions() + place];
  }
  DDPROOF_HOST_DEVICE T b(std::int64_t k, std::int64_t j) const {
    if (j == at.taps()) return T(1);
    return at.input_under(x, static_cast<int>(j), static_cast<int>(k));
  }
  DDPROOF_HOST_DEVICE T start(std::int64_t i, std::int64_t j) const { return *place(i, j); }
  DDPROOF_HOST_DEVICE void store(std::int64_t i, std::int64_t j, T value) const {
    *place(i, j) = value;
  }
  DDPROOF_HOST_DEVICE T* place(std::int64_t i, std::int64_t j) const {
    return j < at.taps() ? dw + i * at.taps() + j : dbias + i;
  }
  template <class See>
  void operands(See see) const {
    see.reads(dy, s.batch * s.out_channels * at.positions());
    see.reads(x, s.batch * s.in_channels * s.height * s.width);
    see.updates(dw, s.out_channels * s.taps());
    if (dbias != nullptr) see.updates(dbias, s.out_channels);
  }
};

}  // namespace ddproof::internal
