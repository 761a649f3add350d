// Cropping and mirroring: what it does to an image, and that only the key decides.
#include "reference/data/augmentation.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using Image = std::vector<float>;

Image augmented(const Image& image, const Shape& shape, int padding, std::uint64_t seed,
                std::int64_t epoch, std::int64_t index) {
  Image result = image;
  random_crop_and_flip(shape, padding, seed, epoch)(index, result);
  return result;
}

// With one row of two pixels and one pixel of padding there are 3 x 3 places and 2 directions.
TEST(RandomCropAndFlip, TakesEveryPlaceEquallyOften) {
  std::map<Image, int> seen;
  constexpr int kSamples = 18000;
  for (int index = 0; index < kSamples; ++index) {
    ++seen[augmented({1, 2}, {1, 1, 2}, 1, 5, 0, index)];
  }
  // Two of three rows show the frame. In the third the piece holds 01, 12 or 20, or the mirror of
  // it.
  const std::map<Image, int> expected{{{0, 0}, 12000}, {{0, 1}, 1000}, {{1, 2}, 1000},
                                      {{2, 0}, 1000},  {{1, 0}, 1000}, {{2, 1}, 1000},
                                      {{0, 2}, 1000}};
  ASSERT_EQ(seen.size(), expected.size());
  for (const auto& [image, count] : expected) {
    EXPECT_NEAR(seen[image], count, 6 * 64);  // at most 6 standard deviations
  }
}

TEST(RandomCropAndFlip, MovesAllChannelsAlike) {
  Image image(2 * 3 * 4);
  std::iota(image.begin(), image.end(), 1.0F);
  bool moved = false;
  for (int index = 0; index < 50; ++index) {
    const Image result = augmented(image, {2, 3, 4}, 2, 1, 0, index);
    moved |= result != image;
    for (std::size_t i = 0; i < 12; ++i) {
      const float below = result[i + 12];
      EXPECT_EQ(below, result[i] == 0 ? 0 : result[i] + 12);
    }
  }
  EXPECT_TRUE(moved);
}

TEST(RandomCropAndFlip, DependsOnSeedEpochAndSampleAlone) {
  Image image(64);
  std::iota(image.begin(), image.end(), 1.0F);
  const Shape shape{1, 8, 8};
  const auto all = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t first) {
    std::vector<Image> images;
    for (int i = 0; i < 8; ++i)
      images.push_back(augmented(image, shape, 4, seed, epoch, first + i));
    return images;
  };
  EXPECT_EQ(all(1, 2, 3), all(1, 2, 3));
  EXPECT_NE(all(1, 2, 3), all(2, 2, 3));
  EXPECT_NE(all(1, 2, 3), all(1, 3, 3));
  EXPECT_NE(all(1, 2, 3), all(1, 2, 11));
}

TEST(RandomCropAndFlip, RefusesWhatIsNoImage) {
  try {
    random_crop_and_flip({2, 3}, 4, 0, 0);
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "augmentation: samples have shape [2, 3], expected images of channels, height and "
                 "width");
  }
  EXPECT_THROW(random_crop_and_flip({1, 2, 2}, -1, 0, 0), ConfigError);
  EXPECT_THROW(random_crop_and_flip({1, 2, 2}, 1025, 0, 0), ConfigError);
}

}  // namespace
}  // namespace ddproof
