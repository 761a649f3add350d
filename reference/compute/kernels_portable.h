// The kernels for any scalar, in plain C++: the definition that the vector kernels must equal.
//
// T offers what scalar.h asks. The compiler may vectorise over columns; that changes no bit.
#pragma once

#include "reference/compute/kernel_body.h"
#include "reference/compute/scalar.h"

namespace ddproof::internal {

template <class T>
concept Ordered = requires(const T& a, const T& b) {
  a <= b;
  a > b;
  a != b;
};

template <class T>
struct PortableVector {
  using Scalar = T;
  static constexpr int kWidth = 4, kRows = 2, kVectors = 2;
  static constexpr bool kOrdered = Ordered<T>;
  struct Vector {
    T lane[kWidth];
  };
  static Vector zero() { return {}; }
  static Vector load(const T* p) { return {p[0], p[1], p[2], p[3]}; }
  static void store(T* p, const Vector& v) {
    for (int i = 0; i < kWidth; ++i) p[i] = v.lane[i];
  }
  static Vector broadcast(const T& x) { return {x, x, x, x}; }
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    Vector result;
    for (int i = 0; i < kWidth; ++i) {
      result.lane[i] = multiply_add(a.lane[i], b.lane[i], c.lane[i]);
    }
    return result;
  }
};

}  // namespace ddproof::internal
