// Compiled with -mavx2 -mfma; called only where the processor has both.
#include <immintrin.h>

#include "reference/compute/kernel_body.h"

namespace ddproof {
namespace {

struct FloatVector {
  using Scalar = float;
  using Vector = __m256;
  static constexpr int kWidth = 8, kRows = 6, kVectors = 2;
  static constexpr bool kOrdered = true;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

struct DoubleVector {
  using Scalar = double;
  using Vector = __m256d;
  static constexpr int kWidth = 4, kRows = 6, kVectors = 2;
  static constexpr bool kOrdered = true;
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
};

}  // namespace

const Kernels<float>& avx2_kernels_float() { return internal::kKernels<FloatVector>; }
const Kernels<double>& avx2_kernels_double() { return internal::kKernels<DoubleVector>; }

}  // namespace ddproof
