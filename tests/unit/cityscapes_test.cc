// Cityscapes' layout on small images: what is read, in which order, and the errors of bad folders.
#include "reference/data/cityscapes.h"

#include <gtest/gtest.h>

#include <numeric>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "reference/compute/cpu.h"
#include "reference/data/data_loader.h"
#include "tests/support/memory_files.h"
#include "tests/support/png_bytes.h"

namespace ddproof {
namespace {

constexpr std::uint32_t kWidth = 3;
constexpr std::uint32_t kHeight = 2;

class City {
 public:
  City() {
    add("train", "bremen", "bremen_000001", 10);
    add("train", "aachen", "aachen_000007", 20);
    add("train", "aachen", "aachen_000002", 30);
    add("val", "ulm", "ulm_000000", 40);
  }

  static std::string image(const std::string& half, const std::string& city,
                           const std::string& name) {
    return "data/leftImg8bit/" + half + "/" + city + "/" + name + "_leftImg8bit.png";
  }
  static std::string labels(const std::string& half, const std::string& city,
                            const std::string& name) {
    return "data/gtFine/" + half + "/" + city + "/" + name + "_gtFine_labelIds.png";
  }

  // Pixel values go up from `first`; ids are 7, 8, 11, 0, 33, 26.
  void add(const std::string& half, const std::string& city, const std::string& name,
           std::uint8_t first) {
    std::vector<std::uint8_t> pixels(3 * kWidth * kHeight);
    std::iota(pixels.begin(), pixels.end(), first);
    files.put(image(half, city, name), png_bytes(kWidth, kHeight, true, pixels));
    files.put(labels(half, city, name), png_bytes(kWidth, kHeight, false, {7, 8, 11, 0, 33, 26}));
  }

