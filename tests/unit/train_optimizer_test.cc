// The training loop with each optimizer, clipping, schedules and divided state: exact resumption at
// any step, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/files.h"
#include "reference/data/memory_dataset.h"
#include "reference/train/train.h"
#include "tests/unit/images.h"
#include "tests/unit/train_world.h"

namespace ddproof {
namespace {

constexpr AdamOptions kAdam{.lr = 0.01, .weight_decay = 0.01, .amsgrad = true, .decoupled = true};

TrainOptions adam_options() {
  TrainOptions options = small_options();
  options.adam = kAdam;
  options.clip_grad_norm = 0.5;
  options.lr_schedule = {.kind = LrSchedule::Kind::kCosine, .period = 4, .warmup = 2};
  return options;
}

TrainOptions with_zero(TrainOptions options) {
  options.zero = true;
  return options;
}

// Moments, counts of updates and the place in the schedule go on where they stopped.
TEST_F(CheckpointFolder, AdamWithAScheduleGoesOnExactlyAtEveryStep) {
  const ImageDataset images = make_images(30);
  const TrainSummary whole = expect_exact_resumption(adam_options(), {images});
  EXPECT_EQ(whole.steps, 6);
  EXPECT_TRUE(whole.ranks_agree);
}

TEST_F(CheckpointFolder, DividedStateTrainsTheBitsOfTheWholeOne) {
  const ImageDataset images = make_images(30);
  for (const TrainOptions& options : {small_options(), adam_options()}) {
    for (const int world_size : {1, 2, 3}) {
      const TrainSummary whole = World(world_size).train(options, {images});
      const TrainSummary divided = World(world_size).train(with_zero(options), {images});
      EXPECT_EQ(divided.state_digest, whole.state_digest) << world_size;
      EXPECT_EQ(divided.parameter_digest, whole.parameter_digest) << world_size;
      EXPECT_TRUE(divided.ranks_agree) << world_size;
    }
  }
}

// P48, P49: the same file whether the state is divided or not, so each goes on from the other's.
TEST_F(CheckpointFolder, DividedStateIsSavedWholeAndGoesOnDividedOrNot) {
  const ImageDataset images = make_images(30);
  const TrainOptions plain = adam_options();
  const TrainSummary whole = World(3).train(plain, {images});
  for (const bool first : {false, true}) {
    clear();
    TrainOptions options = first ? with_zero(plain) : plain;
    options.checkpoint_directory = path_;
    options.checkpoint_every = 2;
    options.max_steps = 4;
    World(3).train(options, {images});
    options.max_steps = 0;
    options.resume = true;
    options.zero = !first;
    EXPECT_EQ(World(3).train(options, {images}).state_digest, whole.state_digest);
  }
}

TEST_F(CheckpointFolder, DividedStateGoesOnAtAnotherWorldSize) {
  const ImageDataset images = make_images(32);
  TrainOptions options = small_options();  // momentum 0.9
  options.checkpoint_directory = path_;
  options.max_steps = 2;
  World(4).train(with_zero(options), {images});
  options.max_steps = 0;
  options.resume = true;
  const std::vector<std::byte> saved =
      read_file(runtime_.files(), path_ + "/checkpoint.safetensors");
  const TrainSummary plain = World(2).train(options, {images});
  clear();
  runtime_.files().create(path_ + "/checkpoint.safetensors")->append(saved);
  const TrainSummary divided = World(2).train(with_zero(options), {images});
  EXPECT_EQ(divided.state_digest, plain.state_digest);
  EXPECT_TRUE(divided.ranks_agree);
}

TEST_F(CheckpointFolder, ResumingWithAnotherOptimizerIsRefusedOnEveryRank) {
  const ImageDataset images = make_images(12);
  TrainOptions options = small_options();
  options.checkpoint_directory = path_;
  World(2).train(options, {images});
  options.resume = true;
  options.adam = kAdam;
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2, .files = &runtime_.files()},
                                 [&](RankContext& rank) {
                                   try {
                                     train(options, {images}, &rank.group, rank.runtime, nullptr);
                                   } catch (const DataError& error) {
                                     texts[rank.group.rank()] = error.what();
                                   }
                                 });
  const std::string text = path_ +
                           "/checkpoint.safetensors: it was made with the optimizer sgd, this run "
                           "has adamw; resume with the same optimizer";
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, text}, {1, text}}));
}

TEST_F(CheckpointFolder, ResumingWithAnotherScheduleIsRefused) {
  const ImageDataset images = make_images(12);
  TrainOptions options = small_options();
  options.lr_schedule = {.kind = LrSchedule::Kind::kStep, .period = 3};
  options.checkpoint_directory = path_;
  World(1).train(options, {images});
  options.resume = true;
  options.lr_schedule.period = 4;
  const std::string text = path_ +
                           "/checkpoint.safetensors was made with the learning-rate schedule "
                           "'step 0.1 every 3', this run has 'step 0.1 every 4'; resume with the "
                           "same schedule";
  EXPECT_EQ(World(1).refusals(options, {images}), (std::map<int, std::string>{{0, text}}));
}

