// The training loop: exact resumption, metrics over samples, agreement between ranks.
#include "reference/train/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/data/distributed_sampler.h"
#include "reference/data/memory_dataset.h"
#include "reference/model/models.h"
#include "reference/train/shared_checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/images.h"
#include "tests/unit/train_world.h"

namespace ddproof {
namespace {

TEST(Train, RanksHoldTheSameBits) {
  const ImageDataset images = make_images(50);
  for (int world_size : {2, 3, 4}) {
    const TrainSummary summary = World(world_size).train(small_options(), {images});
    EXPECT_TRUE(summary.ranks_agree) << world_size;
    // ceil(50 / W) samples per rank, 4 per batch, two epochs.
    EXPECT_EQ(summary.steps, 2 * (((50 + world_size - 1) / world_size + 3) / 4)) << world_size;
  }
}

TEST(Train, SameSeedSameBits) {
  const ImageDataset images = make_images(40);
  const TrainOptions options = small_options();
  EXPECT_EQ(World(2).train(options, {images}).state_digest,
            World(2).train(options, {images}).state_digest);
  TrainOptions other = options;
  other.seed = 6;
  EXPECT_NE(World(2).train(options, {images}).state_digest,
            World(2).train(other, {images}).state_digest);
}

TEST(Train, AStartEpochDrawsThatEpochsOrder) {
  const ImageDataset images = make_images(40);
  TrainOptions first = small_options();
  first.epochs = 1;
  TrainOptions second = small_options();
  second.start_epoch = 1;
  const TrainSummary a = World(2).train(first, {images});
  const TrainSummary b = World(2).train(second, {images});
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_NE(a.state_digest, b.state_digest);
}

class Losses : public TrainObserver {
 public:
  void on_step(const StepRecord& record) override { losses.push_back(record.metrics.loss()); }
  void on_warning(const std::string&) override {}
  std::vector<double> losses;
};

// One image, nothing learned: only what is done to the image can change its loss.
TEST(Train, AugmentationShowsAnImageInAnotherFormEachEpoch) {
  const ImageDataset image = make_images(1);
  OsRuntime runtime;
  TrainOptions options{.epochs = 3, .batch_size = 1, .sgd = {.lr = 0}, .seed = 5};
  Losses plain;
  train(options, {image}, nullptr, runtime, &plain);
  Losses augmented;
  options.augment = true;
  train(options, {image}, nullptr, runtime, &augmented);
  EXPECT_EQ(std::set(plain.losses.begin(), plain.losses.end()).size(), 1u);
  EXPECT_EQ(std::set(augmented.losses.begin(), augmented.losses.end()).size(), 3u);
}

TEST_F(CheckpointFolder, AStoppedRunGoesOnExactlyAtEveryStep) {
  const ImageDataset images = make_images(30);
  OsRuntime runtime;
  TrainOptions options = small_options();
  options.augment = true;  // its randomness must go on where it stopped, too
  const TrainSummary whole = train(options, {images}, nullptr, runtime, nullptr);
  ASSERT_EQ(whole.steps, 16);  // two epochs of 8, the last batch of each has 2 samples
  options.checkpoint_directory = path_;
  options.resume = true;
  for (std::int64_t stop = 1; stop < whole.steps; ++stop) {
    clear();
    options.max_steps = stop;
    EXPECT_EQ(train(options, {images}, nullptr, runtime, nullptr).steps, stop);
    options.max_steps = 0;
    const TrainSummary resumed = train(options, {images}, nullptr, runtime, nullptr);
    EXPECT_EQ(resumed.steps, whole.steps);
    EXPECT_EQ(resumed.state_digest, whole.state_digest) << "stopped after step " << stop;
  }
}

// From three ranks on, the bits of a sum depend on where in its bucket a gradient lies.
TEST_F(CheckpointFolder, StoppedRanksGoOnExactlyAtEveryStep) {
  const ImageDataset images = make_images(30);
  expect_exact_resumption(small_options(), {images});
}

TEST_F(CheckpointFolder, AStoppedRunGoesOnAtAnotherWorldSize) {
  const ImageDataset images = make_images(30);
  for (const std::int64_t stop : {1, 3, 7, 8}) {
    for (const int world_size : {1, 2, 4, 7}) {
      clear();
      TrainOptions options = small_options();
      options.checkpoint_directory = path_;
      options.max_steps = stop;
      World(1).train(options, {images});
      options.max_steps = 0;
      options.resume = true;
      const TrainSummary resumed = World(world_size).train(options, {images});
      // What is left of the first epoch, and the second one, in batches of 4 on each rank.
      const auto steps = [&](std::int64_t samples) {
        const std::int64_t each = (samples + world_size - 1) / world_size;
        return (each + 3) / 4;
      };
      const std::int64_t left = std::max<std::int64_t>(30 - 4 * stop, 0);
      EXPECT_EQ(resumed.steps, stop + steps(left) + steps(30)) << stop << " " << world_size;
      EXPECT_TRUE(resumed.ranks_agree);
    }
  }
}

class NoSteps : public TrainObserver {
 public:
  void on_step(const StepRecord&) override { ADD_FAILURE() << "a step was made"; }
  void on_warning(const std::string&) override {}
};

class LastStep : public TrainObserver {
 public:
  void on_step(const StepRecord& record) override { step = record.step; }
  void on_warning(const std::string&) override {}
  std::int64_t step = 0;
};

// Makes one call too many after the third step, as a guard in the wrong branch does.
class ExtraBarrier : public TrainObserver {
 public:
  explicit ExtraBarrier(ProcessGroup& group) : group_(group) {}
  void on_step(const StepRecord& record) override {
    if (record.step == 3) group_.barrier()->wait();
  }
  void on_warning(const std::string&) override {}

