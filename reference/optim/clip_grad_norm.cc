#include "reference/optim/clip_grad_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/api/error.h"

namespace ddproof {

void validate(const ClipOptions& options) {
  if (options.max_norm >= 0) return;
  throw ConfigError(
      fmt::format("clip_grad_norm max_norm {}: expected at least 0", options.max_norm));
}

namespace internal {

void require_finite_squares(const std::vector<double>& squares,
                            const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (std::isfinite(squares[i])) continue;
    throw ConfigError(fmt::format(
        "clip_grad_norm: the squares of the gradient of {} add up to {}, so gradients cannot be "
        "clipped; lower the learning rate, or look at the data",
        names[i], std::fabs(squares[i])));
  }
}

}  // namespace internal
}  // namespace ddproof
