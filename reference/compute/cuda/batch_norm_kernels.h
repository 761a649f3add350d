// Kernels of batch norm, with one thread per plane, channel or element. The bodies are
// batch_norm.h's, which the CPU runs too.
#pragma once

#include <cstdint>

#include "reference/compute/batch_norm.h"
#include "reference/compute/device.h"
#include "reference/compute/host_device.h"

namespace ddproof::internal {

// One thread per plane. Term: PlaneSum, PlaneSquares or PlaneProducts.
template <class T, class Term>
struct SumPlanes {
  static constexpr const char* kName = "batch_norm_sums";
  BatchNormShape s;
  Term term;
  Wide<T>* sums;

  template <class See>
  void operands(See see) const {
    see_operands(see, s, term);
    see.writes(sums, s.planes());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t plane) const {
    Wide<T> sum{};
    for (std::int64_t p = 0; p < s.positions; ++p) {
      term.add(plane % s.channels, plane * s.positions + p, sum);
    }
    sums[plane] = sum;
  }
};

template <class See, class T>
void see_operands(See& see, const BatchNormShape& s, const PlaneSum<T>& term) {
  see.reads(term.x, s.count());
}
template <class See, class T>
void see_operands(See& see, const BatchNormShape& s, const PlaneSquares<T>& term) {
  see.reads(term.x, s.count());
  see.reads(term.means, s.channels);
}
template <class See, class T>
void see_operands(See& see, const BatchNormShape& s, const PlaneProducts<T>& term) {
  see.reads(term.x, s.count());
  see.reads(term.dy, s.count());
  see.reads(term.mean, s.channels);
  see.reads(term.inverse_deviation, s.channels);
}

// One thread per channel: the sum of its planes, or their mean; `wide` keeps the digits, if wanted.
template <class T>
struct SumChannels {
  static constexpr const char* kName = "batch_norm_channels";
  BatchNormShape s;
  const Wide<T>* planes;
  bool divides;
  T* result;
  Wide<T>* wide;

  template <class See>
  void operands(See see) const {
    see.reads(planes, s.planes());
    see.writes(result, s.channels);
    if (wide != nullptr) see.writes(wide, s.channels);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t c) const {
    const Wide<T> value = divides ? channel_mean(s, planes + c) : channel_sum(s, planes + c);
    result[c] = static_cast<T>(value);
    if (wide != nullptr) wide[c] = value;
  }
};

template <class T>
struct InverseDeviations {
  static constexpr const char* kName = "inverse_deviations";
  std::int64_t channels;
  const T* variance;
  double eps;
  T* result;

  template <class See>
  void operands(See see) const {
    see.reads(variance, channels);
    see.writes(result, channels);
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t c) const {
    result[c] = inverse_deviation(variance[c], eps);
  }
};

template <class T>
struct BatchNormForward {
  static constexpr const char* kName = "batch_norm_forward";
  BatchNormShape s;
  ChannelStatistics<T> of;
  const T* x;
  const T* w;
  const T* bias;
  T* y;

  template <class See>
  void operands(See see) const {
    see.reads(of.mean, s.channels);
    see.reads(of.inverse_deviation, s.channels);
    see.reads(x, s.count());
    if (w != nullptr) see.reads(w, s.channels);
    if (bias != nullptr) see.reads(bias, s.channels);
    see.writes(y, s.count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = i / s.positions % s.channels;
    y[i] =
        batch_norm_value(x[i], of.mean[c], of.inverse_deviation[c], or_one(w, c), or_zero(bias, c));
  }
};

template <class T>
struct BatchNormBackwardInput {
  static constexpr const char* kName = "batch_norm_backward_input";
  BatchNormShape s;
  ChannelStatistics<T> of;
  const T* x;
  const T* dy;
  const T* w;
  const T* mean_dy;
  const T* mean_dy_x;
  T* dx;

  template <class See>
  void operands(See see) const {
    see.reads(of.mean, s.channels);
    see.reads(of.inverse_deviation, s.channels);
    see.reads(mean_dy, s.channels);
    see.reads(mean_dy_x, s.channels);
    see.reads(x, s.count());
    see.reads(dy, s.count());
    if (w != nullptr) see.reads(w, s.channels);
    see.writes(dx, s.count());
  }
  DDPROOF_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t c = i / s.positions % s.channels;
    const T scale = of.inverse_deviation[c] * or_one(w, c);
    dx[i] = batch_norm_gradient(x[i], dy[i], of.mean[c], of.inverse_deviation[c], scale, mean_dy[c],
                                mean_dy_x[c]);
  }
};

}  // namespace ddproof::internal
