#include "reference/optim/grad_scaler.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "backends/api/error.h"

namespace ddproof {
namespace {

[[noreturn]] void refuse_scaler(const std::string& what, const std::string& expected) {
  throw ConfigError("GradScaler " + what + ", expected " + expected);
}

// As float holds it in full precision, its reciprocal too.
bool is_scale(double value) {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  return value >= kSmallest && value <= 1 / kSmallest;
}

void check_scale(const char* name, double value) {
  if (!is_scale(value)) refuse_scaler(fmt::format("{} {}", name, value), "2^-126 to 2^126");
}

}  // namespace

void validate(const GradScalerOptions& o) {
  check_scale("init_scale", o.init_scale);
  if (!(o.growth_factor > 1) || std::isinf(o.growth_factor)) {
    refuse_scaler(fmt::format("growth_factor {}", o.growth_factor), "a finite number above 1");
  }
  if (!(o.backoff_factor > 0 && o.backoff_factor < 1)) {
    refuse_scaler(fmt::format("backoff_factor {}", o.backoff_factor), "above 0 and below 1");
  }
  if (o.growth_interval < 1) {
    refuse_scaler(fmt::format("growth_interval {}", o.growth_interval), "at least 1");
  }
}

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), state_{.scale = options.init_scale} {
  validate(options);
}

void GradScaler::begin_unscale() {
  if (unscaled_) {
    throw ConfigError(
        "GradScaler: unscale() twice without update() between; call each once a step");
  }
  unscaled_ = true;
}

bool GradScaler::agree(bool found_nonfinite, ProcessGroup* group) {
  std::array<std::int64_t, 1> found{found_nonfinite ? 1 : 0};
  if (group != nullptr) {
    group->all_reduce(Buffer::of(found), ReduceOp::kMax, {.label = "found_inf"})->wait();
  }
  found_nonfinite_ = found[0] != 0;
  return !found_nonfinite_;
}

void GradScaler::update() {
  if (!unscaled_) {
    throw ConfigError("GradScaler: update() without unscale() before; call each once a step");
  }
  unscaled_ = false;
  if (found_nonfinite_) {
    const double smaller = state_.scale * options_.backoff_factor;
    if (!is_scale(smaller)) {
      throw ConfigError(fmt::format(
          "GradScaler: gradients are not finite at the scale {} either; lower the learning rate, "
          "or look at the data",
          state_.scale));
    }
    state_ = {.scale = smaller};
    return;
  }
  if (++state_.growth_tracker < options_.growth_interval) return;
  const double larger = state_.scale * options_.growth_factor;
  state_ = {.scale = is_scale(larger) ? larger : state_.scale};
}

void GradScaler::load_state(const State& state) {
  check_scale("scale", state.scale);
  if (state.growth_tracker < 0 || state.growth_tracker >= options_.growth_interval) {
    refuse_scaler(fmt::format("growth_tracker {}", state.growth_tracker),
                  fmt::format("0 to {}", options_.growth_interval - 1));
  }
  state_ = state;
}

}  // namespace ddproof
