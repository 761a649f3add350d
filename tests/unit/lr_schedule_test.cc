// Learning-rate schedules against the closed forms of PyTorch 1.13.1, and what they refuse.
#include "reference/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "backends/api/error.h"
#include "tests/support/golden.h"

namespace ddproof {
namespace {

using nlohmann::json;
using Kind = LrSchedule::Kind;

LrSchedule schedule_of(const json& test) {
  const auto& names = lr_schedule_names();
  const auto name = std::ranges::find(names, test["kind"].get<std::string>());
  return {.kind = static_cast<Kind>(name - names.begin()),
          .period = test.value("period", std::int64_t{0}),
          .gamma = test.value("gamma", 0.1),
          .milestones = test.value("milestones", std::vector<std::int64_t>{}),
          .min_lr = test.value("min_lr", 0.0),
          .power = test.value("power", 1.0),
          .warmup = test.value("warmup", std::int64_t{0}),
          .warmup_factor = test.value("warmup_factor", 1.0 / 3)};
}

// The expressions are PyTorch's, but powers and cosines are the C library's, whose last bits may
// differ from one to the next.
TEST(LrScheduleGolden, EveryUpdateHasPyTorchsRate) {
  const json golden = read_golden("lr_schedules.json");
  ASSERT_EQ(golden["cases"].size(), 12u);
  for (const json& test : golden["cases"]) {
    const LrSchedule schedule = schedule_of(test);
    validate(schedule);
    for (std::size_t t = 0; t < test["lr"].size(); ++t) {
      EXPECT_DOUBLE_EQ(learning_rate_at(schedule, test["base"], static_cast<std::int64_t>(t)),
                       hex_float(test["lr"][t]))
          << describe(schedule) << " after " << t;
    }
  }
}

TEST(LrSchedule, TheCosineStaysAtItsEnd) {
  const LrSchedule schedule{.kind = Kind::kCosine, .period = 4, .min_lr = 0.25};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 4), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 6), 0.25);
}

TEST(LrSchedule, WhatFollowsTheWarmupCountsFromItsEnd) {
  const LrSchedule schedule{
      .kind = Kind::kStep, .period = 2, .gamma = 0.5, .warmup = 3, .warmup_factor = 0.25};
  std::vector<double> rates;
  for (std::int64_t t = 0; t < 8; ++t) rates.push_back(learning_rate_at(schedule, 8, t));
  EXPECT_EQ(rates, (std::vector<double>{2, 4, 6, 8, 8, 4, 4, 2}));
}

std::string schedule_error(const LrSchedule& schedule) {
  try {
    validate(schedule);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(LrSchedule, ErrorsNameTheNumberItsValueAndTheRange) {
  const std::string begin = "learning-rate schedule: ";
  EXPECT_EQ(schedule_error({}), "");
  EXPECT_EQ(schedule_error({.kind = Kind::kStep}),
            begin + "the period is 0 updates, expected at least 1");
  EXPECT_EQ(schedule_error({.kind = Kind::kMultiStep}),
            begin + "there are no milestones, expected at least one");
  EXPECT_EQ(schedule_error({.kind = Kind::kMultiStep, .milestones = {3, 3}}),
            begin + "milestone 3 after 3, expected ascending, from 1 on");
  EXPECT_EQ(schedule_error({.kind = Kind::kMultiStep, .milestones = {0}}),
            begin + "milestone 0 after 0, expected ascending, from 1 on");
  EXPECT_EQ(schedule_error({.gamma = -1}),
            begin + "gamma is -1, expected a finite number, at least 0");
  EXPECT_EQ(schedule_error({.min_lr = std::numeric_limits<double>::infinity()}),
            begin + "the smallest rate is inf, expected a finite number, at least 0");
  EXPECT_EQ(schedule_error({.power = -0.5}),
            begin + "the power is -0.5, expected a finite number, at least 0");
  EXPECT_EQ(schedule_error({.warmup = -1}),
            begin + "the warmup is -1 updates, expected at least 0");
  EXPECT_EQ(schedule_error({.warmup_factor = 1.5}),
            begin + "the warmup begins at 1.5 of the rate, expected 0 to 1");
}

TEST(LrSchedule, SchedulesThatDifferReadDifferently) {
  const std::vector<LrSchedule> schedules{{},
                                          {.warmup = 3},
                                          {.warmup = 3, .warmup_factor = 0.5},
                                          {.kind = Kind::kStep, .period = 3},
                                          {.kind = Kind::kStep, .period = 4},
                                          {.kind = Kind::kStep, .period = 3, .gamma = 0.2},
                                          {.kind = Kind::kMultiStep, .milestones = {3}},
                                          {.kind = Kind::kMultiStep, .milestones = {3, 4}},
                                          {.kind = Kind::kCosine, .period = 3},
                                          {.kind = Kind::kCosine, .period = 3, .min_lr = 0.1},
                                          {.kind = Kind::kPolynomial, .period = 3},
                                          {.kind = Kind::kPolynomial, .period = 3, .power = 0.9}};
  std::set<std::string> texts;
  for (const LrSchedule& schedule : schedules) texts.insert(describe(schedule));
  EXPECT_EQ(texts.size(), schedules.size());
  EXPECT_EQ(describe({.kind = Kind::kMultiStep, .milestones = {3, 4}, .warmup = 5}),
            "multistep 0.1 at 3,4, warmup 5 from 0.3333333333333333");
}

}  // namespace
}  // namespace ddproof
