#include "reference/optim/adam.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "backends/api/error.h"

namespace ddproof {
namespace {

void check_not_negative(const std::string& name, double value) {
  if (!(value >= 0) || std::isinf(value)) {
    throw ConfigError(fmt::format("{} {}: expected a finite number, at least 0", name, value));
  }
}

void check_beta(const std::string& name, double value) {
  if (!(value >= 0 && value < 1)) {
    throw ConfigError(fmt::format("{} {}: expected at least 0 and below 1", name, value));
  }
}

}  // namespace

void validate(const AdamOptions& options) {
  const std::string who = options.decoupled ? "AdamW " : "Adam ";
  check_not_negative(who + "lr", options.lr);
  check_not_negative(who + "eps", options.eps);
  check_beta(who + "beta1", options.beta1);
  check_beta(who + "beta2", options.beta2);
  check_not_negative(who + "weight_decay", options.weight_decay);
}

namespace internal {

AdamFactors<double> adam_factors(const AdamOptions& options, std::int64_t updates) {
  const auto t = static_cast<double>(updates);
  return {
      .decay = options.decoupled ? 1 - options.lr * options.weight_decay : options.weight_decay,
      .beta1 = options.beta1,
      .one_minus_beta1 = 1 - options.beta1,
      .beta2 = options.beta2,
      .one_minus_beta2 = 1 - options.beta2,
      .sqrt_correction = std::sqrt(1 - std::pow(options.beta2, t)),
      .eps = options.eps,
      .minus_step_size = -(options.lr / (1 - std::pow(options.beta1, t))),
  };
}

}  // namespace internal
}  // namespace ddproof
