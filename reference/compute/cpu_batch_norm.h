// Batch norm as loops over planes. Several planes are summed at once: each is a chain of its own,
// and one chain alone would wait for every addition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/compute/batch_norm.h"
#include "reference/compute/device.h"
#include "reference/compute/isa.h"

namespace ddproof::internal {

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_with_avx2(const Body& body) {
  body();
}
#endif

// With an instruction for the fused multiply-add, which is a call otherwise; the bits are the same.
template <class Body>
[[gnu::flatten]] void run_fused(const Body& body) {
#if defined(__x86_64__)
  if (best_isa() != Isa::kPortable) return run_with_avx2(body);
#endif
  body();
}

template <std::int64_t kPlanes, class W, class Term>
[[gnu::always_inline]] inline void sum_planes_at_once(const BatchNormShape& s, std::int64_t plane,
                                                      const Term& term, W* sums) {
  W chains[kPlanes] = {};
  std::int64_t channels[kPlanes];
  for (std::int64_t i = 0; i < kPlanes; ++i) channels[i] = (plane + i) % s.channels;
  for (std::int64_t p = 0; p < s.positions; ++p) {
    for (std::int64_t i = 0; i < kPlanes; ++i) {
      term.add(channels[i], (plane + i) * s.positions + p, chains[i]);
    }
  }
  for (std::int64_t i = 0; i < kPlanes; ++i) sums[plane + i] = chains[i];
}

// sums[plane] = the chain of the plane's terms.
template <class W, class Term>
void sum_planes(const BatchNormShape& s, const Term& term, W* sums) {
  constexpr std::int64_t kAtOnce = 8;
  run_fused([&] {
    std::int64_t plane = 0;
    for (; plane + kAtOnce <= s.planes(); plane += kAtOnce) {
      sum_planes_at_once<kAtOnce>(s, plane, term, sums);
    }
    for (; plane < s.planes(); ++plane) sum_planes_at_once<1>(s, plane, term, sums);
  });
}

template <class T>
void batch_norm_statistics(const BatchNormShape& s, const T* x, T* mean, T* variance) {
  std::vector<Wide<T>> sums(static_cast<std::size_t>(s.planes()));
  std::vector<Wide<T>> means(static_cast<std::size_t>(s.channels));
  sum_planes(s, PlaneSum<T>{x}, sums.data());
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const Wide<T> value = channel_mean(s, sums.data() + c);
    means[static_cast<std::size_t>(c)] = value;
    mean[c] = static_cast<T>(value);
  }
  sum_planes(s, PlaneSquares<T>{x, means.data()}, sums.data());
  for (std::int64_t c = 0; c < s.channels; ++c) {
    variance[c] = static_cast<T>(channel_mean(s, sums.data() + c));
  }
}

template <class T>
void batch_norm_forward(const BatchNormShape& s, const ChannelStatistics<T>& of,
                        const T* __restrict x, const T* w, const T* bias, T* __restrict y) {
  run_fused([&] {
    for (std::int64_t plane = 0; plane < s.planes(); ++plane) {
      const std::int64_t c = plane % s.channels;
      const T mean = of.mean[c], inverse = of.inverse_deviation[c];
      const T weight = or_one(w, c), offset = or_zero(bias, c);
      const std::int64_t first = plane * s.positions;
      for (std::int64_t i = first; i < first + s.positions; ++i) {
        y[i] = batch_norm_value(x[i], mean, inverse, weight, offset);
      }
    }
  });
}

template <class T>
void batch_norm_backward_sums(const BatchNormShape& s, const ChannelStatistics<T>& of, const T* x,
                              const T* dy, T* sum_dy, T* sum_dy_x) {
  std::vector<Wide<T>> sums(static_cast<std::size_t>(s.planes()));
  sum_planes(s, PlaneSum<T>{dy}, sums.data());
  for (std::int64_t c = 0; c < s.channels; ++c) {
    sum_dy[c] = static_cast<T>(channel_sum(s, sums.data() + c));
  }
  sum_planes(s, PlaneProducts<T>{x, dy, of.mean, of.inverse_deviation}, sums.data());
  for (std::int64_t c = 0; c < s.channels; ++c) {
    sum_dy_x[c] = static_cast<T>(channel_sum(s, sums.data() + c));
  }
}

template <class T>
void batch_norm_backward_input(const BatchNormShape& s, const ChannelStatistics<T>& of,
                               const T* __restrict x, const T* __restrict dy, const T* w,
                               const T* mean_dy, const T* mean_dy_x, T* __restrict dx) {
  run_fused([&] {
    for (std::int64_t plane = 0; plane < s.planes(); ++plane) {
      const std::int64_t c = plane % s.channels;
      const T mean = of.mean[c], inverse = of.inverse_deviation[c];
      const T of_dy = mean_dy[c], of_dy_x = mean_dy_x[c], scale = inverse * or_one(w, c);
      const std::int64_t first = plane * s.positions;
      for (std::int64_t i = first; i < first + s.positions; ++i) {
        dx[i] = batch_norm_gradient(x[i], dy[i], mean, inverse, scale, of_dy, of_dy_x);
      }
    }
  });
}

}  // namespace ddproof::internal
