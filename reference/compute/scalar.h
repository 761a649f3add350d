// What the templates ask of a scalar type beyond + - * and ==: made from integers and reals.
//
// float and double work as they are. Another scalar (an element of a finite field, a value with its
// error bound) specialises ScalarTraits.
#pragma once

#include <cstdint>

namespace ddproof {

template <class T>
struct ScalarTraits {
  static T from_integer(std::int64_t value) { return static_cast<T>(value); }
  // A setting such as the learning rate, rounded once.
  static T from_real(double value) { return static_cast<T>(value); }
  // 1/value, as PyTorch's DDP rounds it: in double, then to T. Requires: value > 0.
  static T reciprocal_of(std::int64_t value) {
    return static_cast<T>(1.0 / static_cast<double>(value));
  }
};

template <class T>
T from_integer(std::int64_t value) {
  return ScalarTraits<T>::from_integer(value);
}

template <class T>
T from_real(double value) {
  return ScalarTraits<T>::from_real(value);
}

template <class T>
T reciprocal_of(std::int64_t value) {
  return ScalarTraits<T>::reciprocal_of(value);
}

}  // namespace ddproof
