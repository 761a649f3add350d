// Kernels with one thread per element, window or row. The bodies are elements.h's, which the CPU
// runs too.
#pragma once

#include <cstdint>

#include "reference/compute/adam_kernel.h"
#include "reference/compute/elements.h"
#include "reference/compute/host_device.h"
#include "reference/compute/lane_sums.h"
#include "reference/compute/scalar.h"
#include "reference/compute/sgd_kernel.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

template <class T>
struct Fill {
  static constexpr const char* kName = "fill";
  T* data;
  std::int64_t count;
  T value;

  template <class See>
  void operands(See see) const {
    see.writes(data, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const { data[i] = value; }
};

template <class T>
struct ScaledCopy {
  static constexpr const char* kName = "scaled_copy";
  T* to;
  const T* from;
  T factor;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(from, count);
    see.writes(to, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const { to[i] = from[i] * factor; }
};

template <class T>
struct Axpy {
  static constexpr const char* kName = "axpy";
  T* to;
  const T* from;
  T factor;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(from, count);
    see.updates(to, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    to[i] = multiply_add(factor, from[i], to[i]);
  }
};

template <class T>
struct ReluForward {
  static constexpr const char* kName = "relu_forward";
  const T* x;
  T* y;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(x, count);
    see.writes(y, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = relu_value(x[i]); }
};

template <class T>
struct ReluBackward {
  static constexpr const char* kName = "relu_backward";
  const T* y;
  const T* dy;
  T* dx;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(y, count);
    see.reads(dy, count);
    see.writes(dx, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = relu_gradient(y[i], dy[i]); }
};

// One thread per window.
template <class T>
struct MaxPoolForward {
  static constexpr const char* kName = "max_pool2d_forward";
  Pool2dShape s;
  const T* x;
  T* y;

  std::int64_t count() const { return s.planes * s.out_height() * s.out_width(); }
  template <class See>
  void operands(See see) const {
    see.reads(x, s.planes * s.height * s.width);
    see.writes(y, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t columns = s.out_width();
    const std::int64_t column = i % columns;
    const std::int64_t row = i / columns % s.out_height();
    const std::int64_t plane = i / columns / s.out_height();
    y[i] =
        x[window_maximum(s, x, (plane * s.height + row * s.stride) * s.width + column * s.stride)];
  }
};

// One thread per element of dx, which asks the windows over it, in window order, whether it is
// their maximum: so no two threads write one place, and the order of the sum is fixed.
template <class T>
struct MaxPoolBackward {
  static constexpr const char* kName = "max_pool2d_backward";
  Pool2dShape s;
  const T* x;
  const T* dy;
  T* dx;

  std::int64_t count() const { return s.planes * s.height * s.width; }
  template <class See>
  void operands(See see) const {
    see.reads(x, count());
    see.reads(dy, s.planes * s.out_height() * s.out_width());
    see.writes(dx, count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % s.width;
    const std::int64_t row = i / s.width % s.height;
    const std::int64_t plane = i / s.width / s.height;
    const std::int64_t out_height = s.out_height(), out_width = s.out_width();
    T sum{};
    for (std::int64_t r = first_window(row); r < out_height && r * s.stride <= row; ++r) {
      for (std::int64_t c = first_window(column); c < out_width && c * s.stride <= column; ++c) {
        const std::int64_t corner = (plane * s.height + r * s.stride) * s.width + c * s.stride;
        if (window_maximum(s, x, corner) == i) {
          sum = sum + dy[(plane * out_height + r) * out_width + c];
        }
      }
    }
    dx[i] = sum;
  }
  // The first that reaches up to `place`.
  DDPROOF_HOST_DEVICE std::int64_t first_window(std::int64_t place) const {
    return place < s.kernel ? 0 : (place - s.kernel) / s.stride + 1;
  }
};

// One thread per row.
template <class T>
struct SoftmaxCrossEntropyRows {
  static constexpr const char* kName = "softmax_cross_entropy";
  std::int64_t rows;
  std::int64_t classes;
  const T* logits;
  const std::int64_t* targets;
  T* loss;
  T* gradient;

  template <class See>
  void operands(See see) const {
    see.reads(logits, rows * classes);
    see.reads(targets, rows);
    see.writes(loss, rows);
    see.writes(gradient, rows * classes);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    softmax_cross_entropy_row(classes, logits + i * classes, targets[i], loss[i],
                              gradient + i * classes);
  }
};

template <class T, SgdRule::Momentum kMomentum>
struct SgdUpdate {
  static constexpr const char* kName = "sgd_update";
  SgdRule rule;
  SgdFactors<T> factors;
  T* w;
  const T* gradient;
  T* buffer;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(gradient, count);
    if (kMomentum == SgdRule::Momentum::kFirst) see.writes(buffer, count);
    if (kMomentum == SgdRule::Momentum::kRunning) see.updates(buffer, count);
    see.updates(w, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    T* const b = kMomentum == SgdRule::Momentum::kNone ? nullptr : buffer + i;
    sgd_element<T, kMomentum>(rule, factors, w[i], gradient[i], b);
  }
};

template <class T, bool kAmsgrad>
struct AdamUpdate {
  static constexpr const char* kName = "adam_update";
  AdamRule::Decay decay;
  AdamFactors<T> factors;
  T* w;
  const T* gradient;
  AdamState<T> state;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(gradient, count);
    see.updates(state.exp_avg, count);
    see.updates(state.exp_avg_sq, count);
    if (kAmsgrad) see.updates(state.max_exp_avg_sq, count);
    see.updates(w, count);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    T* const largest = kAmsgrad ? state.max_exp_avg_sq + i : nullptr;
    adam_element<T, kAmsgrad>(decay, factors, w[i], gradient[i], state.exp_avg[i],
                              state.exp_avg_sq[i], largest);
  }
};

// One thread per lane.
template <class T, LaneSum kSum>
struct LaneSums {
  static constexpr const char* kName = "lane_sums";
  const T* x;
  T* sums;
  std::int64_t count;

  template <class See>
  void operands(See see) const {
    see.reads(x, count);
    see.writes(sums, kSumLanes);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t l) const {
    T sum{};
    for (std::int64_t i = l; i < count; i += kSumLanes) sum = lane_term<T, kSum>(x[i], sum);
    sums[l] = sum;
  }
};

}  // namespace ddproof::internal
