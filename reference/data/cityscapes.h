// Cityscapes: street scenes with a label for each pixel, read from disk image by image.
//
// Layout, as the data set is published:
//   leftImg8bit/{train,val}/CITY/NAME_leftImg8bit.png     RGB
//   gtFine/{train,val}/CITY/NAME_gtFine_labelIds.png      grey: ids 0 to 33
// Ids become the 19 training ids of the benchmark (cityscapesScripts, helpers/labels.py), and those
// that it leaves out kIgnoredLabel. Order: cities, then images, both by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/files.h"
#include "reference/data/dataset.h"
#include "reference/data/png.h"

namespace ddproof {

class Cityscapes final : public Dataset {
 public:
  static constexpr int kClassCount = 19;
  static constexpr std::int64_t kIgnoredLabel = 255;

  // Lists the images and looks into their headers; the test split is "val", whose labels are
  // public. Requires: `files` outlives this. Throws DataError naming the file and what was expected
  // when there are no images, one lacks its labels, labels lack their image, or sizes differ.
  Cityscapes(FileSystem& files, const std::string& directory, Split split);

  std::int64_t size() const override { return static_cast<std::int64_t>(pairs_.size()); }
  // {3, height, width}, values pixel / 255 as ImageDataset's.
  const Shape& sample_shape() const override { return sample_shape_; }
  const Shape& label_shape() const override { return label_shape_; }
  int class_count() const override { return kClassCount; }
  std::int64_t ignored_label() const override { return kIgnoredLabel; }
  // Of names and file sizes: the pixels would have to be read for it.
  std::uint64_t digest() const override { return digest_; }
  // Throws DataError when a file is not usable or has an id that Cityscapes does not know.
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override;

 private:
  struct Pair {
    std::string image;
    std::string labels;
  };

  void add_city(const std::string& images, const std::string& labels);
  void check_headers();
  std::uint64_t digest_of_names(std::size_t prefix) const;

  FileSystem& files_;
  std::vector<Pair> pairs_;
  PngSize size_;  // of every image
  Shape sample_shape_;
  Shape label_shape_;
  std::uint64_t digest_ = 0;
};

}  // namespace ddproof
