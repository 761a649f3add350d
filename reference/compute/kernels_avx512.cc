// Compiled with -mavx512f; called only where the processor has it.
#include <immintrin.h>

#include "reference/compute/kernel_body.h"

namespace ddproof {
namespace {

struct FloatVector {
  using Scalar = float;
  using Vector = __m512;
  static constexpr int kWidth = 16, kRows = 8, kVectors = 2;
  static constexpr bool kOrdered = true;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};

struct DoubleVector {
  using Scalar = double;
  using Vector = __m512d;
  static constexpr int kWidth = 8, kRows = 8, kVectors = 2;
  static constexpr bool kOrdered = true;
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
};

}  // namespace

const Kernels<float>& avx512_kernels_float() { return internal::kKernels<FloatVector>; }
const Kernels<double>& avx512_kernels_double() { return internal::kKernels<DoubleVector>; }

}  // namespace ddproof
