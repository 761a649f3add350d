// Training with a label for each pixel, some of them ignored, on a small street of our own.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/data/cityscapes.h"
#include "reference/train/train.h"
#include "tests/support/memory_files.h"
#include "tests/support/png_bytes.h"
#include "tests/unit/images.h"

namespace ddproof {
namespace {

constexpr std::uint32_t kWidth = 12, kHeight = 10;
constexpr std::int64_t kIgnored = 3;  // pixels of each image

// Dark road (id 7) and bright cars (id 26), so that a pixel's class can be seen; three pixels are
// of no class that counts (id 0).
class Street {
 public:
  Street() {
    for (int i = 0; i < 6; ++i) {
      std::vector<std::uint8_t> pixels, ids;
      for (std::uint32_t p = 0; p < kWidth * kHeight; ++p) {
        const bool is_car = (p % kWidth / 4 + p / kWidth / 5 + static_cast<unsigned>(i)) % 2 == 1;
        for (int c = 0; c < 3; ++c) pixels.push_back(is_car ? 240 : 20);
        ids.push_back(p < kIgnored ? 0 : is_car ? 26 : 7);
      }
      const std::string half = i < 4 ? "train" : "val";
      const std::string name = half + "/ulm/ulm_" + std::to_string(i);
      files.put("data/leftImg8bit/" + name + "_leftImg8bit.png",
                png_bytes(kWidth, kHeight, true, pixels));
      files.put("data/gtFine/" + name + "_gtFine_labelIds.png",
                png_bytes(kWidth, kHeight, false, ids));
    }
  }
  MemoryFiles files;
};

TrainOptions deeplab_options() {
  return {.model = "deeplab",
          .epochs = 30,
          .batch_size = 2,
          .sgd = {.lr = 0.05, .momentum = 0.9},
          .evaluate = true};
}

TEST(TrainDeepLab, LearnsThePixelsThatCount) {
  Street street;
  OsRuntime runtime;
  const Cityscapes train_set(street.files, "data", Split::kTrain);
  const Cityscapes test_set(street.files, "data", Split::kTest);
  const TrainSummary summary =
      train(deeplab_options(), {train_set, &test_set}, nullptr, runtime, nullptr);
  EXPECT_EQ(summary.steps, 60);
  EXPECT_EQ(summary.last_step.samples, 2 * (kWidth * kHeight - kIgnored));
  EXPECT_EQ(summary.evaluation.samples, 2 * (kWidth * kHeight - kIgnored));
  // Two of the 19 classes are there, half and half: more than either alone is learned.
  EXPECT_GT(summary.evaluation.accuracy(), 0.6);
}

TEST(TrainDeepLab, RanksShareTheStatisticsOfBatchNormAndEndAlike) {
  Street street;
  const Cityscapes train_set(street.files, "data", Split::kTrain);
  const Cityscapes test_set(street.files, "data", Split::kTest);
  TrainOptions with = deeplab_options();
  with.epochs = 2;
  with.sync_batch_norm = true;
  make_backend("sim")->run_world({.world_size = 2, .seed = 3}, [&](RankContext& rank) {
    const TrainSummary summary =
        train(with, {train_set, &test_set}, &rank.group, rank.runtime, nullptr);
    EXPECT_TRUE(summary.ranks_agree);
    EXPECT_EQ(summary.evaluation.samples, 2 * (kWidth * kHeight - kIgnored));
  });
}

std::string refusal(const std::string& model, const Dataset& dataset) {
  OsRuntime runtime;
  try {
    train({.model = model}, {dataset}, nullptr, runtime, nullptr);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainDeepLab, AModelThatDoesNotFitTheLabelsIsRefused) {
  Street street;
  const Cityscapes pixels(street.files, "data", Split::kTrain);
  EXPECT_EQ(refusal("cnn", pixels),
            "the model cnn gives a class to each sample, the data set has labels of shape [10, 12] "
            "for a sample of shape [3, 10, 12]");
  EXPECT_EQ(refusal("deeplab", make_images(4)),
            "the model deeplab gives a class to each pixel, the data set has labels of shape [] "
            "for a sample of shape [1, 8, 8]");
}

}  // namespace
}  // namespace ddproof