  std::string error(Split split = Split::kTrain) {
    try {
      const Cityscapes data(files, "data", split);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  MemoryFiles files;
};

TEST(Cityscapes, ReadsCitiesThenImagesByName) {
  City city;
  const Cityscapes data(city.files, "data", Split::kTrain);
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.sample_shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(data.label_shape(), (Shape{2, 3}));
  EXPECT_EQ(data.class_count(), 19);
  EXPECT_EQ(data.ignored_label(), 255);
  std::vector<float> values(18);
  std::vector<std::int64_t> labels(6);
  std::vector<float> reds;
  for (std::int64_t i = 0; i < 3; ++i) {
    data.read(i, values, labels);
    reds.push_back(values[0] * 255);
  }
  EXPECT_EQ(reds, (std::vector<float>{30, 20, 10}));
  EXPECT_EQ(Cityscapes(city.files, "data", Split::kTest).size(), 1);
}

TEST(Cityscapes, ValuesAreColourPlanesAndLabelsTrainingIds) {
  City city;
  const Cityscapes data(city.files, "data", Split::kTest);
  std::vector<float> values(18);
  std::vector<std::int64_t> labels(6);
  data.read(0, values, labels);
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(values[c * 6 + i], static_cast<float>(40 + 3 * i + c) / 255.0f);
    }
  }
  EXPECT_EQ(labels, (std::vector<std::int64_t>{0, 1, 2, 255, 18, 13}));
}

// The table of cityscapesScripts: 34 ids, 19 of which are trained on.
TEST(Cityscapes, EveryIdBecomesItsTrainingId) {
  City city;
  std::vector<std::uint8_t> ids(34);
  std::iota(ids.begin(), ids.end(), std::uint8_t{0});
  const std::string name = "ulm_000000";
  city.files.put(City::image("val", "ulm", name),
                 png_bytes(34, 1, true, std::vector<std::uint8_t>(3 * 34)));
  city.files.put(City::labels("val", "ulm", name), png_bytes(34, 1, false, ids));
  const Cityscapes data(city.files, "data", Split::kTest);
  std::vector<float> values(3 * 34);
  std::vector<std::int64_t> labels(34);
  data.read(0, values, labels);
  std::vector<std::int64_t> trained;
  std::vector<std::int64_t> trained_ids;
  for (std::int64_t id = 0; id < 34; ++id) {
    const std::int64_t label = labels[static_cast<std::size_t>(id)];
    if (label == Cityscapes::kIgnoredLabel) continue;
    trained.push_back(label);
    trained_ids.push_back(id);
  }
  std::vector<std::int64_t> counted(19);
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(trained, counted);
  EXPECT_EQ(trained_ids, (std::vector<std::int64_t>{7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24,
                                                    25, 26, 27, 28, 31, 32, 33}));
}

TEST(Cityscapes, BatchesHoldAMapOfLabelsPerSample) {
  City city;
  const Cityscapes data(city.files, "data", Split::kTrain);
  OsRuntime runtime;
  Cpu<float> device;
  DistributedSampler sampler({.length = data.size(), .shuffle = false});
  DataLoader<float> loader(runtime, device, data, sampler.indices(), {.batch_size = 2});
  const Batch<float>* batch = loader.next();
  EXPECT_EQ(batch->size(), 2);
  EXPECT_EQ(batch->input.shape(), (Shape{2, 3, 2, 3}));
  EXPECT_EQ(batch->labels, (std::vector<std::int64_t>{0, 1, 2, 255, 18, 13, 0, 1, 2, 255, 18, 13}));
  batch = loader.next();
  EXPECT_EQ(batch->size(), 1);
  EXPECT_EQ(batch->input.shape(), (Shape{1, 3, 2, 3}));
  EXPECT_EQ(batch->labels.size(), 6u);
  EXPECT_EQ(loader.next(), nullptr);
}

TEST(Cityscapes, AnImageWithoutLabelsIsAnErrorAndLabelsWithoutImageToo) {
  City city;
  const std::string image = City::image("train", "aachen", "aachen_000007");
  const std::string labels = City::labels("train", "aachen", "aachen_000007");
  city.files.remove(labels);
  EXPECT_EQ(city.error(), labels + ": found no such file, expected the labels of " + image);
  city.add("train", "aachen", "aachen_000007", 20);
  city.files.remove(image);
  EXPECT_EQ(city.error(), image + ": found no such file, expected the image of " + labels);
}

TEST(Cityscapes, AFolderWithoutImagesIsAnError) {
  City city;
  for (const char* name : {"aachen_000007", "aachen_000002"}) {
    city.files.remove(City::image("train", "aachen", name));
    city.files.remove(City::labels("train", "aachen", name));
  }
  city.files.remove(City::image("train", "bremen", "bremen_000001"));
  city.files.remove(City::labels("train", "bremen", "bremen_000001"));
  EXPECT_EQ(city.error(),
            "data/leftImg8bit/train: found no image, expected CITY/NAME_leftImg8bit.png");
}

TEST(Cityscapes, OtherSizesAreAnError) {
  City city;
  const std::string labels = City::labels("train", "aachen", "aachen_000007");
  city.files.put(labels, png_bytes(2, 3, false, {7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(city.error(), labels + ": found 2 x 3 pixels, expected 3 x 2 as in the first image");
}

TEST(Cityscapes, LabelsInColourAreAnError) {
  City city;
  const std::string labels = City::labels("train", "bremen", "bremen_000001");
  city.files.put(labels,
                 png_bytes(kWidth, kHeight, true, std::vector<std::uint8_t>(3 * kWidth * kHeight)));
  EXPECT_EQ(city.error(), labels +
                              ": byte 24: found pixels of RGB of 8 bits, expected grey of 8 "
                              "bits");
}

TEST(Cityscapes, AnUnknownIdIsAnErrorThatNamesThePixel) {
  City city;
  const std::string labels = City::labels("val", "ulm", "ulm_000000");
  city.files.put(labels, png_bytes(kWidth, kHeight, false, {7, 7, 7, 7, 34, 7}));
  const Cityscapes data(city.files, "data", Split::kTest);
  std::vector<float> values(18);
  std::vector<std::int64_t> ids(6);
  try {
    data.read(0, values, ids);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), labels + ": row 1, column 1: found id 34, expected 0 to 33");
  }
}

TEST(Cityscapes, TheDigestKnowsOtherImages) {
  City city;
  const std::uint64_t digest = Cityscapes(city.files, "data", Split::kTrain).digest();
  EXPECT_EQ(Cityscapes(city.files, "data", Split::kTrain).digest(), digest);
  city.add("train", "aachen", "aachen_000003", 1);
  EXPECT_NE(Cityscapes(city.files, "data", Split::kTrain).digest(), digest);
}

}  // namespace
}  // namespace ddproof
