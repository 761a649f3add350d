// Evaluation over all ranks, and the means that come of it.
#include "reference/train/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "tests/unit/images.h"

namespace ddproof {
namespace {

MetricSums evaluated(const ImageDataset& images, std::int64_t batch_size, int world_size) {
  MetricSums sums;
  make_backend("sim")->run_world({.world_size = world_size}, [&](RankContext& rank) {
    Cpu<float> device;
    const auto model = make_model<float>("mlp", {1, 8, 8}, 10, device, 1);
    const MetricSums mine = evaluate(*model, device, images, batch_size, &rank.group, rank.runtime);
    if (rank.group.rank() == 0) sums = mine;
  });
  return sums;
}

TEST(Evaluate, CountsEverySampleOnceAtEveryWorldSize) {
  // PITFALLS P4 and P56: no padding, no mean of means.
  const ImageDataset images = make_images(21);
  const MetricSums one = evaluated(images, 4, 1);
  EXPECT_EQ(one.samples, 21);
  for (const int world_size : {2, 3, 4, 24}) {
    EXPECT_EQ(evaluated(images, 4, world_size).samples, 21) << world_size;
    EXPECT_EQ(evaluated(images, 4, world_size).correct, one.correct) << world_size;
  }
}

// PITFALLS P5: sizes that divide hide an inflated evaluation.
TEST(Evaluate, OfFewSamplesIsThatOfOneDeviceWhateverTheBatch) {
  for (const std::int64_t samples : {4, 5}) {
    const ImageDataset images = make_images(samples);
    const MetricSums one = evaluated(images, samples, 1);
    EXPECT_EQ(one.samples, samples);
    for (const std::int64_t batch_size : {1, 2, 3}) {
      const MetricSums two = evaluated(images, batch_size, 2);
      EXPECT_EQ(two.samples, samples) << batch_size;
      EXPECT_EQ(two.correct, one.correct) << batch_size;
    }
  }
}

TEST(MetricSums, AreMeansOverSamples) {
  // PITFALLS P56: accuracies 0.7, 0.8, 0.9 of 256, 256 and 10 samples.
  MetricSums sums{.loss_sum = 0, .correct = 179, .samples = 256};
  sums += {.loss_sum = 0, .correct = 205, .samples = 256};
  sums += {.loss_sum = 0, .correct = 9, .samples = 10};
  EXPECT_EQ(sums.accuracy(), 393.0 / 522.0);
}

TEST(MetricSums, OverNothingAreNoNumber) {
  EXPECT_TRUE(std::isnan(MetricSums{}.loss()));
  EXPECT_TRUE(std::isnan(MetricSums{}.accuracy()));
}

}  // namespace
}  // namespace ddproof
