#include "reference/optim/sgd.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/api/error.h"

namespace ddproof {
namespace {

void check_sgd_value(const char* name, double value) {
  if (!(value >= 0) || std::isinf(value)) {
    throw ConfigError(fmt::format("SGD {} {}: expected a finite number, at least 0", name, value));
  }
}

}  // namespace

void validate(const SgdOptions& options) {
  check_sgd_value("lr", options.lr);
  check_sgd_value("momentum", options.momentum);
  check_sgd_value("weight_decay", options.weight_decay);
  if (!std::isfinite(options.dampening)) {
    throw ConfigError(fmt::format("SGD dampening {}: expected a finite number", options.dampening));
  }
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw ConfigError(
        fmt::format("SGD nesterov with momentum {} and dampening {}: expected a momentum above 0 "
                    "and dampening 0",
                    options.momentum, options.dampening));
  }
}

}  // namespace ddproof
