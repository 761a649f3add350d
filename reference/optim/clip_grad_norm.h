// Clipping of gradients by their global norm: torch.nn.utils.clip_grad_norm_ with the 2-norm.
//
// The norm is that of all gradients as one vector. Its squares are added in a fixed order
// (compute/lane_sums.h, the lanes and parameters in double), so it has the same bits on every
// device; they are not PyTorch's, which adds in another order.
// After DDP's backward all ranks hold the same gradients, averaged: so all find the same norm, and
// no group is needed. That holds for sharded optimizer state too, which shards no gradients.
// Stateless; one task at a time.
#pragma once

#include <cmath>
#include <concepts>
#include <numeric>
#include <string>
#include <vector>

#include "reference/compute/scalar.h"
#include "reference/optim/gradient_sums.h"

namespace ddproof {

// What a norm above `max_norm` is cut to, less this: PyTorch's guard against 0 / 0.
inline constexpr double kClipEpsilon = 1e-6;

struct ClipOptions {
  double max_norm = 1;  // infinity: none is cut
  // Whether a norm that is not finite is an error; else, as in PyTorch, it spoils all gradients.
  bool error_if_nonfinite = false;
};

// Throws ConfigError unless max_norm is at least 0.
void validate(const ClipOptions& options);

namespace internal {

// Throws ConfigError with the name of the first parameter whose square is not finite, if any.
void require_finite_squares(const std::vector<double>& squares,
                            const std::vector<std::string>& names);

}  // namespace internal

// Multiplies the gradients of the parameters that have one by max_norm / (norm + kClipEpsilon)
// where that is below 1. Returns the norm before; 0 when there is no gradient. Waits for the
// device. Throws ConfigError as validate() does, and as the options say; gradients are then
// untouched.
template <std::floating_point T>
double clip_grad_norm(const std::vector<Parameter<T>*>& parameters, const ClipOptions& options) {
  validate(options);
  const std::vector<Parameter<T>*> reached = with_gradient(parameters);
  const std::vector<double> squares = gradient_sums(LaneSum::kSquares, reached);
  std::vector<std::string> names;
  for (const Parameter<T>* parameter : reached) names.push_back(parameter->name);
  if (options.error_if_nonfinite) internal::require_finite_squares(squares, names);
  const double norm = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  const double factor = options.max_norm / (norm + kClipEpsilon);
  if (factor >= 1) return norm;
  for (Parameter<T>* parameter : reached) {
    Tensor<T>& gradient = parameter->gradient;
    gradient.device().scaled_copy(gradient.data(), gradient.data(), from_real<T>(factor),
                                  gradient.count());
  }
  return norm;
}

}  // namespace ddproof
