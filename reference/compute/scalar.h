// What the templates ask of a scalar type beyond + - * and ==: made from integers and reals, and
// multiplied and added.
//
// float and double work as they are. Another scalar (an element of a finite field, a value with its
// error bound) specialises ScalarTraits; one that rounds also has fma(T, T, T) in its namespace.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/compute/host_device.h"

namespace ddproof {

template <class T>
struct ScalarTraits {
  DDPROOF_HOST_DEVICE static T from_integer(std::int64_t value) { return static_cast<T>(value); }
  // A setting such as the learning rate, rounded once.
  DDPROOF_HOST_DEVICE static T from_real(double value) { return static_cast<T>(value); }
  // 1/value, as PyTorch's DDP rounds it: in double, then to T. Requires: value > 0.
  static T reciprocal_of(std::int64_t value) {
    return static_cast<T>(1.0 / static_cast<double>(value));
  }
};

template <class T>
DDPROOF_HOST_DEVICE T from_integer(std::int64_t value) {
  return ScalarTraits<T>::from_integer(value);
}

template <class T>
DDPROOF_HOST_DEVICE T from_real(double value) {
  return ScalarTraits<T>::from_real(value);
}

template <class T>
T reciprocal_of(std::int64_t value) {
  return ScalarTraits<T>::reciprocal_of(value);
}

// a * b + c, rounded once where T rounds. Inlined always: its caller may be compiled for a
// processor that has an instruction for it.
template <class T>
[[gnu::always_inline]] DDPROOF_HOST_DEVICE inline T multiply_add(const T& a, const T& b,
                                                                 const T& c) {
  using std::fma;
  if constexpr (requires { fma(a, b, c); }) {
    return fma(a, b, c);
  } else {
    return a * b + c;
  }
}

}  // namespace ddproof
