#include "reference/data/cityscapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "backends/api/check.h"
#include "backends/api/digest.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr std::string_view kImageEnd = "_leftImg8bit.png";
constexpr std::string_view kLabelEnd = "_gtFine_labelIds.png";
constexpr int kX = Cityscapes::kIgnoredLabel;

// By id: road 7, sidewalk 8, building 11, wall 12, fence 13, pole 17, traffic light 19, traffic
// sign 20, vegetation 21, terrain 22, sky 23, person 24, rider 25, car 26, truck 27, bus 28, train
// 31, motorcycle 32, bicycle 33.
constexpr std::array<int, 34> kTrainId{kX, kX, kX, kX, kX, kX, kX, 0,  1,  kX, kX, 2,
                                       3,  4,  kX, kX, kX, 5,  kX, 6,  7,  8,  9,  10,
                                       11, 12, 13, 14, 15, kX, kX, 16, 17, 18};

// The names in a directory that end so, without the end.
std::set<std::string> names_in(FileSystem& files, const std::string& directory,
                               std::string_view end) {
  std::set<std::string> names;
  for (const std::string& name : files.list(directory)) {
    if (name.ends_with(end)) names.insert(name.substr(0, name.size() - end.size()));
  }
  return names;
}

std::string show(PngSize size) { return fmt::format("{} x {}", size.width, size.height); }

void require_size(const std::string& path, PngSize found, PngSize expected) {
  if (found == expected) return;
  throw DataError(fmt::format("{}: found {} pixels, expected {} as in the first image", path,
                              show(found), show(expected)));
}

}  // namespace

Cityscapes::Cityscapes(FileSystem& files, const std::string& directory, Split split)
    : files_(files) {
  const std::string half = split == Split::kTrain ? "/train" : "/val";
  const std::string images = directory + "/leftImg8bit" + half;
  for (const std::string& city : files_.list(images)) {
    if (city.find('.') != std::string::npos) continue;  // a file beside the cities
    add_city(images + "/" + city, directory + "/gtFine" + half + "/" + city);
  }
  if (pairs_.empty()) {
    throw DataError(fmt::format("{}: found no image, expected CITY/NAME{}", images, kImageEnd));
  }
  check_headers();
  digest_ = digest_of_names(directory.size());
}

void Cityscapes::add_city(const std::string& images, const std::string& labels) {
  const std::set<std::string> with_image = names_in(files_, images, kImageEnd);
  const std::set<std::string> with_labels = names_in(files_, labels, kLabelEnd);
  for (const std::string& name : with_image) {
    Pair pair{fmt::format("{}/{}{}", images, name, kImageEnd),
              fmt::format("{}/{}{}", labels, name, kLabelEnd)};
    if (!with_labels.contains(name)) {
      throw DataError(fmt::format("{}: found no such file, expected the labels of {}", pair.labels,
                                  pair.image));
    }
    pairs_.push_back(std::move(pair));
  }
  for (const std::string& name : with_labels) {
    if (with_image.contains(name)) continue;
    throw DataError(fmt::format("{}/{}{}: found no such file, expected the image of {}/{}{}",
                                images, name, kImageEnd, labels, name, kLabelEnd));
  }
}

void Cityscapes::check_headers() {
  size_ = read_png_size(files_, pairs_[0].image, PngColor::kRgb);
  for (const Pair& pair : pairs_) {
    require_size(pair.image, read_png_size(files_, pair.image, PngColor::kRgb), size_);
    require_size(pair.labels, read_png_size(files_, pair.labels, PngColor::kGrey), size_);
  }
  sample_shape_ = {3, size_.height, size_.width};
  label_shape_ = {size_.height, size_.width};
}

std::uint64_t Cityscapes::digest_of_names(std::size_t prefix) const {
  std::uint64_t digest = 0;
  for (const Pair& pair : pairs_) {
    for (const std::string& path : {pair.image, pair.labels}) {
      digest =
          digest_of(fmt::format("{} {}\n", path.substr(prefix), files_.open(path)->size()), digest);
    }
  }
  return digest;
}

void Cityscapes::read(std::int64_t index, std::span<float> values,
                      std::span<std::int64_t> labels) const {
  DDPROOF_CHECK(index >= 0 && index < size());
  const Pair& pair = pairs_[static_cast<std::size_t>(index)];
  const PngImage image = read_png(files_, pair.image, PngColor::kRgb);
  const PngImage ids = read_png(files_, pair.labels, PngColor::kGrey);
  require_size(pair.image, image.size, size_);
  require_size(pair.labels, ids.size, size_);
  const std::size_t pixels = ids.pixels.size();
  DDPROOF_CHECK(values.size() == 3 * pixels && labels.size() == pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      values[c * pixels + i] = static_cast<float>(image.pixels[3 * i + c]) / 255.0f;
    }
    const std::size_t id = ids.pixels[i];
    if (id >= kTrainId.size()) {
      const auto at = static_cast<std::int64_t>(i);
      throw DataError(fmt::format("{}: row {}, column {}: found id {}, expected 0 to {}",
                                  pair.labels, at / size_.width, at % size_.width, id,
                                  kTrainId.size() - 1));
    }
    labels[i] = kTrainId[id];
  }
}

}  // namespace ddproof
