// Learning-rate schedules as functions of the update's number, without a memory of their own: a run
// that goes on needs only to know how many updates were made.
//
// The formulas are the closed forms of PyTorch's StepLR, MultiStepLR, CosineAnnealingLR and
// PolynomialLR, with a scheduler.step() after each update, after warmup by its LinearLR (as
// SequentialLR puts them together: what follows counts from the end of the warmup).
// Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddproof {

struct LrSchedule {
  enum class Kind : std::uint8_t {
    kConstant,
    kStep,        // times gamma every `period` updates
    kMultiStep,   // times gamma at each milestone
    kCosine,      // down to min_lr in `period` updates by half a cosine; stays there, while
                  // PyTorch's rises again
    kPolynomial,  // times (1 - t / period)^power; 0 from there on
  };
  Kind kind = Kind::kConstant;
  std::int64_t period = 0;  // updates
  double gamma = 0.1;
  std::vector<std::int64_t> milestones;  // ascending
  double min_lr = 0;
  double power = 1;
  // Updates in which the rate rises in a line from warmup_factor times its base to its base.
  std::int64_t warmup = 0;
  double warmup_factor = 1.0 / 3;
};

// Throws ConfigError, naming the number, its value and what is allowed.
void validate(const LrSchedule& schedule);

// The rate of the update that follows `updates` others. Requires: a valid schedule; updates >= 0.
double learning_rate_at(const LrSchedule& schedule, double base, std::int64_t updates);

// In words that differ for schedules that differ: "constant", "step 0.1 every 30, warmup 5 from
// 0.333".
std::string describe(const LrSchedule& schedule);

// "constant", "step", "multistep", "cosine", "poly"; in the order of Kind.
const std::vector<std::string>& lr_schedule_names();

}  // namespace ddproof
