// How far a computed result may be from the exact one, or two computed results from each other:
// the a-priori bounds of rounding-error analysis, as functions. Used instead of tolerances.
//
// Notation: u is the unit roundoff of the arithmetic; gamma_h = h u / (1 - h u); a result whose
// every path from an input passes at most h roundings is off by at most gamma_h times the sum of
// the magnitudes that met in it. "Magnitude" arguments are such sums, taken over absolute values.
//
// Sources: N. Higham, Accuracy and Stability of Numerical Algorithms (2nd ed.), sections 3.1, 4.2
// and 2.1 (underflow); the table of inequalities in ORACLES section 2.
// Valid for finite results; an overflow is another matter, to be tested as such.
// Each bound is computed in double and rounded up by 2^-30 of itself, which covers its own rounding
// and that of a magnitude summed in double over up to 2^20 terms. Pure functions.
#pragma once

#include <cstdint>

#include "backends/api/half.h"

namespace ddproof {

// An arithmetic: its unit roundoff, and the error that gradual underflow may add to one rounding.
struct Precision {
  double unit_roundoff;
  double underflow;  // half of the smallest subnormal
};

template <class T>
struct PrecisionOf;
template <>
struct PrecisionOf<float> {
  static constexpr Precision kValue{0x1p-24, 0x1p-150};
};
template <>
struct PrecisionOf<double> {
  static constexpr Precision kValue{0x1p-53, 0x1p-1074};  // 2^-1075 is no double; rounded up
};
template <>
struct PrecisionOf<Float16> {
  static constexpr Precision kValue{0x1p-11, 0x1p-25};
};
template <>
struct PrecisionOf<BFloat16> {
  static constexpr Precision kValue{0x1p-8, 0x1p-134};
};

template <class T>
inline constexpr Precision kPrecisionOf = PrecisionOf<T>::kValue;

// h u / (1 - h u). Infinity when h u >= 1: the bound then says nothing.
// Requires: h >= 0.
double gamma(double h, const Precision& precision);

// Height of the addition tree of n terms: one after another, or balanced.
std::int64_t sequential_height(std::int64_t n);
std::int64_t balanced_height(std::int64_t n);
// m terms one after another on each of W ranks, then any order over the ranks: the worst of ring,
// tree and chain, (m-1) + (W-1).
std::int64_t all_reduce_height(std::int64_t m, std::int64_t world_size);

// |computed sum - exact sum|. `magnitude`: sum of |x_i|. (Higham 4.4; additions do not underflow.)
double sum_bound(std::int64_t height, const Precision& precision, double magnitude);

// |one computed sum - another of the same terms|.
double two_sums_bound(std::int64_t height_a, std::int64_t height_b, const Precision& precision,
                      double magnitude);

// |computed mean - exact mean| of `world_size` terms; `magnitude` as for the sum. Dividing is one
// more rounding, multiplying by the rounded reciprocal two; a power of two costs none. Either may
// come before or after the sum: each of the terms may underflow.
double mean_by_division_bound(std::int64_t height, std::int64_t world_size,
                              const Precision& precision, double magnitude);
double mean_by_reciprocal_bound(std::int64_t height, std::int64_t world_size,
                                const Precision& precision, double magnitude);

// |computed x.y - exact| for n products in any order, fused or not. `magnitude`: sum of |x_i y_i|.
double dot_product_bound(std::int64_t n, const Precision& precision, double magnitude);

// One SGD step (reference/optim/sgd.h), done twice from one state with gradients g1 and g2.
struct SgdStepMagnitudes {
  // The settings as rounded to the arithmetic's type; both runs share them.
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;    // the momentum buffer starts as the gradient, without dampening
  double weight = 0;          // |w|
  double buffer = 0;          // |v|
  double gradient = 0;        // the larger of |g1| and |g2|
  double gradient_bound = 0;  // on |g1 - g2|
};

// |w1 - w2| and |v1 - v2|. With plain momentum and decay five roundings meet in w, as ORACLES
// counts them; dampening adds one, Nesterov two. Fused operations only round less.
double sgd_weight_bound(const SgdStepMagnitudes& step, const Precision& precision);
double sgd_buffer_bound(const SgdStepMagnitudes& step, const Precision& precision);

}  // namespace ddproof
