// The arithmetic of one SGD update; see reference/optim/sgd.h for the formula.
//
// On host memory float and double run on the widest vectors that the processor has; other types run
// the same loop as written. All give the same bits everywhere: every element is independent, and
// the fused multiply-add rounds once by definition.
#pragma once

#include <cstdint>

#include "reference/compute/scalar.h"
#include "reference/compute/sgd_rule.h"

namespace ddproof {

namespace internal {

// One element. `buffer` is neither read nor written without momentum.
template <class T, SgdRule::Momentum kMomentum>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline void sgd_element(const SgdRule& rule,
                                                                   const SgdFactors<T>& factors,
                                                                   T& w, T gradient, T* buffer) {
  T g = gradient;
  if (rule.decays) g = multiply_add(w, factors.weight_decay, g);
  if constexpr (kMomentum != SgdRule::Momentum::kNone) {
    T b = g;
    if constexpr (kMomentum == SgdRule::Momentum::kRunning) {
      b = multiply_add(g, factors.one_minus_dampening, T(*buffer * factors.momentum));
    }
    *buffer = b;
    g = rule.nesterov ? multiply_add(b, factors.momentum, g) : b;
  }
  w = multiply_add(g, factors.minus_lr, w);
}

template <class T, SgdRule::Momentum kMomentum>
[[gnu::always_inline]] inline void sgd_loop(const SgdRule& rule, const SgdFactors<T>& factors,
                                            T* __restrict w, const T* __restrict gradient,
                                            T* __restrict buffer, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T* const b = kMomentum == SgdRule::Momentum::kNone ? nullptr : buffer + i;
    sgd_element<T, kMomentum>(rule, factors, w[i], gradient[i], b);
  }
}

template <class T>
[[gnu::always_inline]] inline void sgd_loops(const SgdRule& rule, const SgdFactors<T>& factors,
                                             T* w, const T* gradient, T* buffer,
                                             std::int64_t count) {
  switch (rule.momentum) {
    case SgdRule::Momentum::kNone:
      return sgd_loop<T, SgdRule::Momentum::kNone>(rule, factors, w, gradient, buffer, count);
    case SgdRule::Momentum::kFirst:
      return sgd_loop<T, SgdRule::Momentum::kFirst>(rule, factors, w, gradient, buffer, count);
    case SgdRule::Momentum::kRunning:
      return sgd_loop<T, SgdRule::Momentum::kRunning>(rule, factors, w, gradient, buffer, count);
  }
}

}  // namespace internal

// Updates w, and the momentum buffer where the rule has momentum, in place.
// Requires: the ranges hold count elements and do not overlap; the buffer may be null without
//           momentum. With kFirst, what it held is not read.
template <class T>
void sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                T* buffer, std::int64_t count) {
  internal::sgd_loops(rule, factors, w, gradient, buffer, count);
}
template <>
void sgd_update(const SgdRule& rule, const SgdFactors<float>& factors, float* w,
                const float* gradient, float* buffer, std::int64_t count);
template <>
void sgd_update(const SgdRule& rule, const SgdFactors<double>& factors, double* w,
                const double* gradient, double* buffer, std::int64_t count);

}  // namespace ddproof
