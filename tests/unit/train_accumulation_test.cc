// Updates of several batches, and how their gradients travel.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/images.h"
#include "tests/unit/train_world.h"

namespace ddproof {
namespace {

// The state after two epochs over so many images; `batch_size` samples on each rank make a batch.
TrainSummary accumulated(int world_size, std::int64_t images, std::int64_t batch_size,
                         std::int64_t accumulate) {
  const ImageDataset data = make_images(images);
  TrainOptions options = small_options();
  options.batch_size = batch_size;
  options.accumulate = accumulate;
  options.averaging = Averaging::kSamples;
  return World(world_size).train(options, {data});
}

TEST(Train, AccumulatedBatchesGiveTheBitsOfTheWholeBatch) {
  for (int world_size : {1, 2, 3}) {
    const TrainSummary whole = accumulated(world_size, 48, 8, 1);
    for (std::int64_t accumulate : {2, 4, 8}) {
      const TrainSummary parts = accumulated(world_size, 48, 8 / accumulate, accumulate);
      EXPECT_EQ(parts.state_digest, whole.state_digest) << world_size << " " << accumulate;
      EXPECT_EQ(parts.steps, whole.steps);
      EXPECT_EQ(parts.last_step.samples, whole.last_step.samples);
    }
  }
}

TEST(Train, TheLastUpdateOfAnEpochIsMadeOfWhatIsLeft) {
  // PITFALLS P54: 7 micro-batches, 4 to an update: two updates, the second over 3.
  const TrainSummary whole = accumulated(1, 7, 4, 1);
  const TrainSummary parts = accumulated(1, 7, 1, 4);
  EXPECT_EQ(parts.steps, 4);  // two epochs
  EXPECT_EQ(parts.last_step.samples, 3);
  EXPECT_EQ(parts.state_digest, whole.state_digest);
}

TEST(Train, GradientsMayTravelInSixteenBits) {
  const ImageDataset images = make_images(32);
  std::set<std::uint64_t> digests;
  for (const char* hook : {"allreduce", "fp16", "bf16"}) {
    TrainOptions options = small_options();
    options.comm_hook = hook;
    const TrainSummary summary = World(2).train(options, {images});
    EXPECT_TRUE(summary.ranks_agree);
    digests.insert(summary.state_digest);
  }
  EXPECT_EQ(digests.size(), 3U);
}

}  // namespace
}  // namespace ddproof