 private:
  ProcessGroup& group_;
};

TEST(Train, ADeadlockIsAVerdictWhileTheLoaderIsFull) {
  const ImageDataset images = make_images(400);
  const auto run = [&](RankContext& rank) {
    TrainOptions options = small_options();
    options.batch_size = 1;
    ExtraBarrier observer(rank.group);
    const bool odd = rank.group.rank() == 1;
    train(options, {images}, &rank.group, rank.runtime, odd ? &observer : nullptr);
  };
  try {
    make_backend("sim")->run_world({.world_size = 2, .checked = false}, run);
    FAIL() << "no verdict";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommErrorKind::kDeadlock) << error.what();
  }
}

TEST_F(CheckpointFolder, GlooRanksGoOnFromRankZerosCheckpoint) {
  const ImageDataset images = make_images(30);
  const auto run = [&](const TrainOptions& options) {
    TrainSummary result;
    make_backend("gloo")->run_world({.world_size = 2}, [&](RankContext& rank) {
      const TrainSummary summary = train(options, {images}, &rank.group, rank.runtime, nullptr);
      if (rank.group.rank() == 0) result = summary;
    });
    return result;
  };
  TrainOptions options = small_options();
  const TrainSummary whole = run(options);
  options.checkpoint_directory = path_;
  options.checkpoint_every = 3;
  options.max_steps = 5;
  run(options);
  options.resume = true;
  options.max_steps = 0;
  const TrainSummary resumed = run(options);
  EXPECT_EQ(resumed.steps, whole.steps);
  EXPECT_EQ(resumed.state_digest, whole.state_digest);
  EXPECT_TRUE(resumed.ranks_agree);
}

TEST_F(CheckpointFolder, ThatCannotBeWrittenIsFoundBeforeTheFirstStepOnEveryRank) {
  const ImageDataset images = make_images(20);
  const std::string file = path_ + "/file";
  runtime_.files().create(file);
  TrainOptions options = small_options();
  options.checkpoint_directory = file + "/checkpoints";
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 3, .files = &runtime_.files()},
                                 [&](RankContext& rank) {
                                   NoSteps observer;
                                   try {
                                     train(options, {images}, &rank.group, rank.runtime, &observer);
                                   } catch (const DataError& error) {
                                     texts[rank.group.rank()] = error.what();
                                   }
                                 });
  const std::string text = "rank 0: no checkpoints can be written to " + file +
                           "/checkpoints: " + file + "/checkpoints: mkdir: Not a directory";
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, text}, {1, text}, {2, text}}));
}

TEST_F(CheckpointFolder, AFinishedRunHasNothingLeftToDo) {
  const ImageDataset images = make_images(20);
  TrainOptions options = small_options();
  options.checkpoint_directory = path_;
  const TrainSummary whole = train(options, {images}, nullptr, runtime_, nullptr);
  options.resume = true;
  NoSteps observer;
  const TrainSummary again = train(options, {images}, nullptr, runtime_, &observer);
  EXPECT_EQ(again.steps, whole.steps);
  EXPECT_EQ(again.samples, 0);
  EXPECT_EQ(again.last_step.samples, 0);
  EXPECT_EQ(again.state_digest, whole.state_digest);
}

TEST_F(CheckpointFolder, ResumingWithAnotherSeedIsRefused) {
  const ImageDataset images = make_images(10);
  TrainOptions options = small_options();
  options.checkpoint_directory = path_;
  train(options, {images}, nullptr, runtime_, nullptr);
  options.resume = true;
  options.seed = 6;
  const std::string text = path_ +
                           "/checkpoint.safetensors was made with seed 5, this run has seed 6; "
                           "resume with the same seed";
  EXPECT_EQ(World(1).refusals(options, {images}), (std::map<int, std::string>{{0, text}}));
}

