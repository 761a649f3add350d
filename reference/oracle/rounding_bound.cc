#include "reference/oracle/rounding_bound.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/api/check.h"

namespace ddproof {
namespace {

double rounded_up(double bound) { return bound * (1 + 0x1p-30); }

bool is_power_of_two(std::int64_t value) {
  return std::has_single_bit(static_cast<std::uint64_t>(value));
}

double mean_bound(std::int64_t height, std::int64_t more_roundings, std::int64_t world_size,
                  const Precision& precision, double magnitude) {
  DDPROOF_CHECK(world_size > 0);
  const auto ranks = static_cast<double>(world_size);
  const std::int64_t h = height + (is_power_of_two(world_size) ? 0 : more_roundings);
  return rounded_up(gamma(static_cast<double>(h), precision) * magnitude / ranks +
                    (1 + gamma(static_cast<double>(h), precision)) * ranks * precision.underflow);
}

// The update without the weight, from magnitudes: what lr multiplies.
struct Update {
  double buffer;       // of |v| after the step
  double step;         // of the direction
  double sensitivity;  // of the direction to the gradient
  int buffer_roundings;
  int roundings;
};

Update magnitudes_of(const SgdStepMagnitudes& s) {
  const double fresh = s.first_step ? 1 : 1 - s.dampening;
  const double direct = s.gradient + s.weight_decay * s.weight;
  Update update{};
  update.buffer = fresh * direct + (s.first_step ? 0 : s.momentum * s.buffer);
  update.step = s.nesterov ? direct + s.momentum * update.buffer : update.buffer;
  update.sensitivity = s.nesterov ? 1 + s.momentum * fresh : fresh;
  const int damped = s.dampening != 0 ? 1 : 0;
  update.buffer_roundings = 3 + damped;                  // decay: *, +; momentum: +
  update.roundings = 5 + damped + (s.nesterov ? 2 : 0);  // and lr: *, +
  return update;
}

}  // namespace

double gamma(double h, const Precision& precision) {
  DDPROOF_CHECK(h >= 0);
  const double hu = h * precision.unit_roundoff;
  return hu < 1 ? hu / (1 - hu) : std::numeric_limits<double>::infinity();
}

std::int64_t sequential_height(std::int64_t n) { return n > 1 ? n - 1 : 0; }

std::int64_t balanced_height(std::int64_t n) {
  return n > 1 ? static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n - 1))) : 0;
}

std::int64_t all_reduce_height(std::int64_t m, std::int64_t world_size) {
  return sequential_height(m) + sequential_height(world_size);
}

double sum_bound(std::int64_t height, const Precision& precision, double magnitude) {
  return rounded_up(gamma(static_cast<double>(height), precision) * magnitude);
}

double two_sums_bound(std::int64_t height_a, std::int64_t height_b, const Precision& precision,
                      double magnitude) {
  return sum_bound(height_a, precision, magnitude) + sum_bound(height_b, precision, magnitude);
}

double mean_by_division_bound(std::int64_t height, std::int64_t world_size,
                              const Precision& precision, double magnitude) {
  return mean_bound(height, 1, world_size, precision, magnitude);
}

double mean_by_reciprocal_bound(std::int64_t height, std::int64_t world_size,
                                const Precision& precision, double magnitude) {
  return mean_bound(height, 2, world_size, precision, magnitude);
}

double dot_product_bound(std::int64_t n, const Precision& precision, double magnitude) {
  const auto terms = static_cast<double>(n);
  return rounded_up(gamma(terms, precision) * magnitude + terms * precision.underflow);
}

double sgd_weight_bound(const SgdStepMagnitudes& s, const Precision& precision) {
  const Update update = magnitudes_of(s);
  const double g = gamma(update.roundings, precision);
  return rounded_up(s.lr * (1 + g) * update.sensitivity * s.gradient_bound +
                    2 * g * (s.weight + s.lr * update.step) +
                    2 * update.roundings * std::max(1.0, s.lr) * precision.underflow);
}

double sgd_buffer_bound(const SgdStepMagnitudes& s, const Precision& precision) {
  const Update update = magnitudes_of(s);
  const double g = gamma(update.buffer_roundings, precision);
  const double fresh = s.first_step ? 1 : 1 - s.dampening;
  return rounded_up((1 + g) * fresh * s.gradient_bound + 2 * g * update.buffer +
                    2 * update.buffer_roundings * precision.underflow);
}

}  // namespace ddproof
