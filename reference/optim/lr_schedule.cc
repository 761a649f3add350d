#include "reference/optim/lr_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

using Kind = LrSchedule::Kind;

[[noreturn]] void refuse_schedule(const std::string& what, const std::string& expected) {
  throw ConfigError("learning-rate schedule: " + what + ", expected " + expected);
}

void check_schedule_value(const char* name, double value) {
  if (value >= 0 && std::isfinite(value)) return;
  refuse_schedule(fmt::format("{} is {}", name, value), "a finite number, at least 0");
}

// `t` counts from the end of the warmup.
double main_rate(const LrSchedule& s, double base, std::int64_t t) {
  switch (s.kind) {
    case Kind::kConstant: return base;
    case Kind::kStep: return base * std::pow(s.gamma, static_cast<double>(t / s.period));
    case Kind::kMultiStep: {
      const auto passed = std::ranges::count_if(s.milestones, [t](auto m) { return m <= t; });
      return base * std::pow(s.gamma, static_cast<double>(passed));
    }
    case Kind::kCosine: {
      const double angle = std::numbers::pi * static_cast<double>(std::min(t, s.period)) /
                           static_cast<double>(s.period);
      return s.min_lr + (base - s.min_lr) * (1 + std::cos(angle)) / 2;
    }
    case Kind::kPolynomial: {
      const double done =
          static_cast<double>(std::min(t, s.period)) / static_cast<double>(s.period);
      return base * std::pow(1 - done, s.power);
    }
  }
  DDPROOF_CHECK(false);
}

std::string describe_main(const LrSchedule& s) {
  switch (s.kind) {
    case Kind::kConstant: return "constant";
    case Kind::kStep: return fmt::format("step {} every {}", s.gamma, s.period);
    case Kind::kMultiStep:
      return fmt::format("multistep {} at {}", s.gamma, fmt::join(s.milestones, ","));
    case Kind::kCosine: return fmt::format("cosine over {} to {}", s.period, s.min_lr);
    case Kind::kPolynomial: return fmt::format("poly {} over {}", s.power, s.period);
  }
  DDPROOF_CHECK(false);
}

}  // namespace

void validate(const LrSchedule& s) {
  const bool has_period =
      s.kind == Kind::kStep || s.kind == Kind::kCosine || s.kind == Kind::kPolynomial;
  if (has_period && s.period < 1) {
    refuse_schedule(fmt::format("the period is {} updates", s.period), "at least 1");
  }
  if (s.kind == Kind::kMultiStep) {
    if (s.milestones.empty()) refuse_schedule("there are no milestones", "at least one");
    std::int64_t last = 0;
    for (const std::int64_t milestone : s.milestones) {
      if (milestone <= last) {
        refuse_schedule(fmt::format("milestone {} after {}", milestone, last),
                        "ascending, from 1 on");
      }
      last = milestone;
    }
  }
  check_schedule_value("gamma", s.gamma);
  check_schedule_value("the smallest rate", s.min_lr);
  check_schedule_value("the power", s.power);
  if (s.warmup < 0)
    refuse_schedule(fmt::format("the warmup is {} updates", s.warmup), "at least 0");
  if (!(s.warmup_factor >= 0 && s.warmup_factor <= 1)) {
    refuse_schedule(fmt::format("the warmup begins at {} of the rate", s.warmup_factor), "0 to 1");
  }
}

double learning_rate_at(const LrSchedule& s, double base, std::int64_t updates) {
  if (updates >= s.warmup) return main_rate(s, base, updates - s.warmup);
  const double rise = (1 - s.warmup_factor) * static_cast<double>(updates);
  return base * (s.warmup_factor + rise / static_cast<double>(s.warmup));
}

std::string describe(const LrSchedule& s) {
  std::string text = describe_main(s);
  if (s.warmup > 0) text += fmt::format(", warmup {} from {}", s.warmup, s.warmup_factor);
  return text;
}

const std::vector<std::string>& lr_schedule_names() {
  static const std::vector<std::string> names{"constant", "step", "multistep", "cosine", "poly"};
  return names;
}

}  // namespace ddproof