TEST_F(CheckpointFolder, ResumingWithOtherDataIsRefusedOnEveryRank) {
  const ImageDataset images({1, 1, 1}, 2, {0, 128, 255}, {0, 1, 1});
  const ImageDataset brighter({1, 1, 1}, 2, {0, 129, 255}, {0, 1, 1});
  TrainOptions options = small_options();
  options.checkpoint_directory = path_;
  World(2).train(options, {images});
  options.resume = true;
  const std::string text =
      path_ +
      "/checkpoint.safetensors was made with 3 samples of shape [1, 1, 1] in 2 "
      "classes (digest 762d55500a51da43), this run has 3 samples of shape [1, 1, 1] in 2 "
      "classes (digest bd9be7d959685992); resume with the same data";
  EXPECT_EQ(World(2).refusals(options, {brighter}),
            (std::map<int, std::string>{{0, text}, {1, text}}));
}

TEST_F(CheckpointFolder, ResumingWithoutTheAugmentationIsRefused) {
  const ImageDataset images = make_images(12);
  TrainOptions options = small_options();
  options.augment = true;
  options.checkpoint_directory = path_;
  train(options, {images}, nullptr, runtime_, nullptr);
  options.resume = true;
  options.augment = false;
  EXPECT_THROW(train(options, {images}, nullptr, runtime_, nullptr), ConfigError);
}

TEST_F(CheckpointFolder, ANewRunDoesNotOverwriteAnotherOnesOnAnyRank) {
  const ImageDataset images = make_images(12);
  TrainOptions options = small_options();
  options.checkpoint_directory = path_;
  World(2).train(options, {images});
  const std::string text = path_ +
                           " holds a checkpoint already; go on from it with --resume, or give "
                           "another --checkpoint-dir";
  EXPECT_EQ(World(2).refusals(options, {images}),
            (std::map<int, std::string>{{0, text}, {1, text}}));
}

TEST(Train, RanksWithDifferentSettingsAreRefusedOnEveryRank) {
  const ImageDataset images = make_images(20);
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 3}, [&](RankContext& rank) {
    TrainOptions options = small_options();
    if (rank.group.rank() == 2) options.epochs = 3, options.seed = 4;
    try {
      train(options, {images}, &rank.group, rank.runtime, nullptr);
    } catch (const ConfigError& error) {
      texts[rank.group.rank()] = error.what();
    }
  });
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[1],
            "rank 1/3 [sim] settings differ between ranks: epochs is 2 on rank 0 and 3 on rank 2, "
            "seed is 5 on rank 0 and 4 on rank 2; start every rank with the same flags and data");
}

// Which costs a small all-reduce each step; all models here use all they have.
TEST(Train, UnusedParametersMayBeLookedFor) {
  const ImageDataset images = make_images(16);
  const auto run = [&](bool find) {
    std::uint64_t digest = 0;
    TrainOptions options = small_options();
    options.find_unused_parameters = find;
    const WorldReport report =
        make_backend("sim")->run_world({.world_size = 2, .seed = 3}, [&](RankContext& rank) {
          digest = train(options, {images}, &rank.group, rank.runtime, nullptr).state_digest;
        });
    return std::pair(digest, report.messages);
  };
  const auto [plain, messages] = run(false);
  const auto [same, more] = run(true);
  EXPECT_EQ(same, plain);
  EXPECT_GT(more, messages);
}

TEST(Train, ALossThatIsNotFiniteEndsAllRanksAtThatStep) {
  constexpr std::int64_t kBad = 7;
  std::vector<float> pixels(20 * 64, 0.5f);
  pixels[kBad * 64] = std::numeric_limits<float>::quiet_NaN();
  const TensorDataset images({1, 8, 8}, 10, std::move(pixels), std::vector<std::int64_t>(20, 3));
  const TrainOptions options = small_options();
  // Where the sampler puts the bad sample.
  int bad_rank = 0;
  std::int64_t bad_step = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const auto mine = DistributedSampler({.length = 20, .replicas = 2, .rank = rank, .seed = 5})
                          .indices()
                          .to_vector();
    const auto found = std::ranges::find(mine, kBad);
    if (found == mine.end()) continue;
    bad_rank = rank;
    bad_step = (found - mine.begin()) / options.batch_size + 1;
  }
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2}, [&](RankContext& rank) {
    LastStep observer;
    try {
      train(options, {images}, &rank.group, rank.runtime, &observer);
    } catch (const ConfigError& error) {
      texts[rank.group.rank()] = error.what();
    }
    EXPECT_EQ(observer.step, bad_step - 1);
  });
  const std::string text = " [sim] step " + std::to_string(bad_step) +
                           ": the loss is nan, from rank " + std::to_string(bad_rank) +
                           "; lower the learning rate, now 0.05, or look at the data";
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "rank 0/2" + text}, {1, "rank 1/2" + text}}));
}

