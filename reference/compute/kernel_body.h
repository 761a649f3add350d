// The micro-kernel, written once over a vector type V:
//
//   V::Scalar, V::kWidth                elements of one vector
//   V::kRows, V::kVectors               the tile of C that stays in registers: kRows x kVectors
//   V::kOrdered                         whether elements can be compared
//   zero(), load(p), store(p, v), broadcast(x), fma(a, b, c)
//
// Included by one translation unit per instruction set, which is compiled with that set's flags.
// So nothing here may be shared with other units: everything is a template over that unit's own V
// (in an unnamed namespace), and no header with inline functions is included.
//
// Register blocking after Goto, van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
// ACM TOMS 34(3), 2008.
#pragma once

#include <cstdint>

#include "reference/compute/kernels.h"

// Tiles stay in registers only when the loops over them are unrolled.
#define DDPROOF_UNROLL _Pragma("GCC unroll 16")

namespace ddproof::internal {

template <class V>
inline constexpr std::int64_t kPanelColumns = V::kVectors* V::kWidth;

// One tile of Rows x Vectors; c has row stride c_row and room for whole vectors.
template <class V, int Rows, int Vectors>
void multiply_tile(const Product<typename V::Scalar>& p, std::int64_t row,
                   const typename V::Scalar* b, typename V::Scalar* c, std::int64_t c_row) {
  using T = typename V::Scalar;
  using Vector = typename V::Vector;
  const T* a[Rows];
  DDPROOF_UNROLL
  for (int i = 0; i < Rows; ++i) a[i] = p.a + p.a_row[row + i];
  Vector sum[Rows][Vectors];
  DDPROOF_UNROLL
  for (int i = 0; i < Rows; ++i) {
    DDPROOF_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      if (p.start == Start::kContinue) {
        sum[i][j] = V::load(c + i * c_row + j * V::kWidth);
      } else {
        sum[i][j] = p.start == Start::kRowBias ? V::broadcast(p.bias[row + i]) : V::zero();
      }
    }
  }
  for (std::int64_t k = 0; k < p.depth; ++k) {
    const T* b_row = b + p.b_depth[k];
    const std::int64_t a_offset = p.a_depth[k];
    Vector factor[Vectors];
    DDPROOF_UNROLL
    for (int j = 0; j < Vectors; ++j) factor[j] = V::load(b_row + j * V::kWidth);
    DDPROOF_UNROLL
    for (int i = 0; i < Rows; ++i) {
      const Vector a_value = V::broadcast(a[i][a_offset]);
      DDPROOF_UNROLL
      for (int j = 0; j < Vectors; ++j) sum[i][j] = V::fma(a_value, factor[j], sum[i][j]);
    }
  }
  DDPROOF_UNROLL
  for (int i = 0; i < Rows; ++i) {
    DDPROOF_UNROLL
    for (int j = 0; j < Vectors; ++j) V::store(c + i * c_row + j * V::kWidth, sum[i][j]);
  }
}

// A tile whose last vector is partial: computed in a buffer of whole vectors.
template <class V, int Rows, int Vectors>
void multiply_edge_tile(const Product<typename V::Scalar>& p, std::int64_t row,
                        std::int64_t columns, const typename V::Scalar* b, typename V::Scalar* c) {
  constexpr std::int64_t kStride = Vectors * V::kWidth;
  typename V::Scalar buffer[Rows * kStride] = {};
  if (p.start == Start::kContinue) {
    for (int i = 0; i < Rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) buffer[i * kStride + j] = c[i * p.c_row + j];
    }
  }
  multiply_tile<V, Rows, Vectors>(p, row, b, buffer, kStride);
  for (int i = 0; i < Rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[i * p.c_row + j] = buffer[i * kStride + j];
  }
}

// The tiles of Rows rows of one panel; `columns` of it are wanted.
template <class V, int Rows, int Vectors>
void multiply_columns(const Product<typename V::Scalar>& p, std::int64_t row, std::int64_t columns,
                      const typename V::Scalar* b, typename V::Scalar* c) {
  if (columns == Vectors * V::kWidth) {
    multiply_tile<V, Rows, Vectors>(p, row, b, c, p.c_row);
  } else if constexpr (Vectors > 1) {
    if (columns <= (Vectors - 1) * V::kWidth) {
      multiply_columns<V, Rows, Vectors - 1>(p, row, columns, b, c);
    } else {
      multiply_edge_tile<V, Rows, Vectors>(p, row, columns, b, c);
    }
  } else {
    multiply_edge_tile<V, Rows, 1>(p, row, columns, b, c);
  }
}

template <class V, int Rows>
void multiply_rows(const Product<typename V::Scalar>& p, std::int64_t row, std::int64_t rows) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return multiply_rows<V, Rows - 1>(p, row, rows);
  }
  constexpr std::int64_t kColumns = kPanelColumns<V>;
  std::int64_t panel = 0;
  for (std::int64_t column = 0; column < p.columns; column += kColumns, ++panel) {
    const std::int64_t rest = p.columns - column;
    multiply_columns<V, Rows, V::kVectors>(p, row, rest < kColumns ? rest : kColumns,
                                           p.b + panel * p.b_panel,
                                           p.c + row * p.c_row + panel * p.c_panel);
  }
}

template <class V>
void multiply(const Product<typename V::Scalar>& p) {
  for (std::int64_t row = 0; row < p.rows; row += V::kRows) {
    multiply_rows<V, V::kRows>(p, row, p.rows - row);
  }
}

template <class V>
void axpy(typename V::Scalar* to, const typename V::Scalar* from, typename V::Scalar factor,
          std::int64_t count) {
  const auto factors = V::broadcast(factor);
  std::int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) {
    V::store(to + i, V::fma(factors, V::load(from + i), V::load(to + i)));
  }
  if (i == count) return;
  typename V::Scalar x[V::kWidth] = {}, y[V::kWidth] = {};
  for (std::int64_t j = i; j < count; ++j) x[j - i] = from[j], y[j - i] = to[j];
  V::store(y, V::fma(factors, V::load(x), V::load(y)));
  for (std::int64_t j = i; j < count; ++j) to[j] = y[j - i];
}

// A NaN moves the choice on, and no number moves it away from a NaN.
template <class V>
int exceeds(typename V::Scalar value, typename V::Scalar best) {
  return int(value > best) | int(value != value);
}

// Selections and arithmetic only, which compilers turn into vector code: branches would be
// mispredicted every other time.
template <class V, class T = typename V::Scalar>
void choose_2x2(const T* __restrict top, const T* __restrict bottom,
                std::int32_t* __restrict choice, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T best = top[2 * i];
    int moves = exceeds<V>(top[2 * i + 1], best);
    int chosen = moves;
    best = moves ? top[2 * i + 1] : best;
    moves = exceeds<V>(bottom[2 * i], best);
    chosen += (2 - chosen) * moves;
    best = moves ? bottom[2 * i] : best;
    moves = exceeds<V>(bottom[2 * i + 1], best);
    choice[i] = chosen + (3 - chosen) * moves;
  }
}

template <class V>
constexpr Kernels<typename V::Scalar> make_kernels() {
  Kernels<typename V::Scalar> kernels = {kPanelColumns<V>, multiply<V>, axpy<V>, nullptr};
  if constexpr (V::kOrdered) kernels.choose_2x2 = choose_2x2<V>;
  return kernels;
}

template <class V>
inline constexpr Kernels<typename V::Scalar> kKernels = make_kernels<V>();

}  // namespace ddproof::internal

#undef DDPROOF_UNROLL
