// The one inner product that linear and convolution layers are made of, per instruction set.
//
// C[i][j] = start + sum over k ascending of A[i][k] * B[k][j], a chain of fused multiply-adds.
// Vector lanes hold different j, so every element has the same chain on every instruction set.
// A and B are read through offset tables. That lets one kernel serve a matrix, a transposed matrix
// and the overlapping windows of an image without copying them.
//
// Stateless; any thread.
#pragma once

#include <cstdint>

#include "reference/compute/isa.h"

namespace ddproof {

enum class Start {
  kZero,
  kRowBias,   // bias[i]
  kContinue,  // C[i][j] as it is: cutting k into parts gives the same bits
};

// A[i][k] = a[a_row[i] + a_depth[k]].
// B[k][j] = b[(j / P) * b_panel + b_depth[k] + j % P], P = Kernels::panel_columns; readable up to
// the end of the last, possibly partial panel.
// C[i][j] = c[i * c_row + (j / P) * c_panel + j % P]; only columns < `columns` are touched.
template <class T>
struct Product {
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  const T* a = nullptr;
  const std::int64_t* a_row = nullptr;
  const std::int64_t* a_depth = nullptr;
  const T* b = nullptr;
  const std::int64_t* b_depth = nullptr;
  std::int64_t b_panel = 0;
  T* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t c_panel = 0;
  Start start = Start::kZero;
  const T* bias = nullptr;
};

template <class T>
struct Kernels {
  std::int64_t panel_columns;
  void (*multiply)(const Product<T>& product);
  // to[i] = fma(factor, from[i], to[i])
  void (*axpy)(T* to, const T* from, T factor, std::int64_t count);
  // For one row of 2x2 windows, 2 apart, over the input rows `top` and `bottom`: which element is
  // the first largest (0 and 1 above, 2 and 3 below); a NaN is larger than any number, the last
  // NaN is chosen. Null where T has no order.
  void (*choose_2x2)(const T* top, const T* bottom, std::int32_t* choice, std::int64_t count);
};

// The portable kernels exist for every T (kernel_body.h); the others for float and double.
const Kernels<float>& avx2_kernels_float();
const Kernels<double>& avx2_kernels_double();
const Kernels<float>& avx512_kernels_float();
const Kernels<double>& avx512_kernels_double();

}  // namespace ddproof