class Losses : public TrainObserver {
 public:
  void on_step(const StepRecord& record) override { losses.push_back(record.metrics.loss()); }
  void on_warning(const std::string&) override {}
  std::vector<double> losses;
};

std::vector<double> losses_with(const LrSchedule& schedule, double clip, double lr) {
  const ImageDataset images = make_images(8);
  OsRuntime runtime;
  Losses seen;
  TrainOptions options{.epochs = 4, .batch_size = 8, .sgd = {.lr = lr}, .seed = 5};
  options.lr_schedule = schedule;
  options.clip_grad_norm = clip;
  train(options, {images}, nullptr, runtime, &seen);
  return seen.losses;
}

// One batch per epoch: update 3 is the first after the milestone, and a rate of 0 changes nothing.
TEST(Train, TheScheduleTakesOneStepPerUpdate) {
  const std::vector<double> constant = losses_with({}, 0, 0.1);
  const std::vector<double> stopped =
      losses_with({.kind = LrSchedule::Kind::kMultiStep, .gamma = 0, .milestones = {2}}, 0, 0.1);
  ASSERT_EQ(stopped.size(), 4u);
  EXPECT_EQ(stopped[1], constant[1]);
  EXPECT_EQ(stopped[2], constant[2]);
  EXPECT_EQ(stopped[3], stopped[2]);
  EXPECT_NE(constant[3], constant[2]);
}

TEST(Train, GradientsAreClippedBeforeTheUpdate) {
  const std::vector<double> free = losses_with({}, 0, 0.1);
  EXPECT_EQ(losses_with({}, 1e6, 0.1), free);  // far above the norm
  const std::vector<double> clipped = losses_with({}, 1e-3, 0.1);
  EXPECT_LT(std::abs(clipped[1] - clipped[0]), std::abs(free[1] - free[0]) / 10);
}

// The loss is finite still, and the squares of its gradients are not.
TEST(Train, ANormThatIsNotFiniteEndsAllRanksWhereGradientsAreClipped) {
  std::vector<float> pixels(20 * 64, 1e34f);
  const TensorDataset images({1, 8, 8}, 10, std::move(pixels), std::vector<std::int64_t>(20, 3));
  TrainOptions options = small_options();
  options.clip_grad_norm = 1;
  const std::string text =
      " [sim] step 1: the norm of the gradients is inf; lower the learning rate, now 0.05, or look "
      "at the data";
  EXPECT_EQ(World(2).refusals(options, {images}),
            (std::map<int, std::string>{{0, "rank 0/2" + text}, {1, "rank 1/2" + text}}));
}

TEST(Train, RanksWithOtherOptimizersAreRefused) {
  const ImageDataset images = make_images(20);
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2}, [&](RankContext& rank) {
    TrainOptions options = adam_options();
    if (rank.group.rank() == 1) {
      options.adam->beta2 = 0.99;
      options.clip_grad_norm = 1;
      options.lr_schedule.period = 5;
      options.zero = true;
    }
    try {
      train(options, {images}, &rank.group, rank.runtime, nullptr);
    } catch (const ConfigError& error) {
      texts[rank.group.rank()] = error.what();
    }
  });
  EXPECT_EQ(texts[1],
            "rank 1/2 [sim] settings differ between ranks: clip grad norm is 0.5 on rank 0 and 1 "
            "on rank 1, lr schedule is cosine over 4 to 0, warmup 2 from 0.3333333333333333 on "
            "rank 0 and cosine over 5 to 0, warmup 2 from 0.3333333333333333 on rank 1, zero is "
            "false on rank 0 and true on rank 1, betas is 0.9 and 0.999 on rank 0 and 0.9 and 0.99 "
            "on rank 1; start every rank with the same flags and data");
}

TEST(Train, OptionsOfTheUpdateThatMakeNoSenseAreRefused) {
  const auto text = [](const TrainOptions& options) -> std::string {
    try {
      validate(options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(text({.adam = AdamOptions{.beta1 = 1}}),
            "Adam beta1 1: expected at least 0 and below 1");
  EXPECT_EQ(text({.lr_schedule = {.kind = LrSchedule::Kind::kStep}}),
            "learning-rate schedule: the period is 0 updates, expected at least 1");
  EXPECT_EQ(text({.clip_grad_norm = -1}),
            "--clip-grad-norm is -1, a finite number, at least 0; 0 clips nothing");
  EXPECT_EQ(text({.clip_grad_norm = std::numeric_limits<double>::quiet_NaN()}),
            "--clip-grad-norm is nan, a finite number, at least 0; 0 clips nothing");
}

}  // namespace
}  // namespace ddproof
