// Training of a model with buffers: running statistics are evaluated, saved, and rank 0's for all.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/checkpoint/training_state.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"
#include "reference/train/evaluate.h"
#include "reference/train/state_digest.h"
#include "reference/train/train.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/images.h"

namespace ddproof {
namespace {

TrainOptions options() {
  return {.model = "resnet8",
          .epochs = 2,
          .batch_size = 3,
          .sgd = {.lr = 0.05, .momentum = 0.9},
          .seed = 5};
}

// What all ranks of a simulated world, which shares this machine's files, agree on.
TrainSummary train_world(int world_size, const TrainOptions& options, const TrainData& data) {
  OsRuntime machine;
  std::vector<TrainSummary> summaries(static_cast<std::size_t>(world_size));
  make_backend("sim")->run_world({.world_size = world_size, .seed = 3, .files = &machine.files()},
                                 [&](RankContext& rank) {
                                   ProcessGroup* group = world_size > 1 ? &rank.group : nullptr;
                                   summaries[static_cast<std::size_t>(rank.group.rank())] =
                                       train(options, data, group, rank.runtime, nullptr);
                                 });
  for (const TrainSummary& each : summaries) {
    EXPECT_TRUE(each.ranks_agree);
    EXPECT_EQ(each.state_digest, summaries[0].state_digest);
  }
  return summaries[0];
}

TEST(TrainBatchNorm, RanksEndWithRankZerosRunningStatistics) {
  const ImageDataset images = make_images(20);
  for (const bool sync : {false, true}) {
    TrainOptions with = options();
    with.sync_batch_norm = sync;
    for (const int world_size : {1, 2, 3}) train_world(world_size, with, {images});
  }
}

TEST(TrainBatchNorm, SharingStatisticsTrainsAnotherModelThanEachRanksOwn) {
  const ImageDataset images = make_images(20);
  TrainOptions sync = options();
  sync.sync_batch_norm = true;
  EXPECT_NE(train_world(2, sync, {images}).parameter_digest,
            train_world(2, options(), {images}).parameter_digest);
  EXPECT_EQ(train_world(1, sync, {images}).state_digest,
            train_world(1, options(), {images}).state_digest);
}

// PITFALLS P57: ranks with statistics of their own score differently.
TEST(TrainBatchNorm, AllRanksEvaluateWithTheSameStatistics) {
  const ImageDataset images = make_images(20);
  TrainOptions with = options();
  with.evaluate = true;
  with.max_steps = 2;
  const TrainSummary two = train_world(2, with, {images, &images});
  // The checkpoint holds rank 0's buffers: one device that loads it evaluates the same.
  const TemporaryFolder folder;
  with.checkpoint_directory = folder.path();
  const TrainSummary saved = train_world(2, with, {images, &images});
  EXPECT_EQ(saved.evaluation.correct, two.evaluation.correct);
  with.resume = true;
  const TrainSummary alone = train_world(1, with, {images, &images});
  EXPECT_EQ(alone.steps, 2);
  EXPECT_EQ(alone.state_digest, saved.state_digest);
  EXPECT_EQ(alone.evaluation.correct, saved.evaluation.correct);
  EXPECT_EQ(alone.evaluation.samples, 20);
}

TEST(TrainBatchNorm, AResumedRunEndsWithTheSameBits) {
  const ImageDataset images = make_images(20);
  for (const int world_size : {1, 2}) {
    const TemporaryFolder folder;
    const TrainSummary whole = train_world(world_size, options(), {images});
    TrainOptions part = options();
    part.checkpoint_directory = folder.path();
    part.max_steps = 3;
    train_world(world_size, part, {images});
    part.max_steps = 0;
    part.resume = true;
    EXPECT_EQ(train_world(world_size, part, {images}).state_digest, whole.state_digest)
        << world_size;
  }
}

TEST(TrainBatchNorm, EvaluationUsesTheRunningStatisticsAndGoesBackToTraining) {
  OsRuntime runtime;
  const ImageDataset images = make_images(6);
  Cpu<float> device;
  const auto model = make_model<float>("resnet8", {1, 8, 8}, 10, device, 1);
  const Tensor<float>& mean = model->buffers()[0]->value;
  // One sample at a time or all at once: the same scores, as nothing depends on the batch.
  const MetricSums each = evaluate(*model, device, images, 1, nullptr, runtime);
  const MetricSums all = evaluate(*model, device, images, 6, nullptr, runtime);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(each.loss_sum),
            std::bit_cast<std::uint64_t>(all.loss_sum));
  EXPECT_EQ(mean.span()[0], 0);
  Tensor<float> input(device, {2, 1, 8, 8});
  device.fill(input.data(), input.count(), 1);
  model->forward(input);
  EXPECT_NE(mean.span()[0], 0);
}

// A model of one buffer.
struct WithBuffer {
  Cpu<float> device;
  Parameter<float> w{"w", Tensor<float>(device, {1}), Tensor<float>(device, {1})};
  ModuleBuffer<float> mean{"bn1.running_mean", Tensor<float>(device, {2})};
  Sgd<float> sgd{{&w}, {.lr = 0.1}};

  std::string restore_error(std::vector<std::byte> bytes) {
    try {
      restore_state<float>("ckpt", std::move(bytes), sgd, {&mean});
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }
};

TEST(TrainingState, HoldsTheBuffers) {
  WithBuffer model, restored;
  model.mean.value.span()[1] = 7;
  EXPECT_EQ(restored.restore_error(encode_state<float>({}, model.sgd, {&model.mean})), "");
  EXPECT_EQ(restored.mean.value.span()[1], 7);
  EXPECT_NE(state_digest<float>(model.sgd, {&model.mean}), state_digest<float>(model.sgd));
}

TEST(TrainingState, WithoutABufferOrWithAnotherShapeIsRefused) {
  WithBuffer model;
  model.mean.value.span()[1] = 7;
  EXPECT_EQ(model.restore_error(encode_state<float>({}, model.sgd)),
            "ckpt: no tensor bn1.running_mean, expected every buffer of the model");
  ModuleBuffer<float> longer{"bn1.running_mean", Tensor<float>(model.device, {3})};
  EXPECT_EQ(model.restore_error(encode_state<float>({}, model.sgd, {&longer})),
            "ckpt: tensor bn1.running_mean is F32 [3], expected F32 [2] as in the model");
  ModuleBuffer<float> other{"bn2.running_mean", Tensor<float>(model.device, {2})};
  EXPECT_EQ(model.restore_error(encode_state<float>({}, model.sgd, {&model.mean, &other})),
            "ckpt: tensor bn2.running_mean is not in the model");
  EXPECT_EQ(model.mean.value.span()[1], 7);
}

}  // namespace
}  // namespace ddproof
