// How the flags of `ddproof train` become an optimizer and a schedule, and which do not go
// together.
#include "cli/optimizer_flags.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using Words = std::vector<std::string>;

TrainOptions options_of(const Words& words) {
  Arguments arguments("ddproof train", "Tries flags.");
  OptimizerFlags flags;
  TrainOptions train;
  declare_optimizer_flags(arguments, flags, train);
  std::ostringstream out;
  arguments.parse(words, out);
  apply_optimizer_flags(arguments, flags, train);
  return train;
}

std::string error_of(const Words& words) {
  try {
    options_of(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OptimizerFlags, WithoutAnyItIsSgdWithMomentum) {
  const TrainOptions options = options_of({});
  EXPECT_FALSE(options.adam);
  EXPECT_EQ(options.sgd.lr, 0.05);
  EXPECT_EQ(options.sgd.momentum, 0.9);
  EXPECT_EQ(options.clip_grad_norm, 0);
  EXPECT_FALSE(options.zero);
  EXPECT_EQ(describe(options.lr_schedule), "constant");
}

TEST(OptimizerFlags, SgdHasItsOwn) {
  const TrainOptions options =
      options_of({"--lr", "0.5", "--momentum", "0.8", "--nesterov", "--weight-decay", "0.1",
                  "--clip-grad-norm", "2", "--zero"});
  EXPECT_EQ(options.sgd.lr, 0.5);
  EXPECT_EQ(options.sgd.momentum, 0.8);
  EXPECT_TRUE(options.sgd.nesterov);
  EXPECT_EQ(options.sgd.weight_decay, 0.1);
  EXPECT_EQ(options.clip_grad_norm, 2);
  EXPECT_TRUE(options.zero);
}

TEST(OptimizerFlags, AdamHasPyTorchsDefaults) {
  const TrainOptions adam = options_of({"--optimizer", "adam"});
  ASSERT_TRUE(adam.adam);
  EXPECT_EQ(adam.adam->lr, 0.001);
  EXPECT_EQ(adam.adam->weight_decay, 0);
  EXPECT_FALSE(adam.adam->decoupled);
  const TrainOptions adamw = options_of({"--optimizer", "adamw"});
  EXPECT_EQ(adamw.adam->weight_decay, 0.01);
  EXPECT_TRUE(adamw.adam->decoupled);
}

TEST(OptimizerFlags, AdamHasItsOwn) {
  const TrainOptions options =
      options_of({"--optimizer", "adamw", "--lr", "0.5", "--weight-decay", "0", "--beta1", "0.8",
                  "--beta2", "0.9", "--eps", "1e-6", "--amsgrad"});
  EXPECT_EQ(options.adam->lr, 0.5);
  EXPECT_EQ(options.adam->weight_decay, 0);
  EXPECT_EQ(options.adam->beta1, 0.8);
  EXPECT_EQ(options.adam->beta2, 0.9);
  EXPECT_EQ(options.adam->eps, 1e-6);
  EXPECT_TRUE(options.adam->amsgrad);
}

TEST(OptimizerFlags, SchedulesTakeTheirNumbers) {
  const auto schedule = [](const Words& words) { return describe(options_of(words).lr_schedule); };
  EXPECT_EQ(schedule({"--lr-schedule", "step", "--lr-period", "30", "--lr-gamma", "0.5"}),
            "step 0.5 every 30");
  EXPECT_EQ(schedule({"--lr-schedule", "multistep", "--lr-milestones", "30,60"}),
            "multistep 0.1 at 30,60");
  EXPECT_EQ(schedule({"--lr-schedule", "cosine", "--lr-period", "9", "--lr-min", "0.01"}),
            "cosine over 9 to 0.01");
  EXPECT_EQ(schedule({"--lr-schedule", "poly", "--lr-period", "9", "--lr-power", "0.9"}),
            "poly 0.9 over 9");
  EXPECT_EQ(schedule({"--lr-warmup", "5", "--lr-warmup-factor", "0.25"}),
            "constant, warmup 5 from 0.25");
}

TEST(OptimizerFlags, WhatTheChosenOneLacksIsRefused) {
  EXPECT_EQ(error_of({"--optimizer", "adam", "--momentum", "0.9"}),
            "--momentum is for --optimizer sgd, this run has adam; leave it out");
  EXPECT_EQ(error_of({"--beta1", "0.9"}),
            "--beta1 is for --optimizer adam or adamw, this run has sgd; leave it out");
  EXPECT_EQ(error_of({"--lr-power", "0.9"}),
            "--lr-power is for --lr-schedule poly, this run has constant; leave it out");
  EXPECT_EQ(error_of({"--lr-schedule", "cosine"}), "--lr-schedule cosine needs --lr-period");
  EXPECT_EQ(error_of({"--lr-schedule", "multistep"}),
            "--lr-schedule multistep needs --lr-milestones");
  EXPECT_EQ(error_of({"--lr-warmup-factor", "0.5"}), "--lr-warmup-factor needs --lr-warmup");
}

TEST(OptimizerFlags, MilestonesThatAreNoNumbersAreRefused) {
  for (const std::string text : {"30,x", "30,,60", "30;60", "1.5"}) {
    EXPECT_TRUE(error_of({"--lr-schedule", "multistep", "--lr-milestones", text})
                    .starts_with("--lr-milestones: '"))
        << text;
  }
  EXPECT_EQ(error_of({"--lr-schedule", "multistep", "--lr-milestones", "30,x"}),
            "--lr-milestones: 'x' is no number; give updates with commas between, as 30,60");
}

}  // namespace
}  // namespace ddproof
