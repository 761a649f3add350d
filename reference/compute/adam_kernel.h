// The arithmetic of one Adam update; see reference/optim/adam.h for the formula.
//
// As sgd_kernel.h: float and double run on the widest vectors that the processor has, and all give
// the same bits everywhere, since every element is independent and each fused multiply-add, square
// root and quotient rounds once by definition (IEEE 754).
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/compute/adam_rule.h"
#include "reference/compute/scalar.h"

namespace ddproof {

namespace internal {

// What Adam asks of a scalar beyond scalar.h.
template <class T>
concept HasSquareRoot = requires(const T& a) {
  sqrt(a);
  a / a;
  a > a;
  a != a;
};

// One element. max_exp_avg_sq is neither read nor written without amsgrad; there a NaN stays one.
template <class T, bool kAmsgrad>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline void adam_element(AdamRule::Decay decay,
                                                                    const AdamFactors<T>& factors,
                                                                    T& w, T gradient, T& exp_avg,
                                                                    T& exp_avg_sq,
                                                                    T* max_exp_avg_sq) {
  using std::sqrt;
  T g = gradient;
  if (decay == AdamRule::Decay::kGradient) g = multiply_add(w, factors.decay, g);
  if (decay == AdamRule::Decay::kWeight) w = w * factors.decay;
  const T m = multiply_add(g, factors.one_minus_beta1, T(exp_avg * factors.beta1));
  const T v = multiply_add(T(factors.one_minus_beta2 * g), g, T(exp_avg_sq * factors.beta2));
  exp_avg = m;
  exp_avg_sq = v;
  T second = v;
  if constexpr (kAmsgrad) {
    const T largest = *max_exp_avg_sq;
    second = v > largest || v != v ? v : largest;
    *max_exp_avg_sq = second;
  }
  const T denominator = T(sqrt(second) / factors.sqrt_correction) + factors.eps;
  w = w + T(factors.minus_step_size * m) / denominator;
}

template <class T, bool kAmsgrad>
[[gnu::always_inline]] inline void adam_loop(AdamRule::Decay decay, const AdamFactors<T>& factors,
                                             T* __restrict w, const T* __restrict gradient,
                                             T* __restrict exp_avg, T* __restrict exp_avg_sq,
                                             T* __restrict max_exp_avg_sq, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T* const largest = kAmsgrad ? max_exp_avg_sq + i : nullptr;
    adam_element<T, kAmsgrad>(decay, factors, w[i], gradient[i], exp_avg[i], exp_avg_sq[i],
                              largest);
  }
}

template <class T>
[[gnu::always_inline]] inline void adam_loops(const AdamRule& rule, const AdamFactors<T>& factors,
                                              T* w, const T* gradient, const AdamState<T>& state,
                                              std::int64_t count) {
  if (rule.amsgrad) {
    adam_loop<T, true>(rule.decay, factors, w, gradient, state.exp_avg, state.exp_avg_sq,
                       state.max_exp_avg_sq, count);
  } else {
    adam_loop<T, false>(rule.decay, factors, w, gradient, state.exp_avg, state.exp_avg_sq, nullptr,
                        count);
  }
}

}  // namespace internal

// Updates w and the state in place.
// Requires: the ranges hold count elements and do not overlap.
template <class T>
void adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w, const T* gradient,
                 const AdamState<T>& state, std::int64_t count) {
  internal::adam_loops(rule, factors, w, gradient, state, count);
}
template <>
void adam_update(const AdamRule& rule, const AdamFactors<float>& factors, float* w,
                 const float* gradient, const AdamState<float>& state, std::int64_t count);
template <>
void adam_update(const AdamRule& rule, const AdamFactors<double>& factors, double* w,
                 const double* gradient, const AdamState<double>& state, std::int64_t count);

}  // namespace ddproof
