#include "reference/data/augmentation.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "reference/data/random_stream.h"

namespace ddproof {
namespace {

struct Placement {
  std::int64_t down = 0;  // rows by which the piece lies below the image's top; may be negative
  std::int64_t right = 0;
  bool mirrored = false;
};

Placement draw(RandomStream random, int padding) {
  const auto places = static_cast<std::uint32_t>(2 * padding + 1);
  Placement place;
  place.down = std::int64_t{random.below(places)} - padding;
  place.right = std::int64_t{random.below(places)} - padding;
  place.mirrored = random.below(2) == 1;
  return place;
}

void cut_out(const Placement& place, std::int64_t height, std::int64_t width,
             std::span<const float> from, std::span<float> to) {
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t row = y + place.down;
      const std::int64_t column = (place.mirrored ? width - 1 - x : x) + place.right;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      to[static_cast<std::size_t>(y * width + x)] =
          inside ? from[static_cast<std::size_t>(row * width + column)] : 0.0F;
    }
  }
}

}  // namespace

SampleTransform random_crop_and_flip(Shape shape, int padding, std::uint64_t seed,
                                     std::int64_t epoch) {
  if (shape.size() != 3) {
    throw ConfigError(fmt::format(
        "augmentation: samples have shape [{}], expected images of channels, height and width",
        fmt::join(shape, ", ")));
  }
  if (padding < 0 || padding > 1024) {
    throw ConfigError(fmt::format("augmentation: padding is {}, expected 0 to 1024", padding));
  }
  return [shape = std::move(shape), padding, seed, epoch](std::int64_t index,
                                                          std::span<float> values) {
    const Placement place = draw(RandomStream::of_sample(seed, epoch, index), padding);
    const std::vector<float> whole(values.begin(), values.end());
    const auto plane = static_cast<std::size_t>(shape[1] * shape[2]);
    for (std::size_t begin = 0; begin < values.size(); begin += plane) {
      cut_out(place, shape[1], shape[2], std::span(whole).subspan(begin, plane),
              values.subspan(begin, plane));
    }
  };
}

}  // namespace ddproof