// The last step spoils the weights, and no training loss shows it.
TEST(Train, ATestLossThatIsNotFiniteEndsAllRanks) {
  const ImageDataset images = make_images(20);
  TrainOptions options = small_options();
  options.sgd = {.lr = 1e38};
  options.max_steps = 1;
  options.evaluate = true;
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 2}, [&](RankContext& rank) {
    LastStep observer;
    try {
      train(options, {images, &images}, &rank.group, rank.runtime, &observer);
    } catch (const ConfigError& error) {
      texts[rank.group.rank()] = error.what();
    }
    EXPECT_EQ(observer.step, 1);
  });
  const std::string text =
      " [sim] the test loss is nan; lower the learning rate, now 1e+38, or look at the data";
  EXPECT_EQ(texts, (std::map<int, std::string>{{0, "rank 0/2" + text}, {1, "rank 1/2" + text}}));
}

TEST(Train, SettingsThatMakeNoSenseAreRefused) {
  const ImageDataset images = make_images(10);
  const ImageDataset none = make_images(0);
  OsRuntime runtime;
  const auto text = [&](const TrainOptions& options, const Dataset& set) -> std::string {
    try {
      train(options, {set}, nullptr, runtime, nullptr);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(text({}, none), "the training set has no samples");
  EXPECT_EQ(text({.epochs = 0}, images), "--epochs is 0, at least 1");
  EXPECT_EQ(text({.epochs = 2, .start_epoch = 2}, images),
            "--start-epoch is 2, expected 0 or more and below --epochs, 2");
  EXPECT_EQ(text({.workers = -1}, images),
            "--workers is negative; 0 reads each batch when it is needed");
  EXPECT_EQ(text({.max_steps = -1}, images), "--max-steps is negative; 0 means no limit");
  EXPECT_EQ(text({.checkpoint_every = -1}, images),
            "--checkpoint-every is negative; 0 means each epoch");
  EXPECT_EQ(text({.accumulate = 0}, images), "--accumulate is 0, at least 1");
  EXPECT_EQ(text({.comm_hook = "fp8"}, images),
            "--comm-hook is fp8, expected allreduce, fp16 or bf16");
  EXPECT_EQ(text({.comm_hook = "fp16"}, images),
            "--comm-hook fp16 is for several ranks, and there is one");
  EXPECT_EQ(text({.averaging = Averaging::kSamples, .comm_hook = "bf16"}, images),
            "--comm-hook bf16 averages by itself; leave --averaging world");
  EXPECT_EQ(text({.resume = true}, images), "--resume needs --checkpoint-dir");
  EXPECT_EQ(text({.checkpoint_every = 3}, images), "--checkpoint-every needs --checkpoint-dir");
  EXPECT_EQ(text({.evaluate = true}, images), "evaluation needs a test set");
  const auto test_text = [&](const Dataset& test) -> std::string {
    try {
      train({.evaluate = true}, {images, &test}, nullptr, runtime, nullptr);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(test_text(none), "the test set has no samples");
  EXPECT_EQ(test_text(ImageDataset({1, 2, 2}, 10, std::vector<std::uint8_t>(4), {0})),
            "the test set's samples have shape [1, 2, 2], the training set's [1, 8, 8]");
}

// One black image with a label for each of its pixels.
class LabelMap final : public Dataset {
 public:
  std::int64_t size() const override { return 1; }
  const Shape& sample_shape() const override { return sample_shape_; }
  const Shape& label_shape() const override { return label_shape_; }
  int class_count() const override { return 2; }
  std::uint64_t digest() const override { return 0; }
  void read(std::int64_t, std::span<float> values, std::span<std::int64_t> labels) const override {
    std::ranges::fill(values, 0.0F);
    std::ranges::fill(labels, 0);
  }

 private:
  Shape sample_shape_{1, 2, 2};
  Shape label_shape_{2, 2};
};

TEST(Train, PixelsAreNotMovedAwayFromTheirLabels) {
  OsRuntime runtime;
  try {
    train({.augment = true}, {LabelMap()}, nullptr, runtime, nullptr);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "augmentation would move pixels and leave their labels where they were");
  }
}

}  // namespace
}  // namespace ddproof
